package v1

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// These are the patterns of the schema. A test feeds both the same values.
var (
	label      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	image      = regexp.MustCompile(`^[a-z0-9]+([._/-]+[a-z0-9]+)*$`)
	repository = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$`)
	version    = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9_.-]*)$`)
)

const (
	wantLabel      = "want lower-case letters, digits and '-', with a letter or digit at both ends"
	wantImage      = "want the name of an image alone: its registry goes into repository, its tag into version"
	wantRepository = "want a registry and a path, as in registry.example.com:5000/gcu"
	wantVersion    = "want a tag (letters, digits, '_', '.', '-') or sha256: and 64 hexadecimal digits"
)

// Validate returns what is wrong with a spec, as its user wrote it. It knows what the schema knows and more.
func (s *GcuResourceSpec) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if s.Plugin != nil && s.DevicePlugin != nil {
		errs = append(errs, field.Forbidden(spec.Child("plugin"), "plugin is another name of devicePlugin: give one of the two"))
	}
	for _, k := range Kinds() {
		w := s.Workload(k)
		if w == nil {
			continue
		}
		errs = append(errs, w.validate(spec.Child(s.key(k)), k)...)
		for _, p := range s.programs(k) {
			errs = append(errs, p.validate(spec.Child(p.path[0], p.path[1:]...))...)
		}
	}
	if s.Driver != nil {
		errs = append(errs, oneOf(spec.Child("driver", "mode"), s.Driver.Mode, DriverFromImage, DriverPreinstalled)...)
	}
	if p := s.GcusharePlugin; p != nil {
		at := spec.Child("gcusharePlugin")
		errs = append(errs, oneOf(at.Child("memoryUnit"), p.MemoryUnit, "1", "0.1", "0.01", "0.001")...)
		for i, node := range p.GcushareNodes {
			for _, problem := range validation.IsDNS1123Subdomain(node) {
				errs = append(errs, field.Invalid(at.Child("gcushareNodes").Index(i), node, problem))
			}
		}
	}
	return append(errs, s.validateNames(spec)...)
}

// validateNames finds two components that would write the same workload.
func (s *GcuResourceSpec) validateNames(spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := map[string]string{}
	full := s.Normalised(Release{})
	for _, k := range full.Deployed() {
		if k == KindGcusharePlugin && full.Deploys(KindDevicePlugin) {
			continue // one node agent serves both, under the other's name
		}
		w := full.Workload(k)
		id := w.Namespace + "/" + w.Name
		if other, taken := first[id]; taken {
			errs = append(errs, field.Invalid(spec.Child(s.key(k), "name"), w.Name, "spec."+other+" has this name in namespace "+w.Namespace+" too: want another name or namespace"))
			continue
		}
		first[id] = s.key(k)
	}
	return errs
}

func (w *Workload) validate(at *field.Path, k Kind) field.ErrorList {
	errs := matches(at.Child("name"), w.Name, label, 63, wantLabel)
	errs = append(errs, matches(at.Child("namespace"), w.Namespace, label, 63, wantLabel)...)
	for _, key := range slices.Sorted(maps.Keys(w.NodeSelector)) {
		for _, problem := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(at.Child("nodeSelector"), key, "is no label key: "+problem))
		}
		for _, problem := range validation.IsValidLabelValue(w.NodeSelector[key]) {
			errs = append(errs, field.Invalid(at.Child("nodeSelector").Key(key), w.NodeSelector[key], problem))
		}
	}
	for i, t := range w.Tolerations {
		errs = append(errs, oneOf(at.Child("tolerations").Index(i).Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)...)
		errs = append(errs, oneOf(at.Child("tolerations").Index(i).Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	if u := w.UpdateStrategy; u != nil {
		errs = append(errs, u.validate(at.Child("updateStrategy"), k)...)
	}
	return errs
}

func (u *UpdateStrategy) validate(at *field.Path, k Kind) field.ErrorList {
	if k == KindGcushareScheduler && u.Type == OnDeleteType {
		return field.ErrorList{field.Invalid(at.Child("type"), u.Type, "the scheduler is a Deployment, which has no OnDelete: allowed is RollingUpdate")}
	}
	errs := oneOf(at.Child("type"), u.Type, RollingUpdateType, OnDeleteType)
	r := u.RollingUpdate
	if r == nil {
		return errs
	}
	at = at.Child("rollingUpdate")
	if u.Type == OnDeleteType {
		errs = append(errs, field.Forbidden(at, "rollingUpdate is for type RollingUpdate"))
	}
	errs = append(errs, amount(at.Child("maxUnavailable"), r.MaxUnavailable)...)
	return append(errs, amount(at.Child("maxSurge"), r.MaxSurge)...)
}

func amount(at *field.Path, v *intstr.IntOrString) field.ErrorList {
	const want = "want a whole number from 0, or a percentage as in 10%"
	switch {
	case v == nil:
	case v.Type == intstr.Int && v.IntVal < 0:
		return field.ErrorList{field.Invalid(at, v.IntVal, want)}
	case v.Type == intstr.String && len(validation.IsValidPercent(v.StrVal)) > 0:
		return field.ErrorList{field.Invalid(at, v.StrVal, want)}
	}
	return nil
}

func (c *Container) validate(at *field.Path) field.ErrorList {
	errs := matches(at.Child("image"), c.Image, image, 255, wantImage)
	errs = append(errs, matches(at.Child("repository"), c.Repository, repository, 255, wantRepository)...)
	errs = append(errs, matches(at.Child("version"), c.Version, version, 128, wantVersion)...)
	errs = append(errs, oneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	seen := map[string]bool{}
	for i, e := range c.Env {
		name := at.Child("env").Index(i).Child("name")
		switch {
		case e.Name == "" || strings.ContainsAny(e.Name, "=\x00"):
			errs = append(errs, field.Invalid(name, e.Name, "want a name without '='"))
		case seen[e.Name]:
			errs = append(errs, field.Duplicate(name, e.Name))
		}
		seen[e.Name] = true
	}
	return errs
}

// matches accepts the empty string: it is a field that was not given.
func matches(at *field.Path, value string, want *regexp.Regexp, longest int, text string) field.ErrorList {
	switch {
	case len(value) > longest:
		return field.ErrorList{field.TooLong(at, value, longest)}
	case value != "" && !want.MatchString(value):
		return field.ErrorList{field.Invalid(at, value, text)}
	}
	return nil
}

// oneOf accepts the empty string for the same reason.
func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}
