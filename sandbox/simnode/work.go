package simnode

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

// Made-up work: each running container with cards has one process on each of them, which holds a part of what the
// container was given. The process is in the pod's control group as kubelet's systemd driver names it, below a /proc of
// the node's own, so that the exporter finds its pod as it does on a real node.

// workers are the processes of a node's containers. They are touched by the node's worker only.
type workers struct {
	proc    string // the node's /proc
	next    int
	running map[worker]process
}

type worker struct {
	pod       types.UID
	container string
}

type process struct {
	pid  int
	seen Seen
}

const (
	firstPID = 1000
	// usedPart of what a container was given is in use, in percent.
	usedPart = 60
	// threadDaemon is process 2 of a host's first PID namespace, by which that is known for what it is.
	threadDaemon = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 18 0 0 18446744073709551615\n"
)

// newWorkers makes a /proc without containers.
func newWorkers(hostRoot string) (*workers, error) {
	w := &workers{proc: filepath.Join(hostRoot, "proc"), next: firstPID, running: map[worker]process{}}
	if err := os.MkdirAll(filepath.Join(w.proc, "2"), 0o755); err != nil {
		return nil, err
	}
	// It was long since the machine booted when the first container started.
	return w, writeAll(w.proc, [][2]string{{"2/stat", threadDaemon}, {"uptime", "100000.00 0.00\n"}})
}

func writeAll(dir string, files [][2]string) error {
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// set starts and ends processes so that those of a pod are those of its running containers.
func (w *workers) set(pod types.UID, status *corev1.PodStatus, seen map[string]Seen) error {
	runs := map[string]bool{}
	if status != nil {
		for _, cs := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
			runs[cs.Name] = cs.State.Running != nil
		}
	}
	for k, p := range w.running {
		if k.pod == pod && !runs[k.container] {
			delete(w.running, k)
			if err := os.RemoveAll(filepath.Join(w.proc, strconv.Itoa(p.pid))); err != nil {
				return err
			}
		}
	}
	for _, container := range slices.Sorted(maps.Keys(seen)) {
		k := worker{pod, container}
		if _, there := w.running[k]; there || !runs[container] {
			continue
		}
		pid := w.next
		w.next++
		dir := filepath.Join(w.proc, strconv.Itoa(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		unit := "kubepods-pod" + strings.ReplaceAll(string(pod), "-", "_") + ".slice"
		err := writeAll(dir, [][2]string{
			{"cgroup", "0::/kubepods.slice/" + unit + "/cri-containerd-" + fmt.Sprintf("%064x", pid) + ".scope\n"},
			{"stat", fmt.Sprintf("%d (worker) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %d 1 1 18446744073709551615\n", pid, 9000000)},
		})
		if err != nil {
			return err
		}
		w.running[k] = process{pid, seen[container]}
	}
	return nil
}

// faults are what the cards tell of the processes. A container with whole cards is told no amount: it may use all.
func (w *workers) faults(devices []contract.NodeDevice) []sim.Fault {
	var out []sim.Fault
	for _, p := range w.running {
		minors := strings.Split(p.seen.Cards, ",")
		given, err := strconv.ParseInt(p.seen.MemoryMiB, 10, 64)
		if err != nil {
			given = 0
			for _, d := range devices {
				if slices.Contains(minors, strconv.Itoa(d.Minor)) {
					given += d.MemoryMiB
				}
			}
		}
		each := given / int64(len(minors)) * usedPart / 100
		for _, text := range minors {
			if minor, err := strconv.Atoi(text); err == nil {
				out = append(out, sim.Fault{Kind: "process", Minor: minor, Args: []string{strconv.Itoa(p.pid), strconv.FormatInt(each, 10)}})
			}
		}
	}
	slices.SortFunc(out, func(a, b sim.Fault) int {
		return cmp.Or(cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Args[0], b.Args[0]))
	})
	return out
}

// ring joins the T20 cards of a node, which have an interconnect: port 0 of each leads to port 1 of the next.
func ring(devices []contract.NodeDevice) []sim.Fault {
	var round []int
	for _, d := range devices {
		if d.Model == "T20" {
			round = append(round, d.Minor)
		}
	}
	if len(round) < 2 {
		return nil
	}
	var out []sim.Fault
	for i, minor := range round {
		next, before := round[(i+1)%len(round)], round[(i+len(round)-1)%len(round)]
		out = append(out,
			sim.Fault{Kind: "port", Minor: minor, Args: []string{"0", strconv.Itoa(next), "1"}},
			sim.Fault{Kind: "port", Minor: minor, Args: []string{"1", strconv.Itoa(before), "0"}})
	}
	return out
}
