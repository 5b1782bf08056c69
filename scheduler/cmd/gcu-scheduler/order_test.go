package main

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func TestCheckOrder(t *testing.T) {
	t.Parallel()
	set := func(names ...string) config.PluginSet {
		var out config.PluginSet
		for _, n := range names {
			out.Enabled = append(out.Enabled, config.Plugin{Name: n})
		}
		return out
	}
	good := func() *config.Plugins {
		return &config.Plugins{
			PreFilter: set("GCUFit"), PreScore: set("GCUFit"), Score: set("GCUFit"), Reserve: set("GCUFit"),
			Bind: set("GCUFit", "DefaultBinder"), Filter: set("GCUFit", "NodeResourcesFit"), PostFilter: set("GCUFit", "DefaultPreemption"),
		}
	}
	tests := map[string]struct {
		change func(*config.Plugins)
		want   string
	}{
		"GCUFit first everywhere":         {func(*config.Plugins) {}, ""},
		"without the default binder":      {func(p *config.Plugins) { p.Bind = set("GCUFit") }, ""},
		"the default binder first":        {func(p *config.Plugins) { p.Bind = set("DefaultBinder", "GCUFit") }, "comes after DefaultBinder at bind"},
		"not enabled at preFilter":        {func(p *config.Plugins) { p.PreFilter = set() }, "not enabled at preFilter"},
		"not enabled at reserve":          {func(p *config.Plugins) { p.Reserve = set() }, "not enabled at reserve"},
		"not enabled at bind":             {func(p *config.Plugins) { p.Bind = set("DefaultBinder") }, "not enabled at bind"},
		"NodeResourcesFit first":          {func(p *config.Plugins) { p.Filter = set("NodeResourcesFit", "GCUFit") }, "comes after NodeResourcesFit at filter"},
		"preemption before the near miss": {func(p *config.Plugins) { p.PostFilter = set("DefaultPreemption", "GCUFit") }, "comes after DefaultPreemption"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugins := good()
			tt.change(plugins)
			err := checkOrder(plugins)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
