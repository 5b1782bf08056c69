package gcufit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// modelClient is the API as one scheduler process reaches it. A process that died reaches nothing.
type modelClient struct {
	clientset.Interface
	corev1.CoreV1Interface
	corev1.PodInterface
	p *process
}

func (c *modelClient) CoreV1() corev1.CoreV1Interface  { return c }
func (c *modelClient) Pods(string) corev1.PodInterface { return c }

var (
	errRefused = fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED)
	errLost    = errors.New("http2: client connection lost")
)

// reach lets others act and says whether the call gets through.
func (c *modelClient) reach() error {
	c.p.w.perturb()
	if c.p.dead {
		return errRefused
	}
	return nil
}

// Bind answers a Binding in all the ways an API server behind a network does.
func (c *modelClient) Bind(ctx context.Context, b *v1.Binding, _ metav1.CreateOptions) error {
	w := c.p.w
	sent := b.DeepCopy()
	if call, ok := ctx.Value(callKey{}).(*call); ok {
		sent = stamp(sent, call.flight.term)
		if w.chance(15) {
			w.note("%s is paused before it sends the Binding of %s %s at %s", c.p.id, b.Name, b.UID, b.ResourceVersion)
			call.pause(struct{}{})
			if c.p.dead && w.rng.IntN(100) < 60 {
				w.late = append(w.late, sent) // it was sent, and nobody is there to hear the answer
			}
		}
	}
	if err := c.reach(); err != nil {
		return err
	}
	if c.p.answers != nil {
		return c.p.answers(w, sent)
	}
	var err error
	switch way := w.rng.IntN(100); {
	case w.calm || way < 50:
		err = w.bind(sent)
		w.perturb()
	case way < 58: // the answer is lost
		w.note("the answer is lost: %v", w.bind(sent))
		w.perturb()
		err = apierrors.NewTimeoutError("no answer", 1)
	case way < 70: // it comes late, and nobody waits for the answer
		w.late = append(w.late, sent)
		w.perturb()
		err = errLost
	case way < 76: // the client's library sends it twice
		w.note("sent twice, first: %v", w.bind(sent))
		w.perturb()
		err = w.bind(sent)
	case way < 80:
		err = apierrors.NewInternalError(errors.New("etcd is out of sorts"))
	case way < 84:
		err = apierrors.NewTooManyRequests("slow down", 1)
	case way < 88:
		err = errRefused
	case way < 92:
		err = apierrors.NewForbidden(podResource, b.Name, errors.New("no"))
	case way < 96:
		err = apierrors.NewConflict(podResource, b.Name, errors.New("try again"))
	default: // sent twice, and one of the two comes late
		w.late = append(w.late, sent)
		err = w.bind(sent)
	}
	w.note("Binding of %s %s at %s to %s by %s: %v", b.Name, b.UID, b.ResourceVersion, b.Target.Name, c.p.id, err)
	return err
}

func (c *modelClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	w := c.p.w
	if err := c.reach(); err != nil {
		return nil, err
	}
	pod, ok := w.pods[name]
	if c.p.beforeAnswer != nil {
		c.p.beforeAnswer()
	}
	w.perturb()
	switch {
	case c.p.dead:
		return nil, errRefused
	case w.chance(15):
		return nil, errLost
	case !ok:
		return nil, apierrors.NewNotFound(podResource, name)
	}
	return pod, nil
}

func (c *modelClient) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	w := c.p.w
	if err := c.reach(); err != nil {
		return nil, err
	}
	var patch struct {
		Metadata struct{ UID types.UID }
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		w.fail("patch: %v", err)
	}
	if w.chance(10) || name == w.unwritable {
		return nil, apierrors.NewInternalError(errors.New("not stored"))
	}
	pod, err := w.patchStatus(name, patch.Metadata.UID)
	w.perturb()
	if w.chance(10) {
		return nil, errLost
	}
	return pod, err
}

func (c *modelClient) List(_ context.Context, o metav1.ListOptions) (*v1.PodList, error) {
	w := c.p.w
	if err := c.reach(); err != nil {
		return nil, err
	}
	out := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(w.rv, 10)}}
	if o.Limit != 1 {
		for _, p := range w.live(nil) {
			out.Items = append(out.Items, *p)
		}
	}
	w.perturb()
	return out, nil
}
