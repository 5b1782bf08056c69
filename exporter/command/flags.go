package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/internal/contract"
)

// flags are the command's flags.
type flags struct {
	listen                              []string
	systemd                             bool
	configFile, path                    string
	maxRequests                         int
	noExporterMetrics, disableDefaults  bool
	on, off                             map[string]*bool
	once, baseUnits                     bool
	node, hostRoot, deviceSource        string
	machine, controlFile                string
	bookSocket, podResources, pods, log string
	interval, deadline, maxAge          time.Duration
}

func (f *flags) add(set *pflag.FlagSet, getenv func(string) string) {
	host, _ := os.Hostname() // used only where nothing else is set
	if name := getenv("NODE_NAME"); name != "" {
		host = name
	}
	pods := getenv("MONIT_PODS")
	if pods == "" {
		pods = "true"
	}
	set.StringSliceVar(&f.listen, "web.listen-address", []string{":9400"}, "addresses to serve on")
	set.BoolVar(&f.systemd, "web.systemd-socket", false, "serve on sockets that systemd hands over")
	set.StringVar(&f.configFile, "web.config.file", "", "TLS and basic authentication, as Prometheus' exporters take them")
	set.StringVar(&f.configFile, "web.config", "", "older name of --web.config.file")
	set.StringVar(&f.path, "web.telemetry-path", "/metrics", "where the metrics are")
	set.IntVar(&f.maxRequests, "web.max-requests", 40, "scrapes at once; 0 is without limit")
	set.BoolVar(&f.noExporterMetrics, "web.disable-exporter-metrics", false, "leave out metrics about the exporter itself")
	set.BoolVar(&f.disableDefaults, "collector.disable-defaults", false, "collect only what a --collector flag names")
	f.on, f.off = map[string]*bool{}, map[string]*bool{}
	for _, g := range collector.Groups() {
		f.on[g] = set.Bool("collector."+g, false, "collect "+g+" (on unless defaults are disabled)")
		f.off[g] = set.Bool("no-collector."+g, false, "do not collect "+g)
	}
	set.BoolVar(&f.baseUnits, "base-units", false, "tell power, clocks and usage in watts, hertz and ratios as well")
	set.BoolVar(&f.once, "once", false, "print the metrics and end")
	set.StringVar(&f.node, "node-name", host, "the node's name, the value of label host")
	set.StringVar(&f.hostRoot, "host-root", getenv(contract.EnvHostRoot), "where the host's /sys and /dev are; empty is /")
	set.StringVar(&f.deviceSource, "device-source", source.Auto, "where cards are seen: "+strings.Join(source.Names(), ", "))
	set.StringVar(&f.machine, "machine", "", "the made-up machine of source sim")
	set.StringVar(&f.controlFile, "control-file", "", "faults of the made-up machine")
	set.StringVar(&f.bookSocket, "book-socket", contract.BookSocket, "where the node agent tells who holds what")
	set.StringVar(&f.podResources, "pod-resources-socket", "/var/lib/kubelet/pod-resources/kubelet.sock", "kubelet's pod-resources socket")
	set.DurationVar(&f.maxAge, "attribution-max-age", 15*time.Second, "how long agent or kubelet may be away until no pod is named")
	set.StringVar(&f.pods, "pods", pods, "false: say nothing of pods (also MONIT_PODS)")
	set.DurationVar(&f.interval, "sample-interval", 10*time.Second, "how often each card is asked")
	set.DurationVar(&f.deadline, "sample-deadline", 5*time.Second, "how long a card may take to answer")
	set.StringVar(&f.log, "log.level", "info", "debug, info, warn or error")
}

// check returns what the flags say wrong, by flag.
func (f *flags) check() (pods bool, err error) {
	pods, err = strconv.ParseBool(f.pods)
	switch {
	case err != nil:
		return false, fmt.Errorf("--pods (MONIT_PODS) %q: want true or false", f.pods)
	case f.node == "":
		return false, errors.New("--node-name: want the node's name")
	case !strings.HasPrefix(f.path, "/") || f.path == "/":
		return false, fmt.Errorf("--web.telemetry-path %q: want a path below /, for example /metrics", f.path)
	case f.maxRequests < 0:
		return false, fmt.Errorf("--web.max-requests %d: want 0 or more", f.maxRequests)
	case f.maxAge <= 0:
		return false, fmt.Errorf("--attribution-max-age %s: want more than 0", f.maxAge)
	case f.interval <= 0 || f.deadline <= 0:
		return false, fmt.Errorf("--sample-interval %s, --sample-deadline %s: want more than 0", f.interval, f.deadline)
	}
	for flag, path := range map[string]string{"book-socket": f.bookSocket, "pod-resources-socket": f.podResources} {
		if pods && !filepath.IsAbs(path) {
			return false, fmt.Errorf("--%s %q: want an absolute path", flag, path)
		}
	}
	return pods, nil
}

// groups returns the groups to collect, sorted.
func (f *flags) groups() ([]string, error) {
	var out []string
	for _, g := range collector.Groups() {
		if *f.on[g] && *f.off[g] {
			return nil, fmt.Errorf("--collector.%s and --no-collector.%s: want one of them", g, g)
		}
		if *f.on[g] || !f.disableDefaults && !*f.off[g] {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--collector.disable-defaults: want at least one of --collector.%s", strings.Join(collector.Groups(), ", --collector."))
	}
	return slices.Clip(out), nil
}
