package config

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	v1 "github.com/topscloud/topscloud/scheduler/config/v1"
	"github.com/topscloud/topscloud/scheduler/config/validation"
)

// Args are the plugin's arguments, complete and checked.
type Args struct {
	Names         *contract.Names
	DefaultPolicy share.Policy
	Weights       placement.Weights
	RecordTimeout time.Duration
}

// Read turns what the scheduler's configuration holds for the plugin into Args; nil means all defaults.
func Read(obj runtime.Object) (*Args, error) {
	var raw []byte
	switch o := obj.(type) {
	case nil:
	case *runtime.Unknown:
		raw = o.Raw
	default:
		return nil, fmt.Errorf("%s: arguments of type %T, want %s in %s", contract.PluginName, obj, v1.Kind, v1.APIVersion)
	}
	args, err := Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", contract.PluginName, err)
	}
	return args, nil
}

// Decode reads arguments from JSON or YAML text; empty text means all defaults.
func Decode(text []byte) (*Args, error) {
	var in v1.GCUFitArgs
	if len(text) > 0 {
		if err := yaml.UnmarshalStrict(text, &in); err != nil {
			return nil, fmt.Errorf("read %s: %w", v1.Kind, err)
		}
		if in.APIVersion != "" && in.APIVersion != v1.APIVersion {
			return nil, fmt.Errorf("apiVersion %q: want %s", in.APIVersion, v1.APIVersion)
		}
		if in.Kind != "" && in.Kind != v1.Kind {
			return nil, fmt.Errorf("kind %q: want %s", in.Kind, v1.Kind)
		}
	}
	v1.SetDefaults(&in)
	if errs := validation.Validate(&in); len(errs) > 0 {
		return nil, errors.Join(errs.ToAggregate())
	}
	names, err := contract.NewNames(in.Resource)
	if err != nil {
		return nil, err
	}
	if names, err = names.WithAlias(in.ResourceAlias); err != nil {
		return nil, err
	}
	out := &Args{
		Names: names, RecordTimeout: in.RecordTimeout.Duration,
		Weights: placement.Weights{
			Topology: *in.Weights.Topology, Packing: *in.Weights.Packing,
			Intact: *in.Weights.Intact, RightSize: *in.Weights.RightSize,
		},
	}
	if in.DefaultPolicy == contract.PolicySpread {
		out.DefaultPolicy = share.Spread
	}
	return out, nil
}
