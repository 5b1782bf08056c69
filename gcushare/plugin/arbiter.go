package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// RefuseAfter bounds the time in which one PreStart finds out whose devices it is asked for and what they
// are. LeaveWithin bounds how long it then waits for the processes of a former holder of the card, whose
// pod is gone, to end. Kubelet itself waits 30 s.
const (
	RefuseAfter = 4500 * time.Millisecond
	LeaveWithin = 20 * time.Second
)

// Machine is what the node has, at one moment.
type Machine struct {
	UnitMiB, SliceCount int64
	Devices             []eflib.Device
}

// Pods reads the pods of this node.
type Pods interface {
	// Cached returns the pod from memory, nil if it is not there.
	Cached(uid types.UID) *v1.Pod
	// Read asks the API server for the pod of a UID, or, when uid is empty, of a name. A pod that does not
	// exist is an error that apierrors.IsNotFound knows.
	Read(ctx context.Context, uid types.UID, namespace, name string) (*v1.Pod, error)
}

// Identities tells whose devices a set of IDs is.
type Identities interface {
	Holders(ctx context.Context, resource string, ids []string) ([]kubelet.Holder, error)
}

var _ Identities = (*kubelet.Identifier)(nil)

// Options of an Arbiter.
type Options struct {
	Names *contract.Names
	Node  string
	// Machine returns what the node has now. It must not block.
	Machine     func() Machine
	Pods        Pods
	Identities  Identities
	Checkpoints kubelet.Checkpoints
	// BookPath is the file of the node's book, CDIDir the folder of the tickets' files.
	BookPath, CDIDir string
	// HostRoot is where this process sees the host's files, "/" when empty. The numbers of the control device
	// are read there; where it is not to be seen, the engine has to find it.
	HostRoot string
	// Assigned, if set, is told when every container of a pod that asks for cards has been given them.
	Assigned func(ctx context.Context, pod *v1.Pod)
	// Refused, if set, is told of each refusal.
	Refused func(ctx context.Context, r *Refusal)
	// Adopt, if set, gives a pod without record one and returns the pod with it. ids are the devices that
	// kubelet chose for the container that starts. Its error says why the pod gets none.
	Adopt func(ctx context.Context, pod *v1.Pod, resource string, ids []string) (*v1.Pod, error)
	// Alive, if set, says whether processes of a pod run on this node, whatever the API server says: kubelet
	// and scheduler forget a pod that is deleted by force at once. It must not block.
	Alive func(uid types.UID) bool
	// Changed, if set, is told when the book or what kubelet holds may have changed. It must not block.
	Changed func()
	// Direct makes whole cards be passed by kubelet itself, beside the ticket, as device specs, which the
	// static CPU manager needs. NoCDI, if set and true, makes them be passed so and by environment in its
	// place, for an engine that could not resolve a ticket. Kubelet's IDs have to be the record's cards then,
	// and a container for which they are not is refused.
	Direct bool
	NoCDI  func() bool
}

// Arbiter decides which cards the containers of a node get. One process has one.
type Arbiter struct {
	o       Options
	book    *book
	tickets *tickets
	aside   error

	// pending guards tickets that could not be written to the book when they were issued. They are in
	// kubelet's checkpoint, and get into the book when their container starts.
	pending sync.Mutex
	unkept  []contract.BookTicket

	// onStep is called between any two things that outlive the process; tests end it there.
	onStep func(step string)
}

func (a *Arbiter) noCDI() bool { return a.o.NoCDI != nil && a.o.NoCDI() }

func (a *Arbiter) step(name string) {
	if a.onStep != nil {
		a.onStep(name)
	}
}

// Open reads the node's book and watches the folder of CDI files.
func Open(o Options) (*Arbiter, error) {
	if o.Names == nil || o.Node == "" || o.Machine == nil || o.Pods == nil || o.Identities == nil ||
		o.Checkpoints == nil || o.BookPath == "" || o.CDIDir == "" {
		return nil, errors.New("names, node, machine, pods, identities, checkpoints, book and CDI folder must be set")
	}
	b, aside, err := openBook(o.BookPath, time.Now())
	if err != nil {
		return nil, err
	}
	t, err := newTickets(o.CDIDir, o.HostRoot, o.Names)
	if err != nil {
		return nil, err
	}
	return &Arbiter{o: o, book: b, tickets: t, aside: aside}, nil
}

// Close stops watching. Nothing else is to be done for the arbiter's state.
func (a *Arbiter) Close() error { return a.tickets.close() }

// SetAside returns why the book was set aside by Open, nil if it was not.
func (a *Arbiter) SetAside() error { return a.aside }

// Book returns the node's book as it stands. It must not be changed.
func (a *Arbiter) Book() contract.Book { return a.book.read() }

// issue makes a ticket for IDs of a resource.
func (a *Arbiter) issue(ctx context.Context, resource string, ids []string) string {
	t := contract.BookTicket{Name: newTicket(), Resource: resource, IDs: ids, Issued: time.Now().UTC().Truncate(time.Second)}
	a.pending.Lock()
	defer a.pending.Unlock()
	a.unkept = append(a.unkept, t)
	a.step("Allocate: before the book")
	err := a.book.update(func(b *contract.Book) (bool, error) {
		for _, t := range a.unkept {
			if ticketAt(b, t.Name) < 0 { // its container may have started meanwhile
				b.Tickets = append(b.Tickets, t)
			}
		}
		return true, nil
	})
	if err != nil {
		// Not a reason to fail the pod: the ticket is told to kubelet.
		klog.FromContext(ctx).Error(err, "The node's book cannot be written", "ticket", t.Name)
		return t.Name
	}
	a.unkept = nil
	a.step("Allocate: after the book")
	return t.Name
}

// devicesByMinor returns the machine's cards.
func (m *Machine) devicesByMinor() map[int]eflib.Device {
	out := make(map[int]eflib.Device, len(m.Devices))
	for _, d := range m.Devices {
		out[d.Minor] = d
	}
	return out
}

// podName is how messages name a pod.
func podName(pod *v1.Pod) string { return fmt.Sprintf("%s/%s", pod.Namespace, pod.Name) }
