// Package feed keeps a ledger in step with the API: every kind of event of pods and nodes (additions,
// updates, deletions, deletions seen only as tombstones after a broken watch, a pod replaced by one of
// the same name) goes through one place.
//
// It charges the ledger and never grants anything. After a restart or fail-over it rebuilds the ledger
// from the informers' first list; WaitForSync returns once that list has been taken in whole. It starts
// no informers itself.
package feed
