// Package demo submits the example manifests to a sandbox and judges where the pods went.
//
// Each pod of an example says by annotation where it belongs: gcu.sandbox/expect is running or pending,
// gcu.sandbox/expect-cards the number of cards in its record, followed by same-switch where they have
// to sit below one switch ("2 same-switch"). Run prints a table and the reason of each pod that waits,
// and returns an error that names every pod that is not where it should be. Where nodes run the real agent it then
// prints the labels that the pods choose nodes by, which feature discovery must have written, and the exporters, each
// of which must name as many holders of cards as the records of its node's pods.
package demo
