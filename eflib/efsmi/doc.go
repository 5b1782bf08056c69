// Package efsmi reads the cards from what the vendor's tool efsmi prints: the fallback where the library
// cannot be loaded.
//
// # What it reads
//
// "efsmi -q", groups of "key : value" under "DEV ID n", in the spellings of two generations of releases;
// and, where a release prints something else there, the table of "efsmi" without arguments: two rows a
// card, without uuid, health and memory in use.
//
// "efsmi -q --json-format" of newer releases is not read: its keys are not proven here, and a guessed
// format would be worse than the text that is known.
//
// # Promise
//
// What cannot be understood of one card is an error about that card and hides no other. A value that
// cannot be true, or is in another unit than expected, is an error of its reading.
//
// # Assumptions
//
//   - One run prints all cards, so a card that hangs can hang the tool and hide all of them. A run that
//     does not end in time is killed and costs one goroutine until the kernel lets go of it.
//   - A report of less than a tenth of a second ago answers another question; the readings have its values,
//     not older ones.
//   - The bus id of the table has two digits of the domain, so domains above ff cannot be told from it.
//
// # Refusals
//
// Only file run.go starts a process: the tool, with fixed arguments, a deadline and a limit on what it
// prints. Nothing is ever changed through it.
package efsmi
