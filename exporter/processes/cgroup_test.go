package processes

import (
	"strings"
	"testing"
)

const (
	uid  = "1d2c3b4a-5e6f-4a1b-9c8d-7e6f5a4b3c2d"
	flat = "1d2c3b4a_5e6f_4a1b_9c8d_7e6f5a4b3c2d"
	// other is a pod that a container would like to be taken for.
	other     = "ffffffff-5e6f-4a1b-9c8d-7e6f5a4b3c2d"
	static    = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
	container = "4f1e0c6b9d2a7f38e5c4b3a2918070605f4e3d2c1b0a99887766554433221100"
)

func TestPodOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"v2, systemd, containerd": {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + flat + ".slice/cri-containerd-" + container + ".scope\n", uid},
		"v2, systemd, cri-o":      {"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + flat + ".slice/crio-" + container + ".scope\n", uid},
		"v2, systemd, docker":     {"0::/kubepods.slice/kubepods-pod" + flat + ".slice/docker-" + container + ".scope\n", uid},
		"v2, cgroupfs":            {"0::/kubepods/pod" + uid + "/" + container + "\n", uid},
		"v2, cgroupfs, class":     {"0::/kubepods/burstable/pod" + uid + "/" + container + "\n", uid},
		"v2, the engine's own group, which kubelet takes for systemd's": {
			"0::/system.slice/containerd.service/kubepods-besteffort-pod" + flat + ".slice:cri-containerd:" + container + "\n", uid},
		"v2, kubelet has a root group": {"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + flat + ".slice/cri-containerd-" + container + ".scope\n", uid},
		"v2, a node in a container":    {"0::/docker/" + container + "/kubelet/kubepods/besteffort/pod" + uid + "/" + container + "\n", uid},
		"v1, cgroupfs": {"12:pids:/kubepods/burstable/pod" + uid + "/" + container + "\n" +
			"4:memory:/kubepods/burstable/pod" + uid + "/" + container + "\n1:name=systemd:/kubepods/burstable/pod" + uid + "/" + container + "\n0::/\n", uid},
		"v1, some hierarchies unused":                 {"9:rdma:/\n3:cpu,cpuacct:/kubepods.slice/kubepods-pod" + flat + ".slice/cri-containerd-" + container + ".scope\n0::/system.slice/containerd.service\n", uid},
		"groups of the container's own":               {"0::/kubepods.slice/kubepods-pod" + flat + ".slice/cri-containerd-" + container + ".scope/init.scope/worker:1\n", uid},
		"the container made groups with a pod's name": {"0::/kubepods/burstable/pod" + uid + "/" + container + "/kubepods/burstable/pod" + other + "/x\n", uid},
		"static pod, systemd":                         {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + static + ".slice/cri-containerd-" + container + ".scope\n", static},
		"static pod, cgroupfs":                        {"0::/kubepods/burstable/pod" + static + "/" + container + "\n", static},
		"a group that is being removed":               {"0::/kubepods/pod" + uid + "/" + container + " (deleted)\n", uid},

		"own namespace, systemd, another class":                      {"0::/../../../kubepods-burstable.slice/kubepods-burstable-pod" + flat + ".slice/cri-containerd-" + container + ".scope\n", uid},
		"own namespace, systemd, same class":                         {"0::/../../kubepods-besteffort-pod" + flat + ".slice/cri-containerd-" + container + ".scope\n", uid},
		"own namespace, cgroupfs, same class":                        {"0::/../../pod" + uid + "/" + container + "\n", uid},
		"own namespace, cgroupfs, no class":                          {"0::/../../../kubepods/pod" + uid + "/" + container + "\n", uid},
		"own namespace, cgroupfs, class":                             {"0::/../../../burstable/pod" + uid + "/" + container + "\n", uid},
		"own namespace, own pod":                                     {"0::/../" + container + "\n", ""},
		"own namespace, own pod, with a group of another pod's name": {"0::/../" + container + "/kubepods/pod" + other + "\n", ""},
		"own namespace, own container":                               {"0::/\n", ""},
		"own namespace, a service of the host":                       {"0::/../../../../system.slice/sshd.service\n", ""},

		"a service":                 {"0::/system.slice/gcu-monitor.service\n", ""},
		"a user":                    {"0::/user.slice/user-1000.slice/session-3.scope\n", ""},
		"docker without Kubernetes": {"0::/system.slice/docker-" + container + ".scope\n", ""},
		"not below kubepods":        {"0::/system.slice/pod" + uid + "/x\n", ""},
		"slice of another's making": {"0::/user.slice/my-pod" + flat + ".slice/x\n", ""},
		"no UID":                    {"0::/kubepods/podsomething/" + container + "\n", ""},
		"a UID in capitals":         {"0::/kubepods/pod" + strings.ToUpper(uid) + "/x\n", ""},
		"the pods' group itself":    {"0::/kubepods.slice/kubepods-burstable.slice\n", ""},
		"hierarchies do not agree":  {"4:memory:/kubepods/pod" + uid + "/x\n3:cpu:/kubepods/pod" + other + "/x\n", ""},
		"nothing":                   {"", ""},
		"not a cgroup file":         {"kubepods/pod" + uid, ""},
		"two colons and no path":    {"::", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := PodOf(tt.text); got != tt.want {
				t.Errorf("PodOf(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// Whatever a text is, what comes out has the form of a UID and stands in the text.
func FuzzPodOf(f *testing.F) {
	f.Add("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + flat + ".slice/cri-containerd-" + container + ".scope\n")
	f.Add("4:memory:/kubepods/burstable/pod" + uid + "/" + container)
	f.Add("0::/../../pod" + static + "/" + container)
	f.Add("0::/a.slice:cri-containerd:b\n1:x:/kubepods-pod" + flat + ".slice:cri-containerd:x")
	f.Add(":::\n\n::/..")
	f.Fuzz(func(t *testing.T, text string) {
		got := PodOf(text)
		if got == "" {
			return
		}
		if got != podUID(got) {
			t.Errorf("%q is no UID, of %q", got, text)
		}
		if !strings.Contains(text, got) && !strings.Contains(text, strings.ReplaceAll(got, "-", "_")) {
			t.Errorf("%q does not stand in %q", got, text)
		}
		if again := PodOf(text + "\n" + text); again != got {
			t.Errorf("twice the same text: %q, want %q", again, got)
		}
	})
}
