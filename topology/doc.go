// Package topology knows how the cards of one machine are wired and chooses the subset of cards that
// serves a request best.
//
// # Promise
//
// The cards of a machine form a tree: machine, NUMA node, root complex, PCI bridges, card. Two cards
// are as close as the lowest vertex above both (Level, Distance). Best returns the exact optimum over
// all subsets of the asked size, not an approximation, and the same one for the same machine whatever
// order the cards were listed in. A Tree never changes after New and may be shared between goroutines.
//
// # The objective of Best
//
// Compared in this order, the next only where the one before is equal:
//
//  1. closeness: the sum of Distance over all pairs of chosen cards, lower first. It is built so that
//     a sum of levels always outweighs the depth of the common bridges;
//  2. Query.Penalty: the sum over chosen cards, lower first;
//  3. what is left behind: the residual value of the free cards that were not taken, higher first
//     (see residual.go for the value and why it is what it is);
//  4. the lowest minors, as sorted lists.
//
// # How odd hardware is read
//
//   - An unknown NUMA node (-1) equals nothing, not even another unknown, and is never node 0.
//   - A root complex belongs to a NUMA node only when every card below it names that node. Where the
//     cards of one root complex name different nodes, or some name none, the root complex forms a group
//     of its own: its cards are SameRootComplex to each other and Across to all others. The tree stays
//     a tree, and no pair is called SameNUMA on a guess.
//   - The hard limit SameNUMA accepts cards of one root complex even when their NUMA node is unknown,
//     since one root complex is nearer than one NUMA node.
//   - A card without bridges shares no bridge and no root complex with any card, but may share a NUMA
//     node.
//   - A bridge is identified by the whole path from its root complex. The same name below two different
//     parents is two bridges.
//
// # Refusals
//
// New refuses two cards with one minor, a minor outside 0 to 127, an empty bridge name and a chain of
// more than 64 bridges. Minors that are not in the tree are ignored in Query.From and make Best fail in
// Query.Must. ReadCard refuses an entry that is not a PCI function below a root complex.
//
// The package imports the standard library only, reads nothing but an fs.FS handed in, and does not log.
package topology
