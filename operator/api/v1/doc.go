// Package v1 is the API of the operator: the custom resource GcuResource of group topsops.enflame.com, by which an
// administrator says which parts of the stack run in a cluster.
//
// # Promise
//
// Custom resources that were written for the vendor's operator are accepted unchanged and read back with nothing
// lost. A key that is misspelt is refused by clients that ask for strict checks, as kubectl does, and is never kept
// as if it meant something.
//
// What the API server stores is what the user wrote: the schema has no defaults, so a GitOps tool sees no
// difference. Normalised fills in defaults on a copy, in the program that needs them.
//
// # What is not managed
//
// Old resources name parts that this operator does not run, nightingale and volcano. They are stored whole, whatever
// is in them, and Unmanaged lists them.
//
// # Refusals
//
// The schema refuses what can be told from one value or a few, with the field and what is allowed. Validate tells
// the same and what a schema cannot: label syntax, names twice, two components that would be one workload. The CRD
// of a cluster may be older than the program that reads it, so a reader validates again.
//
// # Files
//
// zz_generated.deepcopy.go and manifests/yaml/gcu-operator-crd.yaml are made from the types by "make generate".
//
// +kubebuilder:object:generate=true
// +groupName=topsops.enflame.com
package v1
