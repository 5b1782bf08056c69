// Package publish puts a node's labels where they take effect: a features file or a NodeFeature object for
// node-feature-discovery (NFD), which then labels the node, or the Node object itself where there is no NFD.
//
// # Promise
//
// Publish makes what is published the given set, in one step: there is no moment with less than the old and
// the new set have in common. What is published already is not written again. An empty set withdraws what
// was published, and nothing else.
//
// Read returns what was published before, also by an earlier process; nothing where there was nothing. It
// reads where Publish writes, so there is no state besides.
//
// # Ownership
//
// Labels of a node belong to whoever wrote them. NodeLabels records what it wrote in an annotation of the
// Node and withdraws exactly that. A label of the set that somebody else wrote is overwritten, and told; a
// label that cannot be true of the node is removed, and told; no other label is touched, whatever its prefix.
//
// # Restart
//
// A file, a NodeFeature object and labels outlive the process and its pod: the object is owned by the Node.
// Only an empty set removes them.
//
// # Refusals
//
// A set that NFD would not take (size of the file, length of the node's name in a label) is an error and
// leaves what was published as it is. So is a recorded annotation of a version that is not known.
package publish
