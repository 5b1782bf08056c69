package attribution

import (
	"cmp"
	"slices"
	"strings"

	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Snapshot is who holds what. It is immutable.
type Snapshot struct {
	// Holdings are the holdings of all cards, in the book's order; nil where they are not known.
	Holdings []nodebook.Holding
	// MemoryEnforced says whether a container cannot use more memory than its share.
	MemoryEnforced bool
	// Others are the containers with resources of our domain that the book has nothing of, sorted.
	Others []Other
	// Agent and Kubelet say why their part is missing, nil when it is not.
	Agent, Kubelet error
}

// Other is a container with a resource that the agent gave it no card for.
type Other struct {
	Namespace, Pod, Container string
	Resource                  string
	Count                     int
}

// Of returns the holdings of one card.
func (s *Snapshot) Of(card *eflib.Device) []nodebook.Holding {
	var out []nodebook.Holding
	for i := range s.Holdings {
		if h := &s.Holdings[i]; h.On(card) {
			out = append(out, *h)
		}
	}
	return out
}

type holder struct{ namespace, pod, container, resource string }

// join keeps of a book what kubelet lists too, and finds what kubelet lists of our domain and the book does not. A
// second name of whole cards may be of any domain, and which one is known only by the book.
func join(domain string, book *nodebook.Book, list []*podresourcesapi.PodResources) *Snapshot {
	ours := map[string]bool{}
	for i := range book.Holdings {
		ours[book.Holdings[i].Resource] = true
	}
	listed := map[holder]int{}
	for _, p := range list {
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				if ours[d.ResourceName] || strings.HasPrefix(d.ResourceName, domain+"/") {
					listed[holder{p.Namespace, p.Name, c.Name, d.ResourceName}] += len(d.DeviceIds)
				}
			}
		}
	}
	s := &Snapshot{MemoryEnforced: book.MemoryEnforced}
	known := map[holder]bool{}
	for _, h := range book.Holdings {
		at := holder{h.Namespace, h.Pod, h.Container, h.Resource}
		known[at] = true
		if listed[at] > 0 {
			s.Holdings = append(s.Holdings, h)
		}
	}
	for at, n := range listed {
		if !known[at] && n > 0 && strings.HasPrefix(at.resource, domain+"/") {
			s.Others = append(s.Others, Other{at.namespace, at.pod, at.container, at.resource, n})
		}
	}
	slices.SortFunc(s.Others, func(a, b Other) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Resource, b.Resource))
	})
	return s
}
