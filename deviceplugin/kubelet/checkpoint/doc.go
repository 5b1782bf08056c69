// Package checkpoint reads the file in which kubelet keeps what it gave to whom: device-plugins/
// kubelet_internal_checkpoint. It is the only place that joins a pod's UID, a container, the device IDs
// and the plugin's own answer.
//
// # Promise
//
// Parse returns what kubelet itself would load from the same bytes, or an error: the checksum is
// computed as kubelet computes it. An entry whose answer cannot be decoded does not hide the others; it
// says so in Entry.Err. A Reader parses each version of the file once.
//
// # Assumptions
//
// The form is the one written by kubelet 1.34 to 1.37. It carries no version. Kubelet hashes a printout of
// its Go value, type names included, so the types here are named as kubelet's are, and a field that a
// later kubelet adds makes the checksum differ. That is an error here, on purpose: a file that cannot
// be checked is not the truth, and callers have another source (package kubelet).
//
// Kubelet replaces the file by rename after writing it whole, so a reader sees one version or another,
// never a mix.
package checkpoint
