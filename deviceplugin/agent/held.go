package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// justIssued is how long a ticket counts as held before kubelet's checkpoint shows whose it is.
const justIssued = time.Minute

// heldIDs returns which IDs of each resource containers have, and whether the card behind each is known to be
// broken. live says whether kubelet still counts a pod; faulty whether a card is broken.
func heldIDs(names *contract.Names, file *checkpoint.Checkpoint, book contract.Book, node *ledger.Node,
	live func(types.UID) bool, faulty func(minor int, uuid string) bool, now time.Time) [share.Kinds]map[string]bool {
	var held [share.Kinds]map[string]bool
	kinds := map[string]share.Kind{}
	for k := range share.Kind(share.Kinds) {
		held[k] = map[string]bool{}
		if name := k.Resource(names); name != "" {
			kinds[name] = k
		}
	}
	if file != nil {
		for i := range file.Entries {
			e := &file.Entries[i]
			kind, ours := kinds[e.Resource]
			if !ours || !live(types.UID(e.PodUID)) {
				continue
			}
			mark(held[kind], e.IDs, recordOf(node, types.UID(e.PodUID), e.Container), faulty)
		}
	}
	for _, t := range book.Tickets {
		kind, ours := kinds[t.Resource]
		if !ours {
			continue
		}
		if t.PodUID == "" && now.Sub(t.Issued) < justIssued || t.PodUID != "" && live(types.UID(t.PodUID)) {
			mark(held[kind], t.IDs, t.Cards, faulty)
		}
	}
	return held
}

func recordOf(node *ledger.Node, uid types.UID, container string) []contract.CardAllocation {
	if node == nil {
		return nil
	}
	h := node.Holder(uid)
	if h == nil {
		return nil
	}
	for _, c := range h.Containers {
		if c.Name == container {
			return c.Cards
		}
	}
	return nil
}

// mark notes a container's IDs. Its cards share them evenly, in order, since a limit spreads evenly; an ID
// that two containers of a pod have is broken if it is for one of them.
func mark(held map[string]bool, ids []string, cards []contract.CardAllocation, faulty func(int, string) bool) {
	for i, id := range ids {
		broken := false
		if len(cards) > 0 {
			c := cards[i*len(cards)/len(ids)]
			broken = faulty(c.Minor, c.UUID)
		}
		held[id] = held[id] || broken
	}
}
