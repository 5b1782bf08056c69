// Package discovery keeps the labels of one node what its cards are: it reads (package source), makes labels
// (package labels) and publishes (package publish), every minute and at once when a card has changed.
//
// # Promise
//
// Run publishes within one look of a change, and publishes nothing while nothing changes. Labels never go away
// because something failed: not when the process ends or starts, not when the driver is slow, hangs or is not
// loaded, not when the API server is away. They go when cards are gone, and only when they have been gone for
// RemovalDelay, so that a card that is reset or a bus that is scanned anew changes nothing. The same holds for
// a lower number of cards.
//
// Where the Node says enflame.com/gcu.deploy.gfd=false, its labels are the administrator's: nothing is
// published. Labels that were written directly stay as they are and belong to nobody; what was written for NFD
// is withdrawn, since NFD would set the labels back.
//
// A label that somebody else set and that is a documented label of discovery is overwritten, and an event of
// the Node says by what and how to keep one's own.
//
// # Restart
//
// What was published is read from where it was published; nothing else is kept. The delay before a removal
// begins anew.
//
// # Refusals
//
// A label set that could not be published is tried again at the next look. The Node that cannot be read counts
// as it was read last; before it was read once, nothing is published, since it may say that nothing may be.
package discovery
