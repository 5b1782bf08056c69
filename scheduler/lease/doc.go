// Package lease tells a scheduler process whether it may still write, by its own clock alone.
//
// The problem. Leader R1 is paused for half a minute: its machine swaps, its container is frozen, its
// renewals do not get through. Successor R2 takes the lease and places pods. R1 goes on where it stood,
// and until its own elector looks at a clock it believes that it leads. What it then writes rests on a
// ledger that knows nothing of R2.
//
// Promise. A Hold is closed before any other candidate can get the lease: it counts from the renew time
// that the last renewal that succeeded carries, for less than the time that others wait after they saw
// that, which is later. A term is one time of holding the lease. Whoever asks with the term of an earlier
// time is refused, for another scheduler may have led in between.
//
// Assumptions. Clocks of two machines go at about the same speed; they need not agree. Candidates keep
// the rules of client-go's elector. Nobody deletes the Lease or writes it by hand: then its next holder
// waits for nobody, and this process learns of it at its next renewal only, within its retry period.
//
// Asking does no I/O. What passes between the answer and the write is not covered, since a process can
// be paused there too; that is what the precondition of each Binding and the take-over are for.
package lease
