package contract

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Names is the full set of names derived from one resource such as "enflame.com/gcu".
// The zero value is not usable; take Default or NewNames. A Names is immutable and may be shared.
type Names struct {
	// Domain is the part before the slash ("enflame.com"), Type the part after it ("gcu").
	Domain, Type string

	// Resources a container puts in its limits.
	ResourceWhole  string // enflame.com/gcu: whole cards
	ResourceMemory string // enflame.com/gcu-memory: card memory in units of the node's memory unit
	ResourceSlice  string // enflame.com/shared-gcu: slices of a card
	// ResourceAlias is a second name of whole cards, from whichever domain; empty without one.
	ResourceAlias string

	// Annotations a user writes on a pod.
	PolicyKey     string // enflame.com/gcu-policy
	TopologyKey   string // enflame.com/gcu-topology
	CardsKey      string // enflame.com/gcu-cards
	UseUUIDKey    string // enflame.com/use-gcu-uuid
	NoUseUUIDKey  string // enflame.com/nouse-gcu-uuid
	EvictAfterKey string // enflame.com/gcu-evict-after

	// Annotations we write on a pod. Only AllocationKey is ever read back as truth.
	AllocationKey    string // enflame.com/gcu-allocation
	RequestSizeKey   string // enflame.com/gcu-request-size
	AssignedMinorKey string // enflame.com/gcu-assigned-minor
	AssignedKey      string // enflame.com/gcu-assigned
	AssignedTimeKey  string // enflame.com/gcu-assigned-time

	// Annotations on a node.
	DevicesKey        string // enflame.com/gcu-devices
	SharedCapacityKey string // enflame.com/gcu-shared-capacity
	CordonKey         string // enflame.com/gcu-cordon

	// Labels on a node.
	SharingLabel string // enflame.com/gcushare
	PresentLabel string // enflame.com/gcu.present
	LabelPrefix  string // enflame.com/gcu. (count, driverVer, family, machine, memory, model, product)
	AliasPrefix  string // enflame.com/gpu. (product, model), which the guide's examples select on

	// Feature discovery.
	VirtualPrefix      string // enflame.com/vgcu. (present, count, machine, memory, model, family)
	DiscoveryPrefix    string // enflame.com/gfd. (timestamp, latestLabeledTimestamp)
	PublishedLabelsKey string // annotation enflame.com/gcu-published-labels: the labels discovery wrote itself
	DeployPrefix       string // enflame.com/gcu.deploy. (driver, gfd, ...): "false" is an administrator's opt-out
}

// AssignedContainersKey is the pod annotation that maps a container to its assignment. It carries no
// domain in the releases that introduced it, so it carries none here.
const AssignedContainersKey = "assigned-containers"

// Suffixes of the feature-discovery labels, to be put behind LabelPrefix.
const (
	LabelCount     = "count"
	LabelDriverVer = "driverVer"
	LabelFamily    = "family"
	LabelMachine   = "machine"
	LabelMemory    = "memory" // MiB of one card
	LabelModel     = "model"
	LabelProduct   = "product"
)

// LabelPresent goes behind LabelPrefix (which makes PresentLabel) and VirtualPrefix.
const LabelPresent = "present"

// Suffixes to be put behind DiscoveryPrefix, and the form of their values, which is in UTC.
const (
	LabelTimestamp       = "timestamp"
	LabelLatestTimestamp = "latestLabeledTimestamp"
	TimestampLayout      = "2006-01-02-15-04-05"
)

// ComponentGFD goes behind DeployPrefix: feature discovery.
const ComponentGFD = "gfd"

// TKEDomain is the domain under which one cloud's clusters want the labels as well.
const TKEDomain = "tke.cloud.tencent.com"

// Scheduler profile names.
const (
	SchedulerName         = "gcu-scheduler"
	GCUShareSchedulerName = "gcushare-scheduler" // the name older manifests use
	PluginName            = "GCUFit"
)

// Values of PolicyKey.
const (
	PolicyBinpack = "binpack"
	PolicySpread  = "spread"
)

// Values of TopologyKey.
const (
	TopologyBestEffort = "best-effort"
	TopologySameSwitch = "same-switch"
	TopologySameNUMA   = "same-numa"
	TopologyNone       = "none"
)

// UUIDPrefix starts every card uuid ("GCU-U53000080105"). Users may leave it out.
const UUIDPrefix = "GCU-"

// resourcePattern is compiled when it is first used: enflame-container-runtime starts before every container and needs
// none of it.
var resourcePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+)/([a-z][a-z0-9]*)$`)
})

// Default returns the names below enflame.com/gcu.
func Default() *Names {
	n, err := NewNames("enflame.com/gcu")
	if err != nil {
		panic(err) // the constant above is well formed
	}
	return n
}

// NewNames derives all names from the first registered resource, "<domain>/<type>", for example
// "acme.com/npu". The type is a lower-case word without dashes, since other names are built around it.
func NewNames(resource string) (*Names, error) {
	m := resourcePattern().FindStringSubmatch(resource)
	if m == nil {
		return nil, fmt.Errorf("resource %q: want <dns domain>/<lower-case word>, for example enflame.com/gcu", resource)
	}
	domain, typ := m[1], m[5]
	if len(domain)+1+len("gcu-assigned-minor")+len(typ) > 253 {
		return nil, fmt.Errorf("resource %q: the domain is too long for a label key", resource)
	}
	key := func(format string) string { return domain + "/" + strings.ReplaceAll(format, "gcu", typ) }
	return &Names{
		Domain: domain, Type: typ,
		ResourceWhole:  key("gcu"),
		ResourceMemory: key("gcu-memory"),
		ResourceSlice:  key("shared-gcu"),

		PolicyKey:     key("gcu-policy"),
		TopologyKey:   key("gcu-topology"),
		CardsKey:      key("gcu-cards"),
		UseUUIDKey:    key("use-gcu-uuid"),
		NoUseUUIDKey:  key("nouse-gcu-uuid"),
		EvictAfterKey: key("gcu-evict-after"),

		AllocationKey:    key("gcu-allocation"),
		RequestSizeKey:   key("gcu-request-size"),
		AssignedMinorKey: key("gcu-assigned-minor"),
		AssignedKey:      key("gcu-assigned"),
		AssignedTimeKey:  key("gcu-assigned-time"),

		DevicesKey:        key("gcu-devices"),
		SharedCapacityKey: key("gcu-shared-capacity"),
		CordonKey:         key("gcu-cordon"),

		SharingLabel: key("gcushare"),
		PresentLabel: key("gcu.present"),
		LabelPrefix:  key("gcu."),
		AliasPrefix:  domain + "/gpu.",

		VirtualPrefix:      key("vgcu."),
		DiscoveryPrefix:    domain + "/gfd.",
		PublishedLabelsKey: key("gcu-published-labels"),
		DeployPrefix:       key("gcu.deploy."),
	}, nil
}

// RegisteredNames derives the names from registerResource of topscloud.json: from its first entry, the default ones
// without any.
func RegisteredNames(registered []string) (*Names, error) {
	if len(registered) == 0 {
		return Default(), nil
	}
	n, err := NewNames(registered[0])
	if err != nil {
		return nil, fmt.Errorf("registerResource: %w", err)
	}
	return n, nil
}

// WithAlias returns the names with a second one for whole cards, such as "enflame-tech.com/gcu". All other names
// stay those of the first. An empty alias is none.
func (n *Names) WithAlias(alias string) (*Names, error) {
	out := *n
	out.ResourceAlias = alias
	switch {
	case alias == "":
	case !resourcePattern().MatchString(alias):
		return nil, fmt.Errorf("resource alias %q: want <dns domain>/<lower-case word>, for example enflame-tech.com/gcu", alias)
	case alias == n.ResourceWhole:
		return nil, fmt.Errorf("resource alias %q: want another name than the resource's own", alias)
	}
	return &out, nil
}

// RecordKeys lists the pod annotations that only our components may write, sorted.
func (n *Names) RecordKeys() []string {
	return []string{
		AssignedContainersKey, n.AllocationKey, n.AssignedKey, n.AssignedMinorKey, n.AssignedTimeKey, n.RequestSizeKey,
	}
}

// Label returns the full key of a feature-discovery label, for example Label(LabelMemory).
func (n *Names) Label(suffix string) string { return n.LabelPrefix + suffix }
