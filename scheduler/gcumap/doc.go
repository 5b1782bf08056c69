// Package gcumap shows a cluster's GCU cards and who holds them.
//
// Read surveys the cluster, Build writes down what the survey's ledger says, and Draw makes a page of
// that.
//
// # Promise
//
// Every figure is the ledger's, the same one that the scheduler decides by; nothing here counts shares
// by rules of its own. Equal objects give equal output, whatever order they came in. Draw keeps within
// its width, counted in terminal columns, and lets no control character of an object through to the
// terminal. Map is a versioned format: within one APIVersion fields are added, never changed.
//
// # Assumptions
//
// Those of package survey.
//
// # Refusals
//
// What the caller may not read is named in Map.Incomplete and the figures are marked as lower bounds.
// Read fails only when neither nodes nor pods can be read, when a node asked for by name does not
// exist, and when the API does not answer.
package gcumap
