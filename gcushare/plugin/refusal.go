package plugin

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Cause says in a word why a container was refused; it is a metric's label.
type Cause string

// The causes.
const (
	CauseIdentity Cause = "identity"  // kubelet does not tell whose devices these are
	CausePod      Cause = "pod"       // the pod cannot be read, is gone, or is another's
	CauseNoRecord Cause = "no-record" // the pod has no record
	CauseRecord   Cause = "record"    // the record cannot be read or does not match the pod
	CauseSize     Cause = "size"      // the record says another size than the container's limit
	CauseCard     Cause = "card"      // the record names a card that is not here
	CauseRoom     Cause = "room"      // others have what the record gives
	CauseLeaving  Cause = "leaving"   // processes of a pod that is gone still use what the record gives
	CauseChanged  Cause = "changed"   // the record differs from what the container was given before
	CauseTicket   Cause = "ticket"    // the ticket cannot be told or written
)

// Refusal is why a container may not start now.
type Refusal struct {
	Cause Cause
	// Pod is namespace/name, or the UID while the name is not known; empty when the pod is not known.
	Pod string
	// Container is empty when it is not known.
	Container string
	// UID is the pod's, empty when it is not known.
	UID types.UID
	Err error
}

// Error names the container and the reason, in one line: kubelet puts it into an event, of which people see
// the first line only.
func (r *Refusal) Error() string {
	why := strings.ReplaceAll(r.Err.Error(), "\n", "; ")
	switch {
	case r.Pod == "":
		return "refused: " + why
	case r.Container == "":
		return fmt.Sprintf("pod %s refused: %s", r.Pod, why)
	}
	return fmt.Sprintf("container %s of pod %s refused: %s", r.Container, r.Pod, why)
}

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Err }

// refuse makes a refusal of an error that is none yet.
func refuse(cause Cause, pod, container string, err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		return err
	}
	return &Refusal{Cause: cause, Pod: pod, Container: container, Err: err}
}
