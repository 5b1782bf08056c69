package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/cdi"
	"github.com/topscloud/topscloud/runtime/engine/containerd"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/settings"
)

// Driver tells the version of the kernel driver.
type Driver func(ctx context.Context) (eflib.Host, error)

// Remedies that several findings have.
const (
	grubRemedy = "use one version: add systemd.unified_cgroup_hierarchy=1 (v2) or =0 (v1) to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub and reboot; or let cgroupfs manage them"
	v2Remedy   = "use systemd: cgroupDriver: systemd for kubelet and SystemdCgroup = true for the engine, then restart both on a drained node"
	noSystemd  = "this host has no systemd: set cgroupfs for kubelet and engine"
)

// Examine looks at a host.
func Examine(ctx context.Context, h *host.Host, driver Driver) []Finding {
	out := examineCgroups(h.Root)
	out = append(out, examineSELinux(h.Root)...)
	out = append(out, examineCards(ctx, h, driver)...)
	out = append(out, examineCDI(ctx, h)...)
	return append(out, examineToolkit(h.Root)...)
}

// examineCgroups compares who manages cgroups with what the host offers.
func examineCgroups(root string) []Finding {
	var out []Finding
	version, err := Cgroups(root)
	switch {
	case err != nil:
		out = append(out, Finding{Warning, "cgroups", err.Error(), "run it on the host, or with the host's /proc below --host-root"})
	case version == Unknown:
		out = append(out, Finding{Error, "cgroups", "none is mounted below " + cgroupRoot, "mount cgroups: a container engine needs them"})
	default:
		out = append(out, Finding{Level: OK, Topic: "cgroups", Text: string(version)})
	}
	_, err = os.Stat(filepath.Join(root, "run/systemd/system"))
	systemd := err == nil
	if systemd {
		out = append(out, Finding{Level: OK, Topic: "systemd", Text: "runs"})
	} else {
		out = append(out, Finding{Level: OK, Topic: "systemd", Text: "does not run"})
	}
	kubelet, err := FindKubelet(root)
	switch {
	case err != nil:
		out = append(out, Finding{Error, "kubelet", err.Error(), "make its configuration readable, or correct it"})
	case !kubelet.Present:
		out = append(out, Finding{Level: OK, Topic: "kubelet", Text: "none"})
	case kubelet.Driver == "":
		out = append(out, Finding{Warning, "kubelet", "names no cgroup driver: kubeadm's default since 1.22 is systemd, kubelet's own is cgroupfs or what the engine tells it",
			"write cgroupDriver into " + kubeletConfig + ", so that it can be compared"})
	default:
		out = append(out, judge("kubelet", kubelet.Driver, ", from "+kubelet.From, version, systemd))
	}
	if on, err := containerd.CDIEnabled(root); err == nil && !on {
		out = append(out, Finding{Warning, "containerd", "CDI is off", "enflame-ctk configure --engine containerd switches it on; pods get shared cards by CDI only"})
	}
	list := engines(root)
	for _, e := range list {
		switch {
		case e.err != nil:
			out = append(out, Finding{Error, e.name, e.err.Error(), "correct the file"})
		case e.driver == "":
			out = append(out, Finding{Level: OK, Topic: e.name, Text: e.note})
		default:
			f := judge(e.name, e.driver, e.note, version, systemd)
			if f.Level == OK && kubelet.Driver != "" && kubelet.Driver != e.driver && (e.name == "containerd" || len(list) == 1) {
				f = Finding{Error, e.name, fmt.Sprintf("%s%s, and kubelet has %s", e.driver, e.note, kubelet.Driver), e.remedy(kubelet.Driver)}
				if judge("kubelet", kubelet.Driver, "", version, systemd).Level == Error {
					f.Remedy = "see kubelet above, and then give both the same driver"
				}
			}
			out = append(out, f)
		}
	}
	return out
}

// judge says whether a cgroup driver fits the host.
func judge(topic, driver, note string, version Version, systemd bool) Finding {
	f := Finding{Topic: topic, Text: driver + note}
	switch {
	case driver != Systemd && driver != Cgroupfs:
		f.Level, f.Remedy = Error, "want systemd or cgroupfs"
	case driver == Systemd && !systemd:
		f.Level, f.Remedy = Error, noSystemd
	case driver == Systemd && version == Hybrid:
		f.Level, f.Remedy = Error, "systemd cannot manage v1 and v2 at once; "+grubRemedy
	case driver == Cgroupfs && version == V2 && systemd:
		f.Level, f.Remedy = Error, v2Remedy
	case driver == Cgroupfs && version == V2:
		f.Level, f.Remedy = Error, "v2 needs systemd, which this host does not have: boot it with cgroups v1"
	}
	return f
}

func examineSELinux(root string) []Finding {
	text, err := os.ReadFile(filepath.Join(root, "sys/fs/selinux/enforce"))
	if err != nil || strings.TrimSpace(string(text)) != "1" {
		return nil
	}
	return []Finding{{Warning, "selinux", "enforcing", "allow containers the device nodes: setsebool -P container_use_devices=true"}}
}

// examineCards looks at the driver, the nodes in /dev and the links by which systemd finds them.
func examineCards(ctx context.Context, h *host.Host, driver Driver) []Finding {
	about, err := driver(ctx)
	if err != nil {
		return []Finding{{Error, "driver", err.Error(), "install the driver, or load it: modprobe enflame"}}
	}
	out := []Finding{{Level: OK, Topic: "driver", Text: about.DriverVersion}}
	cards, err := h.List(ctx)
	if err != nil {
		out = append(out, Finding{Error, "cards", strings.ReplaceAll(err.Error(), "\n", "; "), "look at the card with efsmi and dmesg; a wrong node in /dev goes with udevadm trigger"})
	}
	switch len(cards) {
	case 0:
		out = append(out, Finding{Warning, "cards", "none", "look at lspci -d 1e36:"})
	default:
		out = append(out, Finding{Level: OK, Topic: "cards", Text: fmt.Sprintf("%d with their nodes in /dev", len(cards))})
	}
	nodes, err := h.Control()
	if err != nil {
		out = append(out, Finding{Error, "control", err.Error(), "load the driver again: no container with a card starts without this node"})
	}
	for _, card := range cards {
		nodes = append(nodes, card.Node)
	}
	var missing []string
	for _, node := range nodes {
		if h.CharLink(node) != nil {
			missing = append(missing, node.Path)
		}
	}
	if len(missing) > 0 {
		out = append(out, Finding{Warning, "/dev/char", "no right link to " + strings.Join(missing, ", "),
			"udevadm trigger; without the links a systemctl daemon-reload takes cards away from running containers. enflame-container-runtime makes those it needs"})
	} else if len(nodes) > 0 {
		out = append(out, Finding{Level: OK, Topic: "/dev/char", Text: "has all links"})
	}
	return out
}

func examineCDI(ctx context.Context, h *host.Host) []Finding {
	var out []Finding
	for _, dir := range []string{contract.CDIStaticDir, contract.CDIDynamicDir} {
		_, err := os.ReadDir(filepath.Join(h.Root, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, Finding{Error, "cdi", err.Error(), "make the folder readable for the engine"})
		}
	}
	found, err := cdi.Check(ctx, h, contract.CDIStaticDir)
	switch {
	case err != nil:
		return append(out, Finding{Warning, "cdi", "the spec cannot be compared with the cards: " + firstLine(err), "see above"})
	case len(found) > 0:
		out = append(out, Finding{Warning, "cdi", strings.Join(found, "; "), "enflame-ctk cdi refresh"})
	}
	if _, err := cdi.List(h, contract.CDIStaticDir, contract.CDIDynamicDir); err != nil && len(found) == 0 {
		out = append(out, Finding{Error, "cdi", firstLine(err), "remove or correct the file: an engine may refuse all devices because of it"})
	}
	if len(out) == 0 {
		out = append(out, Finding{Level: OK, Topic: "cdi", Text: "the spec is that of the host"})
	}
	return out
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func examineToolkit(root string) []Finding {
	if _, err := settings.Read(root); err != nil {
		return []Finding{{Error, "toolkit", err.Error(), "correct the file: until then enflame-container-runtime starts nothing"}}
	}
	if _, err := os.Stat(filepath.Join(root, contract.RuntimePath)); err != nil {
		return []Finding{{Warning, "toolkit", contract.RuntimePath + " is not there", "install it, unless all engines of this host use CDI"}}
	}
	return []Finding{{Level: OK, Topic: "toolkit", Text: contract.RuntimePath}}
}
