// Package labels says which labels a node with GCU cards has. It is a pure function of what was read of
// the node (Facts), of what was published before, and of the time.
//
// # Promise
//
// A label is true for every card of the node, or it is not there. On a node with two models there is no
// model label and one count for each model instead. The order of the cards, how often they are read and
// who reads them change nothing.
//
// Values are legal label values, and two different texts that are legal already stay different. Spaces
// become dashes. A text that has to be changed further ends with a short hash of what it was, so that two
// texts never become one value by that.
//
// # Memory
//
// The memory label is that of one card in MiB, rounded down to whole GiB: 41984 for the 42976 MiB that an
// S60 has with ECC, as on nodes of earlier releases; 16384 and 32768 are what they are. Less than a GiB is
// not rounded.
//
// # What cannot be read
//
// A fact that nobody can tell (the product name of a model that has none published) gives no label. A fact
// that could not be asked this time keeps the label that was published before, as long as no card that did
// answer contradicts it and there are no more cards than before; where nothing was published it gives no
// label. No value ever stands for "not known".
//
// # Timestamps
//
// gfd.timestamp is when this very set of labels was first published, and so is gfd.latestLabeledTimestamp.
// Both stay while no other label changes, whatever restarts; the latter moves with each look where it is
// asked for (Options.Touch).
//
// # Restart
//
// Nothing is kept: the caller reads what it published before from where it published it.
package labels
