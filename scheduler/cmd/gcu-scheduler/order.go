package main

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/topscloud/topscloud/scheduler/gcufit"
)

// checkProfiles refuses configurations under which pods would be bound without their record, or under
// which the in-tree plugins would hide our reasons. Neither shows until a user wonders.
func checkProfiles(profiles profile.Map) error {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if err := checkOrder(profiles[name].ListPlugins()); err != nil {
			return fmt.Errorf("profile %s: %w", name, err)
		}
	}
	return nil
}

func checkOrder(plugins *config.Plugins) error {
	for _, point := range []struct {
		name   string
		set    config.PluginSet
		behind string // the in-tree plugin that must not come before ours, if any
	}{
		// Without preFilter, filter and bind would take every pod for one that asks for no GCU.
		{"preFilter", plugins.PreFilter, ""},
		{"preScore", plugins.PreScore, ""},
		{"score", plugins.Score, ""},
		{"reserve", plugins.Reserve, ""},
		{"bind", plugins.Bind, names.DefaultBinder},
		{"filter", plugins.Filter, names.NodeResourcesFit},
		{"postFilter", plugins.PostFilter, names.DefaultPreemption},
	} {
		ours := slices.IndexFunc(point.set.Enabled, func(p config.Plugin) bool { return p.Name == gcufit.Name })
		if ours < 0 {
			return fmt.Errorf("plugin %s is not enabled at %s; enable it in multiPoint and in %s", gcufit.Name, point.name, point.name)
		}
		theirs := slices.IndexFunc(point.set.Enabled, func(p config.Plugin) bool { return p.Name == point.behind })
		if theirs >= 0 && theirs < ours {
			return fmt.Errorf("plugin %s comes after %s at %s; name it in multiPoint and in %s.enabled", gcufit.Name, point.behind, point.name, point.name)
		}
	}
	return nil
}
