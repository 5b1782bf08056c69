package v1

import (
	"slices"
	"strings"
)

// VendorRegistry is where the vendor's images are.
const VendorRegistry = "artifact.enflame.cn"

// Reference is the image as a pod names it. It is of a normalised spec.
func (c *Container) Reference() string {
	separator := ":"
	if strings.HasPrefix(c.Version, "sha256:") {
		separator = "@"
	}
	return c.Repository + "/" + c.Image + separator + c.Version
}

// Images returns the images of a component, each once, in the order of its programs. It is of a normalised spec.
// A driver that is installed already has none.
func (s *GcuResourceSpec) Images(k Kind) []string {
	if k == KindDriver && s.Driver != nil && s.Driver.Mode == DriverPreinstalled {
		return nil
	}
	var out []string
	for _, p := range s.programs(k) {
		if r := p.Reference(); len(out) == 0 || out[0] != r {
			out = append(out, r)
		}
	}
	return out
}

// ForeignImages returns the kinds that are to run and may not be started, since an image is the vendor's and the
// spec does not allow that. It is of a normalised spec.
func (s *GcuResourceSpec) ForeignImages() []Kind {
	if s.AllowForeignImage != nil && *s.AllowForeignImage {
		return nil
	}
	var out []Kind
	for _, k := range s.Deployed() {
		if slices.ContainsFunc(s.Images(k), foreign) {
			out = append(out, k)
		}
	}
	return out
}

func foreign(reference string) bool {
	registry, _, _ := strings.Cut(reference, "/")
	return registry == VendorRegistry
}
