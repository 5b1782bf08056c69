package ledger

import (
	"iter"
	"maps"
)

// View is the ledger at one moment: immutable, free to share, and cheap to take.
type View struct {
	// Generation counts the ledger's changes; two views of one generation are equal.
	Generation uint64
	// UnitMiB is the memory unit that most nodes use.
	UnitMiB int64
	index   map[string]int
	chunks  []*chunk
}

const chunkSize = 64

type chunk [chunkSize]*Node

// Node returns a node, nil if the view has none of that name.
func (v *View) Node(name string) *Node {
	i, ok := v.index[name]
	if !ok {
		return nil
	}
	return v.chunks[i/chunkSize][i%chunkSize]
}

// Len returns the number of nodes.
func (v *View) Len() int { return len(v.index) }

// Nodes yields all nodes, in no promised order.
func (v *View) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, c := range v.chunks {
			for _, n := range c {
				if n != nil && !yield(n) {
					return
				}
			}
		}
	}
}

// View returns the ledger as it stands.
func (l *Ledger) View() *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view != nil {
		return l.view
	}
	for node := range l.dirty {
		l.vec.set(node, l.builtLocked(node, l.slots[node]))
	}
	clear(l.dirty)
	l.view = l.vec.view()
	l.view.Generation, l.view.UnitMiB = l.gen, l.commonUnitLocked()
	return l.view
}

// vector holds the built nodes so that a view shares all chunks that did not change since the view
// before it: taking one costs a slice of chunk pointers, not a map of all nodes.
type vector struct {
	index  map[string]int
	chunks []*chunk
	spare  []int // free places
	// shared says that a view holds index; own marks the chunks no view holds.
	shared bool
	own    map[int]bool
}

func newVector() vector { return vector{index: map[string]int{}, own: map[int]bool{}} }

func (v *vector) set(name string, n *Node) {
	i, ok := v.index[name]
	if !ok {
		i = v.place()
		v.ownIndex()
		v.index[name] = i
	}
	v.ownChunk(i / chunkSize)[i%chunkSize] = n
}

func (v *vector) remove(name string) {
	i, ok := v.index[name]
	if !ok {
		return
	}
	v.ownIndex()
	delete(v.index, name)
	v.ownChunk(i / chunkSize)[i%chunkSize] = nil
	v.spare = append(v.spare, i)
}

func (v *vector) place() int {
	if k := len(v.spare); k > 0 {
		i := v.spare[k-1]
		v.spare = v.spare[:k-1]
		return i
	}
	i := len(v.index)
	if i/chunkSize == len(v.chunks) {
		v.own[len(v.chunks)] = true
		v.chunks = append(v.chunks, new(chunk))
	}
	return i
}

func (v *vector) ownIndex() {
	if v.shared {
		v.index = maps.Clone(v.index)
		v.shared = false
	}
}

func (v *vector) ownChunk(k int) *chunk {
	if !v.own[k] {
		c := *v.chunks[k]
		v.chunks[k] = &c
		v.own[k] = true
	}
	return v.chunks[k]
}

func (v *vector) view() *View {
	clear(v.own)
	v.shared = true
	return &View{index: v.index, chunks: append([]*chunk(nil), v.chunks...)}
}
