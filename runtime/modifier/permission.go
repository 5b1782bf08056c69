package modifier

import (
	"slices"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/settings"
)

// namespaceAnnotation is where containerd tells the namespace of a pod. It writes its own last, and passes
// those of a pod on only where its configuration says so.
const namespaceAnnotation = "io.kubernetes.cri.sandbox-namespace"

// crioPrefix starts annotations that CRI-O gives to each container.
const crioPrefix = "io.kubernetes.cri-o."

// kubernetes says whether kubelet has asked for the container. Engines say so by annotations; Docker behind
// cri-dockerd does not, and is known by the cgroup that kubelet names.
func (v *view) kubernetes() bool {
	for key := range v.Annotations {
		if strings.HasPrefix(key, "io.kubernetes.") {
			return true
		}
	}
	return strings.Contains(v.Linux.CgroupsPath, "kubepods")
}

// namespace returns the pod's namespace, "" if it is not told by an engine. CRI-O passes all annotations of a
// pod on: a tenant writes containerd's annotation on a pod of theirs, CRI-O hands it to us, and the pod is
// in kube-system. So nothing is believed where CRI-O has left its own.
func (v *view) namespace() string {
	for key := range v.Annotations {
		if strings.HasPrefix(key, crioPrefix) {
			return ""
		}
	}
	return v.Annotations[namespaceAnnotation]
}

// privileged says whether the container may open every device and mount, so that there is nothing left to
// permit. Rules count in their order, the last that is about all devices decides.
func (v *view) privileged() bool {
	all := false
	for _, rule := range v.Linux.Resources.Devices {
		everyNumber := (rule.Major == nil || *rule.Major < 0) && (rule.Minor == nil || *rule.Minor < 0)
		if everyNumber && (rule.Type == "" || rule.Type == "a") && strings.Contains(rule.Access, "r") && strings.Contains(rule.Access, "w") {
			all = rule.Allow
		}
	}
	return all && slices.Contains(v.Process.Capabilities.Bounding, "CAP_SYS_ADMIN")
}

// given says whether an engine has put cards into the spec already, from a CDI device.
func (v *view) given(names *contract.Names, card string) bool {
	for key, value := range v.Annotations {
		if strings.HasPrefix(key, "cdi.k8s.io/") && strings.Contains(value, names.CDIKind()) {
			return true
		}
	}
	for _, device := range v.Linux.Devices {
		if minor, ok := strings.CutPrefix(device.Path, card); ok && minor != "" && strings.Trim(minor, "0123456789") == "" {
			return true
		}
	}
	return false
}

// permitted says whether the container's environment decides about its cards, and why or why not.
func (v *view) permitted(s settings.Runtime) (bool, string) {
	namespace := v.namespace()
	switch {
	case v.privileged():
		return true, "the container is privileged"
	case s.AcceptEnvvar != nil && *s.AcceptEnvvar:
		return true, "the settings accept it"
	case s.AcceptEnvvar != nil && !v.kubernetes():
		return false, "the settings do not accept it from an unprivileged container"
	case !v.kubernetes():
		return true, "the engine's user asks for it"
	case namespace != "" && slices.Contains(s.TrustedNamespaces, namespace):
		return true, "the namespace is trusted"
	}
	return false, "a pod gets cards by its resource limits"
}
