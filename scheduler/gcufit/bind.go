package gcufit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// bindBackoff paces repeated Bindings whose refusal is sure: four tries over about a second.
var bindBackoff = wait.Backoff{Steps: 4, Duration: 50 * time.Millisecond, Factor: 4, Jitter: 0.1}

// Bind posts the one write that binds the pod and carries its record.
func (p *Plugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	c := readCycle(state)
	if c == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	h := p.ledger.Holder(pod.UID)
	if h == nil || h.State != ledger.InFlight || h.Node != nodeName {
		return fwk.AsStatus(fmt.Errorf("bind to node %s: the pod has no GCU reservation there", nodeName))
	}
	binding, err := p.newBinding(pod, nodeName, h, c.req)
	if err != nil {
		return fwk.AsStatus(err)
	}
	klog.FromContext(ctx).V(3).Info("Binding pod", "pod", klog.KObj(pod), "node", nodeName)
	return p.bind(ctx, pod, binding, c.term)
}

func (p *Plugin) newBinding(pod *v1.Pod, node string, h *ledger.Holder, req *share.Request) (*v1.Binding, error) {
	record, err := annotations(p.names, h, req, time.Now())
	if err != nil {
		return nil, err
	}
	return &v1.Binding{
		// With both preconditions a Binding that was delayed on its way can be told from one that can
		// still be stored: any later write to the pod makes the API server refuse it.
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: h.BindVersion, Annotations: record,
		},
		Target: v1.ObjectReference{Kind: "Node", Name: node},
	}, nil
}

func (p *Plugin) bind(ctx context.Context, pod *v1.Pod, binding *v1.Binding, term lease.Term) *fwk.Status {
	backoff := bindBackoff
	for {
		// Before each try, and after the version it names was read: leader R1 was paused, R2 leads and has
		// written to each pod, R1 wakes, meets a conflict and reads the version that R2 made. A Binding that
		// names a version from before this check is what R2's take-over makes the API server refuse.
		if err := p.lease.Check(term); err != nil {
			return fwk.AsStatus(fmt.Errorf("not bound to node %s: %w", binding.Target.Name, err))
		}
		err := p.post(ctx, binding)
		if err == nil {
			return nil
		}
		switch answerOf(err) {
		case refused:
			return fwk.AsStatus(err)
		case notSent:
			if backoff.Steps > 0 && p.pause(ctx, backoff.Step()) {
				continue
			}
			return fwk.AsStatus(err)
		case conflict:
			// Someone wrote to the pod since it was queued, or it is bound, or it is another pod by now.
			// Nothing of ours is on its way, so what the API shows is final for this Binding.
			now, status := p.lookAgain(ctx, pod, binding, err)
			if now == nil {
				return status
			}
			if backoff.Steps > 0 && p.pause(ctx, backoff.Step()) {
				if h := p.ledger.Rebase(pod.UID, now.ResourceVersion); h {
					binding.ResourceVersion = now.ResourceVersion
					continue
				}
			}
			return fwk.AsStatus(err)
		default:
			return p.settler.settleNow(ctx, pod, binding, err)
		}
	}
}

func (p *Plugin) post(ctx context.Context, binding *v1.Binding) error {
	if cacher := p.handle.APICacher(); cacher != nil {
		done, err := cacher.BindPod(binding)
		if err != nil {
			return err
		}
		return cacher.WaitOnFinish(ctx, done)
	}
	return p.client.CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

// lookAgain reads a pod whose Binding met a conflict. It returns the pod when the same request may be
// bound to its newer version, else the status to end with.
func (p *Plugin) lookAgain(ctx context.Context, pod *v1.Pod, binding *v1.Binding, cause error) (*v1.Pod, *fwk.Status) {
	now, err := p.settler.get(ctx, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != pod.UID:
		p.ledger.Forget(pod.UID)
		return nil, fwk.AsStatus(fmt.Errorf("the pod is gone: %w", cause))
	case err != nil:
		return nil, p.settler.doubt(pod, fmt.Errorf("%w; reading the pod: %w", cause, err))
	case now.Spec.NodeName != "":
		return nil, p.settler.bound(now, binding, cause)
	case now.DeletionTimestamp != nil || len(now.Spec.SchedulingGates) > 0 || !p.sameRequest(pod, now):
		return nil, fwk.AsStatus(cause)
	}
	return now, nil
}

// sameRequest says whether a pod still asks for what it was placed by.
func (p *Plugin) sameRequest(a, b *v1.Pod) bool {
	for _, key := range []string{p.names.PolicyKey, p.names.TopologyKey, p.names.CardsKey, p.names.UseUUIDKey, p.names.NoUseUUIDKey} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return true
}

// answer is what an error says about whether a Binding was stored.
type answer uint8

const (
	unknown  answer = iota // it may have been stored, or may be yet
	refused                // the API server will not have it
	notSent                // it was turned away before it was looked at; worth another try
	conflict               // the API server refused it for the state of the pod
)

func answerOf(err error) answer {
	switch {
	case apierrors.IsConflict(err):
		return conflict
	case apierrors.IsTooManyRequests(err), errors.Is(err, syscall.ECONNREFUSED), isLookupError(err):
		return notSent
	case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err),
		apierrors.IsInvalid(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return refused
	}
	return unknown
}

func isLookupError(err error) bool {
	var u *url.Error
	var dns *net.DNSError
	return errors.As(err, &u) && errors.As(err, &dns)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
