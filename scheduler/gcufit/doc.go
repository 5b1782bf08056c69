// Package gcufit is the scheduler plugin GCUFit: it places pods that ask for GCU cards or parts of
// them, and is not there for all others (PreFilter and PreScore skip them).
//
// One file per extension point. All profiles of a process share one core: the ledger, its feed, the
// pods that wait, and the settling of lost answers.
//
// Promise. Filter, Score and Reserve do no I/O. Filter and Score look at a view taken in PreFilter;
// Reserve chooses on the ledger of its own moment and charges it there, so two pods in flight never
// get the same room. Bind writes once: the Binding carries the record, and names the pod's UID and
// resourceVersion as preconditions. When the answer to it is lost, the reservation is doubtful and
// stays until the API shows what happened; a Binding that may still be on its way is fenced off by a
// write to the pod, after which the API server can only refuse it.
//
// Restart and fail-over. Nothing is kept on disk. Before the first GCU pod is looked at, the ledger is
// rebuilt from the API as of that moment, and each unbound GCU pod is written to once, so that no Binding
// of the process before can take effect any more. A process that may have lost its lease, by its own
// clock, looks at no GCU pod and sends no Binding; one that got it again begins anew.
package gcufit
