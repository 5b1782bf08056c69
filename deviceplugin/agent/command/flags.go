package command

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// flags are the command's flags. Their environment variables are for the manifests of older releases.
type flags struct {
	node, kubeconfig, hostRoot, stateDir, kubeletDir, cdiDir, criSocket, nriSocket, listen, instance string
	deviceSource, machine, controlFile, unit, unrecorded, healthCheck, podResources, bookSocket      string

	sliceCount                              int64
	forceUnit, passDeviceSpecs, engineCheck bool
	resources                               []string
	alias                                   string
	healthInterval, probation               time.Duration
	verbosity                               int
	kubeQPS                                 float32
}

func (f *flags) add(set *pflag.FlagSet, getenv func(string) string) {
	host, _ := os.Hostname() // used only where nothing else is set
	set.StringVar(&f.node, "node-name", first(getenv("NODE_NAME"), host), "name of this node's Node object")
	set.StringVar(&f.kubeconfig, "kubeconfig", getenv("KUBECONFIG"), "how to reach the API server; empty is the pod's service account")
	set.StringVar(&f.hostRoot, "host-root", first(getenv("GCU_HOST_ROOT"), "/"), "where the host's /sys, /dev and /etc are")
	set.StringVar(&f.stateDir, "state-dir", "/var/lib/enflame-gcu", "where the node's book and the cards' history are kept")
	set.StringVar(&f.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "kubelet's folder, with device-plugins and pod-resources")
	set.StringVar(&f.podResources, "pod-resources-socket", "", "kubelet's pod-resources socket, where it is not below --kubelet-dir (kubelet's --root-dir moves it, and not device-plugins)")
	set.StringVar(&f.bookSocket, "book-socket", contract.BookSocket, "where the exporter is told who holds what; empty tells nobody")
	set.StringVar(&f.cdiDir, "cdi-dir", "/var/run/cdi", "where CDI files of tickets go")
	set.StringVar(&f.criSocket, "cri-socket", "/run/containerd/containerd.sock", "the engine's socket, to ask whether CDI is on; need not exist")
	set.StringVar(&f.nriSocket, "nri-socket", "/var/run/nri/nri.sock", "the engine's NRI socket, to compare each container's cards with its record once more; need not exist")
	set.BoolVar(&f.engineCheck, "engine-check", true, "offer shares only when the engine is known to resolve CDI names")
	set.StringVar(&f.listen, "listen", ":9401", "address of /metrics, /healthz and /readyz; empty serves none")
	set.StringVar(&f.instance, "instance", first(getenv("POD_UID"), strconv.Itoa(os.Getpid())), "tells this process's sockets from those of another agent of this node")
	set.StringVar(&f.deviceSource, "device-source", source.Auto, "where cards are seen: "+strings.Join(source.Names(), ", "))
	set.StringVar(&f.machine, "machine", "", "the made-up machine of source sim")
	set.StringVar(&f.controlFile, "control-file", "", "faults of the made-up machine")
	set.StringSliceVar(&f.resources, "resources", []string{"whole", "memory", "slices"}, "what is served: whole, memory, slices")
	set.StringVar(&f.alias, "resource-alias", "", "a second name under which whole cards are served too, such as enflame-tech.com/gcu; the scheduler needs it as resourceAlias")
	set.StringVar(&f.unit, "memory-unit", "1", "GiB of one unit of gcu-memory: 1, 0.1, 0.01 or 0.001")
	set.BoolVar(&f.forceUnit, "force-memory-unit", false, "serve a memory unit that gives one card more than 1024 device IDs")
	set.Int64Var(&f.sliceCount, "slice-count", contract.DefaultSliceCount, "slices of one card")
	set.BoolVar(&f.passDeviceSpecs, "pass-device-specs", false, "let kubelet itself pass whole cards, as the static CPU manager needs")
	set.StringVar(&f.unrecorded, "unrecorded", agent.Adopt, "pods that come without a record: adopt (the node places them) or refuse")
	checks := "true"
	if getenv("DP_DISABLE_HEALTHCHECKS") != "" {
		checks = "false"
	}
	set.StringVar(&f.healthCheck, "health-check", checks, "false: cards whose health cannot be asked count as well (also DP_DISABLE_HEALTHCHECKS)")
	set.DurationVar(&f.healthInterval, "health-interval", 5*time.Second, "how often the cards are looked at")
	set.DurationVar(&f.probation, "health-probation", health.DefaultProbation, "how long a card that was at fault has to be well before it takes pods again, the first time")
	set.IntVarP(&f.verbosity, "v", "v", 0, "how much is logged, 0 to 5")
	set.Float32Var(&f.kubeQPS, "kube-api-qps", 20, "requests a second to the API server")
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

var kinds = map[string]share.Kind{"whole": share.Whole, "memory": share.Memory, "slices": share.Slices}

// agentOptions turns flags into options. An error names the flag and what is allowed.
func (f *flags) agentOptions() (agent.Options, error) {
	o := agent.Options{
		Node: f.node, PluginDir: filepath.Join(f.kubeletDir, "device-plugins"),
		PodResources: filepath.Join(f.kubeletDir, "pod-resources", "kubelet.sock"),
		CDIDir:       f.cdiDir, StateDir: f.stateDir, HostRoot: f.hostRoot, Instance: f.instance,
		SliceCount: f.sliceCount, PassDeviceSpecs: f.passDeviceSpecs, ForceUnit: f.forceUnit, Unrecorded: f.unrecorded,
		HealthInterval: f.healthInterval, NRISocket: f.nriSocket, BookSocket: f.bookSocket,
	}
	if f.podResources != "" {
		o.PodResources = f.podResources
	}
	if f.node == "" {
		return o, errors.New("--node-name: want the name of this node's Node object")
	}
	for _, word := range f.resources {
		kind, ok := kinds[word]
		if !ok {
			return o, fmt.Errorf("--resources %q: want whole, memory or slices", word)
		}
		if !slices.Contains(o.Serve, kind) {
			o.Serve = append(o.Serve, kind)
		}
	}
	if len(o.Serve) == 0 {
		return o, errors.New("--resources: want at least one of whole, memory, slices")
	}
	slices.Sort(o.Serve)
	unit, err := unitMiB(f.unit)
	if err != nil {
		return o, err
	}
	o.UnitMiB = unit
	on, err := strconv.ParseBool(f.healthCheck)
	if err != nil {
		return o, fmt.Errorf("--health-check %q: want true or false", f.healthCheck)
	}
	o.Health = health.Options{Off: !on, Thresholds: health.Thresholds{Probation: f.probation}}
	if f.engineCheck {
		o.Engine = agent.CRIProbe{Socket: f.criSocket}
	}
	return o, nil
}

// unitMiB reads a memory unit in GiB, the values of the operator's memoryUnit; MiB are rounded down.
func unitMiB(text string) (int64, error) {
	gib, err := strconv.ParseFloat(text, 64)
	if err != nil || !slices.Contains([]float64{1, 0.1, 0.01, 0.001}, gib) {
		return 0, fmt.Errorf("--memory-unit %q: want 1, 0.1, 0.01 or 0.001 (GiB)", text)
	}
	return int64(math.Floor(gib * 1024)), nil
}
