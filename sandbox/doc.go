// Package sandbox runs a real Kubernetes control plane on this machine, without containers: etcd,
// kube-apiserver, kube-controller-manager, the stock kube-scheduler and our gcu-scheduler as child
// processes, with simulated GCU nodes (package simnode) that behave towards the API like kubelets.
//
// Promises:
//   - Everything listens on 127.0.0.1, with TLS but for exporters, on ports that were free; RBAC is on. Each component
//     has its own client certificate and no more rights than it has in a real cluster. gcu-scheduler
//     is the service account kube-system/gcu-scheduler bound to the ClusterRole that ships in
//     manifests/yaml/gcu-scheduler-rbac.yaml, so a right that is missing there is missing here.
//   - Start returns when every part has said that it is ready, or with an error that carries the last
//     lines of the log of the part that did not.
//   - A data folder belongs to one running sandbox at a time (a file lock). Starting on a folder that
//     was used before resumes its cluster, on the same ports where they are still free.
//   - No process outlives its sandbox: the kernel kills the children of one that dies (package
//     process), and the next Start or Down on the folder ends whatever a pid file still names.
//
// Every part but etcd and the API server is optional, so a test can run a scheduler of its own against
// the rest. Without the controller manager the admission plugins that need it are off: pods need no
// service account, and a new node is not tainted.
//
// etcd runs without fsync: a machine that loses power may lose the sandbox's data.
package sandbox
