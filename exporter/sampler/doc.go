// Package sampler reads all cards of a host in the background, so that nobody who wants to know waits for a card.
//
// # Promise
//
// Each card is asked on its own, again and again, each time within a deadline. A card that does not answer costs
// only its own readings, and never more than one goroutine. What is told is of the last look or not at all: a
// reading that fails now has no value now, whatever it was before.
//
// # Assumptions
//
// The source obeys deadlines (eflib.Telemetry).
//
// # Restart
//
// Nothing is kept. Cards come and go with the source's states; a card of another uuid in the same place is another
// card.
//
// # Refusals
//
// Readings older than MaxAge are not told. A card without any is told as not answering, with the reason.
package sampler
