// Package share says what a pod asks of GCU cards and what it holds of them over its life.
//
// Promise: Parse turns a pod into a Request, or nil when the pod asks for no GCU, or an *InvalidError
// that names the field, the value and what is allowed. A pod asks only through container limits;
// annotations refine a request and never make one. Charges turns the cards of a pod's containers into
// what the pod holds on each card before and after its init containers are done. All amounts are MiB
// per card and all arithmetic saturates, so that no input wraps around to a small number.
//
// The package is pure: no I/O, no clock, no logging. It reads core/v1 types only.
package share
