package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
	"github.com/topscloud/topscloud/nfd/source"
)

// flags are the command's flags. Each has an environment variable where a manifest may want to set it.
type flags struct {
	node, kubeconfig, hostRoot, output, outputFile, namespace, listen string
	machine, controlFile, library, tool                               string

	order, domains                              []string
	sleep, watch, removalDelay                  time.Duration
	oneshot, dryRun, withdraw                   bool
	noTimestamp, refreshTimestamp, presentLabel bool
	verbosity                                   int
	badEnv                                      []error
}

func (f *flags) add(set *pflag.FlagSet, getenv func(string) string) {
	host, _ := os.Hostname() // used only where nothing else is set
	set.StringVar(&f.node, "node-name", first(getenv("NODE_NAME"), host), "name of this node's Node object")
	set.StringVar(&f.kubeconfig, "kubeconfig", getenv("KUBECONFIG"), "how to reach the API server; empty is the pod's service account")
	set.StringVar(&f.hostRoot, "host-root", first(getenv("GCU_HOST_ROOT"), "/"), "where the host's /sys is")
	set.StringVar(&f.output, "output", first(getenv("GFD_OUTPUT"), publish.NameFile), "where labels are published: "+strings.Join(publish.Names(), ", "))
	set.StringVarP(&f.outputFile, "output-file", "o", first(getenv("GFD_OUTPUT_FILE"), publish.DefaultFile), "the features file")
	set.StringVar(&f.namespace, "namespace", first(getenv("POD_NAMESPACE"), "kube-system"), "where the NodeFeature object is")
	set.StringVar(&f.listen, "listen", first(getenv("GFD_LISTEN"), ":9402"), "address of /metrics, /healthz and /readyz; empty serves none")
	set.StringSliceVar(&f.order, "device-source", words(first(getenv("GFD_DEVICE_SOURCE"), "auto")), "where cards are read, the first that is there: "+strings.Join(source.Places(), ", ")+" (auto is libefml,efsmi,sysfs; efsmi-json is unproven)")
	set.StringVar(&f.machine, "machine", "", "the made-up machine of source sim")
	set.StringVar(&f.controlFile, "control-file", "", "faults of the made-up machine")
	set.StringVar(&f.library, "libefml", "", "the file of libefml; empty searches for it")
	set.StringVar(&f.tool, "efsmi", "", "the file of efsmi; empty searches for it")
	set.StringSliceVar(&f.domains, "extra-domains", words(getenv("GFD_EXTRA_DOMAINS")), "domains that get all labels in addition, for example "+contract.TKEDomain)
	set.DurationVar(&f.sleep, "sleep-interval", f.duration("GFD_SLEEP_INTERVAL", getenv, time.Minute), "how often everything is looked at")
	set.DurationVar(&f.watch, "watch-interval", 10*time.Second, "how often the cards are looked at for changes; events of the driver come at once")
	set.DurationVar(&f.removalDelay, "removal-delay", 30*time.Second, "how long cards have to be gone before labels say so")
	set.BoolVar(&f.oneshot, "oneshot", f.truth("GFD_ONESHOT", getenv), "publish once and end")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the labels as sorted lines key=value and end")
	set.BoolVar(&f.withdraw, "withdraw", false, "remove what was published and end")
	set.BoolVar(&f.noTimestamp, "no-timestamp", f.truth("GFD_NO_TIMESTAMP", getenv), "leave out the timestamps")
	set.BoolVar(&f.refreshTimestamp, "refresh-timestamp", false, "move gfd.latestLabeledTimestamp with each look; this writes every time")
	set.BoolVar(&f.presentLabel, "present-label", f.truth("GFD_PRESENT_LABEL", getenv), "publish gcu.present as well, where no rule of NFD sets it")
	set.IntVarP(&f.verbosity, "v", "v", 0, "how much is logged, 0 to 5")
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func words(text string) []string {
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

func (f *flags) truth(key string, getenv func(string) string) bool {
	text := getenv(key)
	if text == "" {
		return false
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		f.badEnv = append(f.badEnv, fmt.Errorf("environment %s %q: want true or false", key, text))
	}
	return is
}

func (f *flags) duration(key string, getenv func(string) string, otherwise time.Duration) time.Duration {
	text := getenv(key)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		f.badEnv = append(f.badEnv, fmt.Errorf("environment %s %q: want a time such as 60s", key, text))
	}
	return d
}

// validate names the flag and what is allowed.
func (f *flags) validate() error {
	errs := slices.Clone(f.badEnv)
	if f.node == "" {
		errs = append(errs, errors.New("--node-name: want the name of this node's Node object"))
	}
	if !slices.Contains(publish.Names(), f.output) {
		errs = append(errs, fmt.Errorf("--output %q: want one of %s", f.output, strings.Join(publish.Names(), ", ")))
	}
	if f.outputFile == "" {
		errs = append(errs, errors.New("--output-file: want a path"))
	}
	for _, domain := range f.domains {
		if bad := validation.IsDNS1123Subdomain(domain); len(bad) > 0 {
			errs = append(errs, fmt.Errorf("--extra-domains %q: %s", domain, bad[0]))
		}
	}
	for name, d := range map[string]time.Duration{"--sleep-interval": f.sleep, "--watch-interval": f.watch, "--removal-delay": f.removalDelay} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s %s: want more than 0", name, d))
		}
	}
	if f.noTimestamp && f.refreshTimestamp {
		errs = append(errs, errors.New("--no-timestamp and --refresh-timestamp: want one of them"))
	}
	modes := 0
	for _, on := range []bool{f.oneshot, f.dryRun, f.withdraw} {
		if on {
			modes++
		}
	}
	if modes > 1 {
		errs = append(errs, errors.New("--oneshot, --dry-run, --withdraw: want one of them"))
	}
	return errors.Join(errs...)
}

func (f *flags) labelOptions(names *contract.Names) labels.Options {
	return labels.Options{Names: names, Present: f.presentLabel, NoTimestamp: f.noTimestamp, Touch: f.refreshTimestamp, Domains: f.domains}
}

// sourceOptions are those of the device source.
func (f *flags) sourceOptions() source.Options {
	o := source.Options{
		Order: f.order, HostRoot: f.hostRoot, Library: f.library, Tool: f.tool,
		Machine: f.machine, ControlFile: f.controlFile, Interval: f.watch,
	}
	if f.machine != "" {
		o.Node = f.node
	}
	return o
}
