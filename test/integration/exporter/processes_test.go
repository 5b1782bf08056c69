package exporter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/test/integration/nodetest"
)

// host writes files of the node's host.
func host(t *testing.T, n *nodetest.Node, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(n.HostRoot(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// process makes the host have a process, below the control group of a pod or, without one, of a service.
func process(t *testing.T, n *nodetest.Node, pid int, name string, pod *v1.Pod) {
	t.Helper()
	group := "/system.slice/monitor.service"
	if pod != nil {
		group = "/kubepods/burstable/pod" + string(pod.UID) + "/c1"
	}
	dir := fmt.Sprintf("proc/%d/", pid)
	host(t, n, map[string]string{
		dir + "stat":   fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 1 1\n", pid, name),
		dir + "cgroup": "0::" + group + "\n",
	})
}

// What processes use of a card is told of the pods whose they are, and so is that it is more than was given.
func TestProcesses(t *testing.T) {
	t.Parallel()
	n := nodetest.New(t, nodetest.Options{})
	host(t, n, map[string]string{
		"proc/2/stat": "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 18 0 0\n",
		"proc/uptime": "5000.00 1.00\n",
	})
	share := n.Pod("share", one(n, nodetest.Memory, 8, 8*gib, 0))
	modest := n.Pod("modest", one(n, nodetest.Memory, 8, 8*gib, 0))
	whole := n.Pod("whole", one(n, nodetest.Whole, 1, 32*gib, 1))
	for _, p := range []*v1.Pod{share, modest, whole} {
		n.Run(p)
	}
	process(t, n, 101, "train", share)
	process(t, n, 102, "loader", share)
	process(t, n, 103, "serve", modest)
	process(t, n, 104, "big", whole)
	process(t, n, 105, "monitor", nil)
	n.Faults("process 0 101 6144", "process 0 102 4096", "process 0 103 8192", "process 1 104 30000", "process 2 105 512")
	e := start(t, n, sim(n)...)
	told := func(what, metric, labels string, want ...string) {
		t.Helper()
		slices.Sort(want)
		e.until(what, func(p page) error {
			if diff := cmp.Diff(want, p.series(metric, labels)); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}
	bytes := func(mib int64, rest string) string { return fmt.Sprintf("%d %s", mib<<20, rest) }
	told("processes are seen", "process_mapping_available", "", "1")
	told("each process is in its pod", "process_memory_bytes", "minor_number pid process pod_name container_name pod_uid",
		bytes(6144, "0 101 train share c "+string(share.UID)), bytes(4096, "0 102 loader share c "+string(share.UID)),
		bytes(8192, "0 103 serve modest c "+string(modest.UID)), bytes(30000, "1 104 big whole c "+string(whole.UID)),
		bytes(512, "2 105 monitor   "))
	told("use is added up", "pod_used_bytes", "minor_number pod_name", bytes(10240, "0 share"), bytes(8192, "0 modest"), bytes(30000, "1 whole"))
	told("one uses more than it was given", "share_exceeded", "minor_number pod_name", "1 0 share", "0 0 modest", "0 1 whole")
	told("what nobody holds", "unattributed_memory_bytes", "minor_number", bytes(0, "0"), bytes(0, "1"), bytes(512, "2"), bytes(0, "3"))
	// A process ends; the pod is within its share again.
	if err := os.RemoveAll(filepath.Join(n.HostRoot(), "proc/102")); err != nil {
		t.Fatal(err)
	}
	n.Faults("process 0 101 6144", "process 0 103 8192", "process 1 104 30000", "process 2 105 512")
	told("it uses less", "share_exceeded", "minor_number pod_name", "0 0 share", "0 0 modest", "0 1 whole")
	// Its pod goes and a process is left behind: it holds nothing now, and what it uses is nobody's.
	n.Remove(share)
	told("a process is left behind", "unattributed_memory_bytes", "minor_number", bytes(6144, "0"), bytes(0, "1"), bytes(512, "2"), bytes(0, "3"))
	told("whose pod holds nothing", "share_exceeded", "minor_number pod_name", "0 0 modest", "0 1 whole")
}
