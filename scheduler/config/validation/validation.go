// Package validation checks the arguments of the GCUFit plugin after defaulting.
package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/topscloud/topscloud/internal/contract"
	v1 "github.com/topscloud/topscloud/scheduler/config/v1"
)

// Bounds of recordTimeout: kubelet and agent need some seconds to write a record, and an hour without
// one leaves a node's books wrong for too long.
const (
	minRecordTimeout = 5 * time.Second
	maxRecordTimeout = time.Hour
)

// Validate returns every mistake in defaulted arguments.
func Validate(a *v1.GCUFitArgs) field.ErrorList {
	var errs field.ErrorList
	if names, err := contract.NewNames(a.Resource); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("resource"), a.Resource, err.Error()))
	} else if _, err := names.WithAlias(a.ResourceAlias); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("resourceAlias"), a.ResourceAlias, err.Error()))
	}
	if policies := []string{contract.PolicyBinpack, contract.PolicySpread}; a.DefaultPolicy != policies[0] && a.DefaultPolicy != policies[1] {
		errs = append(errs, field.NotSupported(field.NewPath("defaultPolicy"), a.DefaultPolicy, policies))
	}
	if d := a.RecordTimeout.Duration; d < minRecordTimeout || d > maxRecordTimeout {
		errs = append(errs, field.Invalid(field.NewPath("recordTimeout"), d.String(), "want 5s to 1h"))
	}
	weights := field.NewPath("weights")
	sum := int64(0)
	check := func(name string, w int64) {
		if w < 0 || w > 100 {
			errs = append(errs, field.Invalid(weights.Child(name), w, "want 0 to 100"))
		}
		sum += w
	}
	check("topology", *a.Weights.Topology)
	check("packing", *a.Weights.Packing)
	check("intact", *a.Weights.Intact)
	check("rightSize", *a.Weights.RightSize)
	if sum == 0 {
		errs = append(errs, field.Invalid(weights, sum, "at least one weight must be above 0"))
	}
	return errs
}
