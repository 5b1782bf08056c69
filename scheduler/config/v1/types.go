// Package v1 holds the arguments of the GCUFit plugin as a user writes them in the pluginConfig of a
// KubeSchedulerConfiguration.
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The arguments' group, version and kind.
const (
	APIVersion = "gcufit.topscloud.dev/v1"
	Kind       = "GCUFitArgs"
)

// GCUFitArgs configures the plugin. All profiles of one scheduler share one ledger, so Resource, ResourceAlias and
// RecordTimeout must be the same in each.
type GCUFitArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Resource is the first registered resource; all other names derive from it. Default enflame.com/gcu.
	Resource string `json:"resource,omitempty"`
	// ResourceAlias is a second resource name of whole cards, such as enflame-tech.com/gcu; none by default. The
	// node agents must offer it (--resource-alias).
	ResourceAlias string `json:"resourceAlias,omitempty"`
	// DefaultPolicy is binpack (default) or spread, for pods that name none.
	DefaultPolicy string `json:"defaultPolicy,omitempty"`
	// Weights are the parts of a node's score; only their ratio matters.
	Weights *Weights `json:"weights,omitempty"`
	// RecordTimeout is how long a pod bound by another scheduler may be without a record before its
	// node takes no more shares. Default 60s.
	RecordTimeout *metav1.Duration `json:"recordTimeout,omitempty"`
}

// Weights of the parts of a score, 0 to 100 each, at least one above 0.
type Weights struct {
	// Topology: how close together a container's cards are. Default 35.
	Topology *int64 `json:"topology,omitempty"`
	// Packing: how full cards and nodes get, or stay with policy spread. Default 30.
	Packing *int64 `json:"packing,omitempty"`
	// Intact: how little is taken from groups of free cards. Default 25.
	Intact *int64 `json:"intact,omitempty"`
	// RightSize: how small the node's cards are. Default 10.
	RightSize *int64 `json:"rightSize,omitempty"`
}
