package gcufit

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// nominations remembers where pods that are nominated by preemption kept others out.
//
// Nobody tells when such room comes back: pod H is nominated to node 1, and pod M is turned away there
// because of it; then H finds room on node 2 and is bound there. No pod left node 1 and no event speaks
// of it, so M would sleep for good.
type nominations struct {
	// mu guards at.
	mu sync.Mutex
	at map[types.UID]string
}

func newNominations() *nominations { return &nominations{at: map[types.UID]string{}} }

// see notes that a nominated pod was counted on a node.
func (n *nominations) see(uid types.UID, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[uid] = node
}

// end forgets a pod and returns the node it was counted on, if any.
func (n *nominations) end(uid types.UID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := n.at[uid]
	delete(n.at, uid)
	return node
}
