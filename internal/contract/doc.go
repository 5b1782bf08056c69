// Package contract holds every word that crosses a process boundary: resource names, labels,
// annotations, device paths and the JSON formats that one component writes and another reads.
//
// A name stands here once and nowhere else. Names marked as existing among Enflame users are kept to
// the letter; the formats are versioned. Each decoder is strict: a format it cannot read in full is an
// error and never a default, because a reader that guesses at a record sells a card twice.
//
// All names derive from the first entry of registerResource in topscloud.json (Names). The package
// imports the standard library only and does no I/O.
package contract
