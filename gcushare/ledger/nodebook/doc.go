// Package nodebook is how a node's agent tells other programs of the node which container has which cards: a
// small HTTP interface on a socket that only root may open.
//
//	GET /v1/book          the book as it is now, a JSON object
//	GET /v1/book?watch=1  the same at once and again whenever it changed, one JSON object a line;
//	                      an empty line now and then shows that the agent is still there
//
// # Promise
//
// A holding names a running pod by its UID. It is there from the moment the container got its card until the
// container or its pod has ended; an init container that is done holds nothing. A book that is sent is complete:
// who missed some has lost nothing.
//
// A holding names its card by minor and uuid, and by PCI address while the agent sees the card with that uuid there.
// Holding.On compares all of them with what a reader sees.
//
// # Assumptions
//
// Fields are added, never renamed, within a version. A reader ignores what it does not know and refuses another
// version.
//
// # Restart
//
// In a rolling update the newer agent takes the socket over by renaming its own onto it. A watch of the older
// agent ends when that agent does, and the next one reaches the newer.
//
// # Refusals
//
// Nothing can be changed here. A book that cannot be read gives an error and no part of it.
package nodebook
