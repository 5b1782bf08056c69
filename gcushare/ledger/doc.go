// Package ledger knows who holds what: one concrete type, one arithmetic, in MiB per card.
//
// A pod's way through it:
//
//	          Assume            Observe (bound, with record)
//	(absent) ───────▶ in flight ────────────────────────────▶ bound ──▶ Release
//	             Forget ◀─┘ │ Doubt                            ▲  (deleted, succeeded, failed)
//	                        ▼                                  │
//	                     doubtful ── Observe or Settle ────────┘ or gone
//
// A pod bound by another scheduler is unrecorded: its limit is charged at once to the emptiest cards
// until its record appears. A record that cannot be read, or that contradicts the node, closes the
// node for every new holder until it is repaired or its pod is gone. So does an unrecorded pod that
// was marked overdue.
//
// Promise: what Assume grants never makes the holders of a card pass its memory, whatever else was in
// flight; Forget after Assume leaves the ledger as it was, to the bit; a pod once released is never
// charged again, however late an old event of it arrives. The state of a node is a function of its
// capacity and the set of its holders alone, never of the order in which they came, so a restarted
// scheduler that saw the same objects holds the same ledger.
//
// Views are immutable and cost the same however many nodes there are. Nothing here does I/O, waits,
// logs or reads a clock; callers act on what the methods return.
package ledger
