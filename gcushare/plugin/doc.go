// Package plugin gives containers the cards that their pod's record names. It is the one arbiter of a
// node: the fractional resources and whole cards all go through it.
//
// # The way of a container
//
//	kubelet                         agent                                  engine
//	Allocate(IDs)             ───▶  ticket: a fresh CDI name, nothing else
//	writes its checkpoint
//	PreStartContainer(IDs)    ───▶  whose IDs? (checkpoint, pod UID)
//	                                the record of that pod, checked
//	                                book, then CDI file of each ticket
//	create container          ─────────────────────────────────────────▶  resolves the ticket
//
// # Promise
//
// A container sees exactly the cards of its own entry in the record of the pod with its UID, or it is
// not created. No step looks at a pod's size, age or order. Allocate refuses nothing, since kubelet would
// fail the pod for good; PreStart refuses within RefuseAfter with a *Refusal that names the container
// and the reason, and kubelet tries again.
//
// A ticket's file is written once: under another name first, synced, renamed, never changed. Names are
// random and never used again. PreStart returns only when a CDI cache in this process, fed as an
// engine's is, resolves the name.
//
// The book is written before the files, so that what a container may have seen is always in it. What
// the book's pods hold on a card never passes the card, whatever records say.
//
// # Restart
//
// Open reads the book; one that cannot be read is set aside and told. Restore then completes the book
// from kubelet's checkpoint and the pods' records and writes files that are missing, as after a reboot;
// it belongs before registration. Collect drops the tickets of pods that are gone and of containers that
// never started.
//
// # Refusals
//
// See Cause. A pod without a record is refused until it has one.
package plugin
