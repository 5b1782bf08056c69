// Package telemetry shows the scheduler's account of the nodes as metrics.
//
// # Promise
//
// A scrape takes one view of the ledger, which is of one moment, and locks nothing for longer than that takes. A
// node that has no cards has no series. A node that is closed has one series that says why, in words that do not
// change between releases.
//
// # Refusals
//
// Before the first profile was made there is no ledger and there are no series.
package telemetry
