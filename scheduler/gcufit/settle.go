package gcufit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
)

// getTimeout bounds one read of a pod in doubt. It is apart from the scheduling context, which
// preemption and shutdown cancel just when the answer matters most.
const getTimeout = 10 * time.Second

// fenceCondition is written to a pod whose Binding got lost. Its only purpose is to make a new version
// of the pod, since the lost Binding names the old one as its precondition.
const fenceCondition v1.PodConditionType = "topscloud.dev/BindingSettled"

// settler finds out what became of Bindings without an answer.
//
// Scheduler S posts a Binding of pod A to node 1 and gets a time-out. Reading A shows it unbound, but
// the Binding may sit in a queue of the API server and be stored a second later; if S gives A's room to
// pod B on the strength of that read, both have it. So the room is kept until one of these is seen: A
// bound; A gone; A unbound at a version later than the one the Binding names, which the API server
// will never let it pass. If A does not change by itself, the settler writes a condition to it.
type settler struct {
	core  *core
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	ctx   context.Context // ends with the scheduler
}

func newSettler(ctx context.Context, c *core) *settler {
	return &settler{
		core: c,
		// The context is kept because a settler's work outlives the calls that cause it.
		ctx: ctx,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](100*time.Millisecond, 30*time.Second),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "gcu_settle"}),
	}
}

func (s *settler) run() {
	defer utilruntime.HandleCrashWithContext(s.ctx)
	stop := context.AfterFunc(s.ctx, s.queue.ShutDown)
	defer stop()
	for {
		key, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		if s.settle(key) {
			s.queue.Forget(key)
		} else {
			s.queue.AddRateLimited(key)
		}
		s.queue.Done(key)
	}
}

func (s *settler) get(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), getTimeout)
	defer cancel()
	return s.core.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
}

// settleNow looks at a pod right after the answer to its Binding was lost.
func (s *settler) settleNow(ctx context.Context, pod *v1.Pod, binding *v1.Binding, cause error) *fwk.Status {
	s.core.ledger.Doubt(pod.UID)
	now, err := s.get(ctx, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != pod.UID:
		s.core.ledger.Settle(pod.UID)
		return fwk.AsStatus(fmt.Errorf("the pod is gone: %w", cause))
	case err == nil && now.Spec.NodeName != "":
		return s.bound(now, binding, cause)
	case err == nil && ledger.Newer(now.ResourceVersion, binding.ResourceVersion):
		s.core.ledger.Settle(pod.UID)
		return fwk.AsStatus(cause)
	}
	return s.doubt(pod, cause)
}

// doubt keeps the pod's room and has the settler find out.
func (s *settler) doubt(pod *v1.Pod, cause error) *fwk.Status {
	s.core.ledger.Doubt(pod.UID)
	s.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	return fwk.AsStatus(fmt.Errorf("it is not known whether the binding was stored: %w", cause))
}

// bound compares a pod that turned out to be bound with what we sent. The API wins in any case.
func (s *settler) bound(now *v1.Pod, binding *v1.Binding, cause error) *fwk.Status {
	s.core.ledger.Foresee(now, false)
	key := s.core.names.AllocationKey
	if now.Spec.NodeName == binding.Target.Name && now.Annotations[key] == binding.Annotations[key] {
		return nil
	}
	return fwk.AsStatus(fmt.Errorf("the pod was bound to node %s by someone else: %w", now.Spec.NodeName, cause))
}

// settle decides about the pods of one name that are in doubt, and about those that the take-over charged
// from a list. It reports whether nothing is left to do.
func (s *settler) settle(key types.NamespacedName) bool {
	decided := s.decide(key)
	return s.core.takeover.giveBack(s.ctx) && decided
}

func (s *settler) decide(key types.NamespacedName) bool {
	logger := klog.FromContext(s.ctx)
	ctx, cancel := context.WithTimeout(s.ctx, getTimeout)
	defer cancel()
	// Taken before the pod is read: while the answer travels, a pod of the same name can be made, bound
	// and get into doubt itself, and the answer says nothing about that one.
	doubtful := s.doubtful(key)
	if len(doubtful) == 0 {
		return true
	}
	pods := s.core.client.CoreV1().Pods(key.Namespace)
	now, err := pods.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.free(doubtful, "")
		return true
	}
	if err != nil {
		logger.V(2).Info("Cannot read a pod whose binding is in doubt; trying again", "pod", key, "err", err)
		return false
	}
	s.free(doubtful, now.UID)
	if s.decided(now) {
		return true
	}
	fenced, err := pods.Patch(ctx, key.Name, types.StrategicMergePatchType, fencePatch(now.UID, answerLost, time.Now()), metav1.PatchOptions{}, "status")
	if err != nil {
		logger.V(2).Info("Cannot write to a pod whose binding is in doubt; trying again", "pod", key, "err", err)
		return false
	}
	return s.decided(fenced)
}

func (s *settler) doubtful(key types.NamespacedName) []*ledger.Holder {
	return slices.DeleteFunc(s.core.ledger.Doubtful(), func(h *ledger.Holder) bool {
		return h.Namespace != key.Namespace || h.Name != key.Name
	})
}

// free settles the given holders whose pods are gone, that is all but the one of the pod that was read.
func (s *settler) free(doubtful []*ledger.Holder, read types.UID) {
	for _, h := range doubtful {
		if h.UID != read && s.core.ledger.Settle(h.UID) {
			s.core.changed(s.ctx, h.Node)
		}
	}
}

// decided takes in a pod read while in doubt, and says whether it is so no longer.
func (s *settler) decided(now *v1.Pod) bool {
	h := s.core.ledger.Holder(now.UID)
	if h == nil || h.State != ledger.Doubtful {
		return true
	}
	s.core.ledger.Foresee(now, false)
	after := s.core.ledger.Holder(now.UID)
	if after != nil && after.State == ledger.Doubtful {
		return false
	}
	if after == nil {
		s.core.waiting.activator.Activate(klog.FromContext(s.ctx), map[string]*v1.Pod{podKey(now): now})
	}
	s.core.changed(s.ctx, h.Node)
	return true
}

// fence says why a pod was written to.
type fence struct{ reason, message string }

var (
	answerLost = fence{"AnswerLost", "The answer to a binding of this pod was lost; that binding can no longer take effect."}
	tookOver   = fence{"SchedulerChanged", "Another scheduler process took over; bindings of this pod sent before can no longer take effect."}
)

// fencePatch is a status patch that changes the pod at any rate: the condition's times have whole
// seconds, so the message carries the exact one.
func fencePatch(uid types.UID, why fence, now time.Time) []byte {
	patch := map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status": map[string]any{"conditions": []map[string]any{{
			"type": fenceCondition, "status": "True", "reason": why.reason, "lastTransitionTime": metav1.NewTime(now),
			"message": why.message + " " + now.UTC().Format(time.RFC3339Nano),
		}}},
	}
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // plain maps and strings
	}
	return text
}
