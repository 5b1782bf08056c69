// Package kubelettest imitates the device manager of kubelet 1.37 over real sockets: registration,
// the stream of devices, admission, container starts, the checkpoint, restarts and pod-resources.
//
// # What it keeps true
//
//   - Admission is serial. Each container of a pod, init containers first, gets free healthy IDs in no
//     promised order; an ordinary init container's IDs are given again to later containers of its pod.
//   - An error from Allocate, or too few IDs, makes the pod Failed for good.
//   - The checkpoint is written before Admit returns, and when the list of devices changes.
//   - PreStartContainer comes before each start of a container, with a deadline of 30 s, and an error
//     leaves the pod as it is. Between a restart and the plugin's registration it is not called.
//   - IDs of a pod that is gone are free again at the next admission or pod-resources List, not before.
//   - A restart removes all sockets in the folder, reads the checkpoint, and admits the pods again before any
//     plugin has registered: those whose container does not run are Failed then.
//     (The real one opens its socket first, and a plugin that is quick may be back in time; this is the worse end.)
//   - A plugin that registers a path twice loses the path (see package kubelet).
//   - pod-resources List has no UIDs, leaves ordinary init containers out, and is limited to 100 calls a
//     second with a burst of 10.
//
// TestConformance in test/e2e/node plays the same scenarios here and on the real one.
//
// # What it leaves out
//
// NUMA alignment (TopologyManager policy none is imitated), CPU and memory managers, the scheduler's
// predicates, and the five minutes after which a stopped resource is forgotten.
package kubelettest
