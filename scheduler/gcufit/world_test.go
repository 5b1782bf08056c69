package gcufit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
)

// world is the truth of the model: what the API server stores, and what runs on the cards because of
// it. Everything is single-threaded; "at the same time" is played by perturb, which runs other actors'
// steps in the middle of an API call.
type world struct {
	rng        *rand.Rand
	names      *contract.Names
	unwritable string // a pod that no write to succeeds
	calm       bool   // nothing happens by itself and all calls are answered as they should be
	depth      int    // nesting of perturb

	rv, uids uint64
	pods     map[string]*v1.Pod // by name; objects are replaced, never changed
	nodes    map[string]*v1.Node
	machines map[string]*machine
	podLog   []change
	nodeLog  []change
	late     []*v1.Binding // Bindings that the API server has and did not look at yet

	ours    map[types.UID]bool   // bound by this scheduler, with cards that nobody else touched
	running map[types.UID]string // record by which a pod runs, whatever became of its annotation

	election        election
	leader, standby *process
	zombies         []*process // led before, and go on as if they still did
	processes       int        // how many there ever were
	steps           []weighted
	totalWeight     int
	trace           []string
	failure         error
}

// change is an event as a watch carries it; deleted objects carry their last state.
type change struct {
	obj     any
	deleted bool
}

var podResource = schema.GroupResource{Resource: "pods"}

func newWorld(seed uint64) *world {
	w := bareWorld(seed)
	for i := range 3 {
		w.addMachine(fmt.Sprintf("n%d", i))
	}
	w.election.on = true
	w.succeed()
	return w
}

// bareWorld is a world without machines and schedulers.
func bareWorld(seed uint64) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 0)), names: contract.Default(),
		pods: map[string]*v1.Pod{}, nodes: map[string]*v1.Node{}, machines: map[string]*machine{},
		ours: map[types.UID]bool{}, running: map[types.UID]string{},
	}
	w.election.clock = clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	w.steps = steps
	for _, s := range steps {
		w.totalWeight += s.weight
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

func (w *world) note(format string, args ...any) {
	if len(w.trace) > 400 {
		w.trace = slices.Delete(w.trace, 0, 200)
	}
	w.trace = append(w.trace, fmt.Sprintf("%*s", 2*w.depth, "")+fmt.Sprintf(format, args...))
}

// chance is true in p of 100 cases, and never in a calm world.
func (w *world) chance(p int) bool { return !w.calm && w.rng.IntN(100) < p }

// inCalm does something while nothing else happens.
func (w *world) inCalm(do func()) {
	calm := w.calm
	w.calm = true
	do()
	w.calm = calm
}

func (w *world) version() string {
	w.rv++
	return strconv.FormatUint(w.rv, 10)
}

// write stores a changed copy of a pod and tells the watchers. Those select pods that did not end, so a
// pod that ends leaves their sight as if deleted.
func (w *world) write(pod *v1.Pod, edit func(*v1.Pod)) *v1.Pod {
	p := pod.DeepCopy()
	if edit != nil {
		edit(p)
	}
	wasEnded := ledger.Ended(pod) && w.pods[pod.Name] != nil
	p.ResourceVersion = w.version()
	w.pods[p.Name] = p
	switch ended := ledger.Ended(p); {
	case ended && !wasEnded:
		w.podLog = append(w.podLog, change{p, true})
	case !ended:
		w.podLog = append(w.podLog, change{p, false})
	}
	return p
}

func (w *world) remove(pod *v1.Pod) {
	delete(w.pods, pod.Name)
	if !ledger.Ended(pod) {
		last := pod.DeepCopy()
		last.ResourceVersion = w.version()
		w.podLog = append(w.podLog, change{last, true})
	}
	delete(w.ours, pod.UID)
	delete(w.running, pod.UID)
	w.recorded(pod.UID)
	w.note("pod %s %s is gone", pod.Name, pod.UID)
}

// live returns the pods that did not end, sorted by name.
func (w *world) live(keep func(*v1.Pod) bool) []*v1.Pod {
	var out []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[name]; !ledger.Ended(p) && (keep == nil || keep(p)) {
			out = append(out, p)
		}
	}
	return out
}

func (w *world) pick(list []*v1.Pod) *v1.Pod {
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

func bound(p *v1.Pod) bool   { return p.Spec.NodeName != "" }
func unbound(p *v1.Pod) bool { return p.Spec.NodeName == "" }

// bind does what BindingREST of kube-apiserver does: preconditions, then one write of node and record.
func (w *world) bind(b *v1.Binding) error {
	pod, ok := w.pods[b.Name]
	switch {
	case !ok:
		return apierrors.NewNotFound(podResource, b.Name)
	case b.UID == "" || b.ResourceVersion == "":
		w.fail("Binding of %s without preconditions", b.Name)
		return apierrors.NewBadRequest("no preconditions")
	case pod.UID != b.UID, pod.ResourceVersion != b.ResourceVersion, bound(pod), pod.DeletionTimestamp != nil:
		return apierrors.NewConflict(podResource, b.Name, fmt.Errorf("now %s at %s on node %q", pod.UID, pod.ResourceVersion, pod.Spec.NodeName))
	}
	w.checkTerm(b)
	now := w.write(pod, func(p *v1.Pod) {
		p.Spec.NodeName, p.Status.NominatedNodeName = b.Target.Name, ""
		maps.Copy(p.Annotations, b.Annotations)
	})
	w.note("stored: %s %s on %s", now.Name, now.UID, b.Target.Name)
	w.ours[now.UID], w.running[now.UID] = true, now.Annotations[w.names.AllocationKey]
	w.checkBound(now)
	return nil
}

// commitLate lets the API server come to a Binding it was sent long ago.
func (w *world) commitLate() {
	if len(w.late) == 0 {
		return
	}
	i := w.rng.IntN(len(w.late))
	b := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	err := w.bind(b)
	w.note("late Binding of %s %s at %s: %v", b.Name, b.UID, b.ResourceVersion, err)
}

// patchStatus adds the settler's condition, and so makes a new version of the pod.
func (w *world) patchStatus(name string, uid types.UID) (*v1.Pod, error) {
	pod, ok := w.pods[name]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(podResource, name)
	case pod.UID != uid:
		return nil, apierrors.NewConflict(podResource, name, fmt.Errorf("uid is %s", pod.UID))
	}
	return w.write(pod, nil), nil
}

// perturb lets the others act in the middle of something.
func (w *world) perturb() {
	if w.calm || w.depth >= 3 || w.rng.IntN(100) >= 35 {
		return
	}
	w.depth++
	for range 1 + w.rng.IntN(4) {
		w.step()
	}
	w.depth--
}

func objectMeta(name string, uid uint64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("u%04d", uid)), Annotations: map[string]string{}}
}
