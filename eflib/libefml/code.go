package libefml

import (
	"fmt"

	"github.com/topscloud/topscloud/eflib"
)

// Return codes that the package itself acts on.
const (
	codeUninitialised = 1
	codeNoDriver      = 6
)

// codes are the meanings of the library's return codes and the errors they are to callers; without one
// it is an error that only the text tells of.
var codes = map[uint32]struct {
	text string
	is   error
}{
	// A caller sees it only when the library, started once more, says it again. Then the start succeeded, and what
	// is wrong is not known; it says codeNoDriver itself when the driver is gone.
	codeUninitialised: {"uninitialised", nil},
	2:                 {"invalid argument", nil},
	3:                 {"not supported", eflib.ErrNotSupported},
	4:                 {"library not found", nil},
	5:                 {"invalid error code", nil},
	codeNoDriver:      {"driver not loaded", eflib.ErrDriverNotLoaded},
	7:                 {"wrong interconnect port number", nil},
	8:                 {"invalid input", nil},
	9:                 {"function not found", eflib.ErrNotSupported},
	10:                {"driver version cannot be read", nil},
	11:                {"driver is not compatible", nil},
	12:                {"no device", eflib.ErrDeviceLost},
	13:                {"deprecated", eflib.ErrNotSupported},
	253:               {"timeout", eflib.ErrTimeout},
	254:               {"failure", nil},
}

// CodeError is a call that the library answered with a return code other than success.
type CodeError struct {
	Function string
	Code     uint32
}

// Error names the function, the code and its meaning.
func (e *CodeError) Error() string {
	meaning := codes[e.Code].text
	if meaning == "" {
		meaning = "unknown code"
	}
	return fmt.Sprintf("%s: %s (%d)", e.Function, meaning, e.Code)
}

// Unwrap returns the error of package eflib that the code stands for, or nil.
func (e *CodeError) Unwrap() error { return codes[e.Code].is }

func codeError(function string, code uint32) error {
	if code == 0 {
		return nil
	}
	return &CodeError{function, code}
}
