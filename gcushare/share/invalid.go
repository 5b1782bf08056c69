package share

import "fmt"

// InvalidError says that a pod's request cannot be met anywhere as it is written. Field, Value and
// Want never carry the pod's name, so that equal mistakes make equal messages.
type InvalidError struct {
	Field string // "enflame.com/gcu-policy" or "limit enflame.com/gcu-memory"
	Value string
	Want  string
}

// Error names the field, the value and what is allowed.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Want)
}
