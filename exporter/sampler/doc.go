// Package sampler reads all cards of a host in the background, so that nobody who wants to know waits for a card.
//
// # Promise
//
// Each card is asked on its own, again and again, each time within a deadline. A card that does not answer costs
// only its own readings, and never more than one goroutine. What is told is of the last look or not at all: a
// reading that fails now has no value now, whatever it was before.
//
// Two things are added up over the looks and never go down while the sampler lives: the energy, from the power of
// each two looks that follow one another, and the records of the driver's error log, each once by number and time, so
// that a log that was trimmed or cleared counts on.
//
// # Assumptions
//
// The source obeys deadlines (eflib.Telemetry).
//
// # Restart
//
// Nothing is kept on disk; both sums begin anew. Cards come and go with the source's states; a card of another uuid in the same place is another
// card.
//
// # Refusals
//
// Readings older than MaxAge are not told. A card without any is told as not answering, with the reason.
package sampler
