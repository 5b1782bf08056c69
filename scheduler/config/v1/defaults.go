package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/internal/contract"
)

// SetDefaults fills in what the user left out.
func SetDefaults(a *GCUFitArgs) {
	if a.Resource == "" {
		a.Resource = contract.Default().ResourceWhole
	}
	if a.DefaultPolicy == "" {
		a.DefaultPolicy = contract.PolicyBinpack
	}
	if a.RecordTimeout == nil {
		a.RecordTimeout = &metav1.Duration{Duration: time.Minute}
	}
	if a.Weights == nil {
		a.Weights = &Weights{}
	}
	set := func(w **int64, value int64) {
		if *w == nil {
			*w = &value
		}
	}
	set(&a.Weights.Topology, 35)
	set(&a.Weights.Packing, 30)
	set(&a.Weights.Intact, 25)
	set(&a.Weights.RightSize, 10)
}
