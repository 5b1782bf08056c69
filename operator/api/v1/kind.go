package v1

import (
	"fmt"
	"slices"
)

// Kind is the key of a component in the spec.
type Kind string

// The kinds. plugin is read as DevicePlugin.
const (
	KindNFD               Kind = "nfd"
	KindDriver            Kind = "driver"
	KindToolkit           Kind = "toolkit"
	KindDevicePlugin      Kind = "devicePlugin"
	KindExporter          Kind = "exporter"
	KindGFD               Kind = "gfd"
	KindGcusharePlugin    Kind = "gcusharePlugin"
	KindGcushareScheduler Kind = "gcushareScheduler"
	KindNPD               Kind = "npd"
)

// Kinds returns all kinds in the order in which they start; each waits for the one before.
func Kinds() []Kind {
	return []Kind{
		KindNFD, KindDriver, KindToolkit, KindDevicePlugin, KindExporter, KindGFD, KindGcusharePlugin, KindGcushareScheduler, KindNPD,
	}
}

// core are the kinds that count in readyResource though a resource does not name them.
var core = []Kind{KindDriver, KindToolkit, KindDevicePlugin, KindExporter, KindGFD}

// Workload returns the workload of a kind, nil if the spec does not name it.
func (s *GcuResourceSpec) Workload(k Kind) *Workload {
	switch k {
	case KindNFD:
		if s.NFD != nil {
			return &s.NFD.Workload
		}
	case KindDriver:
		if s.Driver != nil {
			return &s.Driver.Workload
		}
	case KindGcusharePlugin:
		if s.GcusharePlugin != nil {
			return &s.GcusharePlugin.Workload
		}
	default:
		if c := s.component(k); c != nil {
			return &c.Workload
		}
	}
	return nil
}

// component returns a component that is nothing but a Component.
func (s *GcuResourceSpec) component(k Kind) *Component {
	switch k {
	case KindToolkit:
		return s.Toolkit
	case KindDevicePlugin:
		if s.DevicePlugin == nil {
			return s.Plugin
		}
		return s.DevicePlugin
	case KindExporter:
		return s.Exporter
	case KindGFD:
		return s.GFD
	case KindGcushareScheduler:
		return s.GcushareScheduler
	case KindNPD:
		return s.NPD
	}
	return nil
}

// program is a container of a component, with the fields by which one gets to it.
type program struct {
	path []string
	*Container
}

// programs returns the containers that the spec names of a kind.
func (s *GcuResourceSpec) programs(k Kind) []program {
	switch {
	case s.Workload(k) == nil:
		return nil
	case k == KindNFD:
		var out []program
		if s.NFD.Master != nil {
			out = append(out, program{[]string{"nfd", "master"}, &s.NFD.Master.Container})
		}
		if s.NFD.Worker != nil {
			out = append(out, program{[]string{"nfd", "worker"}, &s.NFD.Worker.Container})
		}
		return out
	case k == KindDriver:
		return []program{{[]string{"driver"}, &s.Driver.Container}}
	case k == KindGcusharePlugin:
		return []program{{[]string{"gcusharePlugin"}, &s.GcusharePlugin.Container}}
	}
	return []program{{[]string{s.key(k)}, &s.component(k).Container}}
}

// key is how the spec writes a kind.
func (s *GcuResourceSpec) key(k Kind) string {
	if k == KindDevicePlugin && s.DevicePlugin == nil && s.Plugin != nil {
		return "plugin"
	}
	return string(k)
}

// Deploys says whether a component is to run.
func (s *GcuResourceSpec) Deploys(k Kind) bool {
	w := s.Workload(k)
	return w != nil && (w.NotDeploy == nil || !*w.NotDeploy)
}

// Deployed returns the kinds that are to run, in the order of Kinds.
func (s *GcuResourceSpec) Deployed() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return !s.Deploys(k) })
}

// Counted returns the kinds that count in readyResource: those to run, and the five of the core that the spec does
// not name. One that says notDeploy is left out. So the vendor's example, whose driver is not deployed, shows 5/5
// with nfd, and a resource of driver and toolkit alone 2/5, as the guides print both.
func (s *GcuResourceSpec) Counted() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool {
		return !s.Deploys(k) && (s.Workload(k) != nil || !slices.Contains(core, k))
	})
}

// ReadyResource is the text of status.readyResource when the given kinds are ready. One that is not to run is not
// counted, whatever it is.
func (s *GcuResourceSpec) ReadyResource(ready ...Kind) string {
	n := 0
	for _, k := range s.Deployed() {
		if slices.Contains(ready, k) {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(s.Counted()))
}

// Unmanaged returns the keys of the spec that this operator keeps and does not run, sorted.
func (s *GcuResourceSpec) Unmanaged() []string {
	var out []string
	if s.Nightingale != nil {
		out = append(out, "nightingale")
	}
	if s.Volcano != nil {
		out = append(out, "volcano")
	}
	return out
}
