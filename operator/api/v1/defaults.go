package v1

import corev1 "k8s.io/api/core/v1"

// Release is where components come from whose resource does not say it: the operator's own registry and version.
type Release struct {
	Repository, Version string
}

// DefaultNamespace is where components run unless their resource says otherwise.
const DefaultNamespace = "kube-system"

// preset is what a component has by default. Those that are not of this project have repository and version of
// their own.
type preset struct{ name, image, repository, version string }

var presets = map[Kind]preset{
	KindNFD:               {"enflame-node-feature-discovery", "node-feature-discovery", "registry.k8s.io/nfd", "v0.17.3"},
	KindDriver:            {name: "enflame-gcu-driver", image: "gcu-driver"},
	KindToolkit:           {name: "enflame-gcu-docker-plugin", image: "gcu-container-toolkit"},
	KindDevicePlugin:      {name: "enflame-gcu-k8s-plugin", image: "gcu-device-plugin"},
	KindExporter:          {name: "enflame-gcu-exporter", image: "gcu-exporter"},
	KindGFD:               {name: "enflame-gcu-feature-discovery", image: "gcu-feature-discovery"},
	KindGcusharePlugin:    {name: "gcushare-device-plugin", image: "gcu-device-plugin"},
	KindGcushareScheduler: {name: "gcushare-scheduler-extender", image: "gcu-scheduler"},
	KindNPD:               {"enflame-node-problem-detector", "node-problem-detector", "registry.k8s.io/node-problem-detector", "v1.35.2"},
}

// Normalised returns the spec as the operator reads it: plugin folded into devicePlugin, and every default filled in
// for the components that are named. The receiver stays as it is. Of a spec with both plugin and devicePlugin, which
// Validate refuses, devicePlugin counts.
func (s *GcuResourceSpec) Normalised(release Release) *GcuResourceSpec {
	out := s.DeepCopy()
	if out.DevicePlugin == nil {
		out.DevicePlugin = out.Plugin
	}
	out.Plugin = nil
	if out.Driver != nil && out.Driver.Mode == "" {
		out.Driver.Mode = DriverPreinstalled
		if c := out.Driver.Container; c.Image != "" || c.Repository != "" || c.Version != "" {
			out.Driver.Mode = DriverFromImage
		}
	}
	if out.NFD != nil {
		if out.NFD.Master == nil {
			out.NFD.Master = &Component{}
		}
		if out.NFD.Worker == nil {
			out.NFD.Worker = &Component{}
		}
	}
	if p := out.GcusharePlugin; p != nil {
		p.MemoryUnit = or(p.MemoryUnit, "1")
	}
	for _, k := range Kinds() {
		w, is := out.Workload(k), presets[k]
		if w == nil {
			continue
		}
		w.Name, w.Namespace = or(w.Name, is.name), or(w.Namespace, DefaultNamespace)
		for _, p := range out.programs(k) {
			p.fill(is, release)
		}
	}
	return out
}

func (c *Container) fill(is preset, release Release) {
	c.Image = or(c.Image, is.image)
	c.ImagePullPolicy = or(c.ImagePullPolicy, corev1.PullIfNotPresent)
	if c.Repository == "" {
		c.Repository = or(is.repository, release.Repository)
		c.Version = or(c.Version, or(is.version, release.Version))
	}
	// A tag of ours says nothing in a registry that is not: there it is latest, as the vendor's guide has it.
	c.Version = or(c.Version, "latest")
}

func or[T ~string](s, otherwise T) T {
	if s == "" {
		return otherwise
	}
	return s
}
