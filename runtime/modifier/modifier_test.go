package modifier_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
	"github.com/topscloud/topscloud/runtime/modifier"
	"github.com/topscloud/topscloud/runtime/settings"
)

var update = flag.Bool("update", false, "write the golden files")

func newModifier(t testing.TB, preset string) *modifier.Modifier {
	return &modifier.Modifier{Host: hosttest.New(t, preset), Settings: settings.Default().Runtime}
}

// TestGolden keeps what a spec looks like before and after.
func TestGolden(t *testing.T) {
	m := newModifier(t, "t20x4")
	before, err := os.ReadFile("testdata/before.json")
	if err != nil {
		t.Fatal(err)
	}
	got, outcome, err := m.Apply(context.Background(), t.TempDir(), before)
	if err != nil || !outcome.Changed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	got = bytes.ReplaceAll(got, []byte(m.Host.Root), nil)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.WriteFile("testdata/after.json", pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/after.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// spec returns a spec, changed by some edits.
func spec(t testing.TB, edits ...func(*specs.Spec)) []byte {
	t.Helper()
	s := &specs.Spec{Version: specs.Version, Root: &specs.Root{Path: "rootfs"}, Process: &specs.Process{}, Linux: &specs.Linux{}}
	for _, edit := range edits {
		edit(s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func env(entries ...string) func(*specs.Spec) {
	return func(s *specs.Spec) { s.Process.Env = append(s.Process.Env, entries...) }
}

func asks(value string) func(*specs.Spec) { return env("ENFLAME_VISIBLE_DEVICES=" + value) }

func pod(namespace string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Annotations = map[string]string{"io.kubernetes.cri.container-type": "container", "io.kubernetes.cri.sandbox-namespace": namespace}
	}
}

func privileged(s *specs.Spec) {
	s.Linux.Resources = &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}, {Allow: true, Access: "rwm"}}}
	s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: []string{"CAP_SYS_ADMIN"}}
}

func decode(t testing.TB, text []byte) *specs.Spec {
	t.Helper()
	var s specs.Spec
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// TestApply gives containers of a host with four cards what they ask for, if they may.
func TestApply(t *testing.T) {
	t.Parallel()
	gcu1 := func(s *specs.Spec) {
		s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/gcu1", Type: "c", Major: 239, Minor: 1}}
	}
	tests := map[string]struct {
		spec     []func(*specs.Spec)
		settings func(*settings.Runtime)
		want     []string // device nodes that are added
		changed  bool     // false: the same bytes
		fails    string
	}{
		"nothing asked":                  {},
		"empty":                          {spec: []func(*specs.Spec){asks("")}},
		"void":                           {spec: []func(*specs.Spec){asks("void")}},
		"none is libraries only":         {spec: []func(*specs.Spec){asks("none")}, changed: true},
		"one card":                       {spec: []func(*specs.Spec){asks("1")}, changed: true, want: []string{"/dev/gcuctl", "/dev/gcu1"}},
		"one card twice":                 {spec: []func(*specs.Spec){asks("1,1")}, changed: true, want: []string{"/dev/gcuctl", "/dev/gcu1"}},
		"all cards":                      {spec: []func(*specs.Spec){asks("all")}, changed: true, want: []string{"/dev/gcuctl", "/dev/gcu0", "/dev/gcu1", "/dev/gcu2", "/dev/gcu3"}},
		"no such card":                   {spec: []func(*specs.Spec){asks("9")}, fails: `"9"`},
		"a blank":                        {spec: []func(*specs.Spec){asks("0, 1")}, fails: `"0, 1"`},
		"none among cards":               {spec: []func(*specs.Spec){asks("0,none")}, fails: `"0,none"`},
		"capitals":                       {spec: []func(*specs.Spec){asks("ALL")}, fails: `"ALL"`},
		"a negative card":                {spec: []func(*specs.Spec){asks("-1")}, fails: `"-1"`},
		"one value twice is one":         {spec: []func(*specs.Spec){asks("0"), asks("0")}, changed: true, want: []string{"/dev/gcuctl", "/dev/gcu0"}},
		"two values are refused":         {spec: []func(*specs.Spec){asks("void"), asks("all")}, fails: `"all"`},
		"a pod's environment is ignored": {spec: []func(*specs.Spec){asks("all"), pod("default")}},
		"an ignored value may be wrong":  {spec: []func(*specs.Spec){asks("ALL"), pod("default")}},
		"none of a pod is ignored":       {spec: []func(*specs.Spec){asks("none"), pod("default")}},
		"a trusted namespace":            {spec: []func(*specs.Spec){asks("0"), pod("kube-system")}, changed: true, want: []string{"/dev/gcuctl", "/dev/gcu0"}},
		"no namespace is not trusted":    {spec: []func(*specs.Spec){asks("0"), pod("")}},
		"CRI-O passes a pod's own annotations on": {spec: []func(*specs.Spec){asks("0"), pod("kube-system"), func(s *specs.Spec) { s.Annotations["io.kubernetes.cri-o.SandboxID"] = "x" }}},
		"a pod of CRI-O is ignored":               {spec: []func(*specs.Spec){asks("0"), func(s *specs.Spec) { s.Annotations = map[string]string{"io.kubernetes.cri-o.Namespace": "kube-system"} }}},
		"a pod of cri-dockerd is ignored":         {spec: []func(*specs.Spec){asks("0"), func(s *specs.Spec) { s.Linux.CgroupsPath = "kubepods-burstable-pod1.slice:docker:c1" }}},
		"settings accept pods":                    {spec: []func(*specs.Spec){asks("0"), pod("default")}, settings: accept(true), changed: true, want: []string{"/dev/gcuctl", "/dev/gcu0"}},
		"settings refuse everybody":               {spec: []func(*specs.Spec){asks("0")}, settings: accept(false)},
		"settings refuse, but privileged":         {spec: []func(*specs.Spec){asks("0"), pod("default"), privileged}, settings: accept(false), changed: true, want: []string{"/dev/gcuctl", "/dev/gcu0"}},
		"all devices and no capability":           {spec: []func(*specs.Spec){asks("0"), pod("default"), privileged, func(s *specs.Spec) { s.Process.Capabilities.Bounding = nil }}},
		"all devices denied again": {spec: []func(*specs.Spec){asks("0"), pod("default"), privileged, func(s *specs.Spec) {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Access: "rwm"})
		}}},
		"cards of a CDI device":           {spec: []func(*specs.Spec){asks("0"), pod("kube-system"), gcu1}},
		"a CDI annotation":                {spec: []func(*specs.Spec){asks("0"), func(s *specs.Spec) { s.Annotations = map[string]string{"cdi.k8s.io/x": "enflame.com/gcu=1"} }}},
		"another vendor's CDI annotation": {spec: []func(*specs.Spec){asks("0"), func(s *specs.Spec) { s.Annotations = map[string]string{"cdi.k8s.io/x": "acme.com/npu=1"} }}, changed: true, want: []string{"/dev/gcuctl", "/dev/gcu0"}},
		"a privileged pod has the node": {spec: []func(*specs.Spec){asks("1"), privileged, func(s *specs.Spec) {
			s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/gcuctl", Type: "c", Major: hosttest.ControlMajor, Minor: hosttest.ControlMinor}}
		}}, changed: true, want: []string{"/dev/gcu1"}},
		"another device in its place": {spec: []func(*specs.Spec){asks("1"), func(s *specs.Spec) {
			s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/gcuctl", Type: "c", Major: 1, Minor: 3}}
		}}, fails: "another device at /dev/gcuctl"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModifier(t, "t20x4")
			if tt.settings != nil {
				tt.settings(&m.Settings)
			}
			before := spec(t, tt.spec...)
			after, outcome, err := m.Apply(context.Background(), t.TempDir(), before)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want one with %s", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Changed != tt.changed || bytes.Equal(before, after) == tt.changed {
				t.Errorf("outcome %+v, spec %s", outcome, after)
			}
			var added []string
			for _, d := range decode(t, after).Linux.Devices[len(decode(t, before).Linux.Devices):] {
				added = append(added, d.Path)
			}
			if diff := cmp.Diff(tt.want, added); diff != "" {
				t.Errorf("device nodes (-want +got):\n%s", diff)
			}
			if mounts := len(decode(t, after).Mounts); tt.changed != (mounts == 4) {
				t.Errorf("%d mounts", mounts)
			}
		})
	}
}

func accept(yes bool) func(*settings.Runtime) {
	return func(s *settings.Runtime) { s.AcceptEnvvar = &yes }
}

// TestCardsAreInTheSpec: a hook made the node and opened the cgroup behind the engine's back; systemd
// reloaded, wrote the device rules from what it knew, and the card was lost to the container for good.
func TestCardsAreInTheSpec(t *testing.T) {
	t.Parallel()
	m := newModifier(t, "t20x4")
	text, _, err := m.Apply(context.Background(), t.TempDir(), spec(t, asks("2")))
	if err != nil {
		t.Fatal(err)
	}
	s := decode(t, text)
	if s.Hooks != nil {
		t.Error("there is a hook")
	}
	cards, err := m.Host.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, rule := range s.Linux.Resources.Devices {
		if !rule.Allow || rule.Type != "c" || rule.Access != "rwm" {
			t.Errorf("rule %+v", rule)
		}
		allowed[fmt.Sprintf("%d:%d", *rule.Major, *rule.Minor)] = true
	}
	want := map[string]bool{
		fmt.Sprintf("%d:%d", cards[2].Node.Major, cards[2].Node.Minor):     true,
		fmt.Sprintf("%d:%d", hosttest.ControlMajor, hosttest.ControlMinor): true,
	}
	if diff := cmp.Diff(want, allowed); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for _, d := range s.Linux.Devices {
		if err := m.Host.CharLink(host.Node{Path: d.Path, Major: uint32(d.Major), Minor: uint32(d.Minor)}); err != nil {
			t.Error(err)
		}
	}
}

// TestEscape: an image has links where mounts and nodes go, which lead to folders of the host.
func TestEscape(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		link, target string
		mount        string // a volume of the container
		want         string // part of the error; empty: the library's mount point
		at           string
	}{
		"the libraries' folder climbs out": {link: "/usr/lib/enflame", target: "../../../../etc", want: "leads out"},
		"the tools' folder climbs out":     {link: "/usr/bin", target: "../../bin", want: "leads out"},
		"dev is a link":                    {link: "/dev", target: "/tmp", want: "leads out"},
		"a link inside is followed":        {link: "/usr/lib", target: "/lib", at: "/lib/enflame/libefml.so"},
		"a link to a file is followed":     {link: "/usr/lib/enflame/libefml.so", target: "/opt/lib.so", at: "/opt/lib.so"},
		"a volume above the mount point":   {mount: "/usr/lib", want: "volume at /usr/lib"},
		"a volume behind a link":           {link: "/usr/lib", target: "/data", mount: "/data/", want: "volume at /data"},
		"a volume beside it is none":       {mount: "/usr/li", at: "/usr/lib/enflame/libefml.so"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModifier(t, "t20x4")
			bundle := t.TempDir()
			if tt.link != "" {
				hosttest.Link(t, filepath.Join(bundle, "rootfs"), tt.link, tt.target)
			}
			text, _, err := m.Apply(context.Background(), bundle, spec(t, asks("0"), func(s *specs.Spec) {
				if tt.mount != "" {
					s.Mounts = []specs.Mount{{Destination: tt.mount, Source: "/volume", Type: "bind"}}
				}
			}))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want one with %q", err, tt.want)
				}
				if strings.HasPrefix(tt.want, "leads") && !errors.Is(err, host.ErrEscape) {
					t.Errorf("error %v is not ErrEscape", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, mount := range decode(t, text).Mounts {
				found = found || mount.Destination == tt.at && strings.Contains(strings.Join(mount.Options, ","), "ro")
			}
			if !found {
				t.Errorf("no mount at %s: %s", tt.at, text)
			}
		})
	}
}

func TestLibraryPath(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ env, want []string }{
		"none yet":          {nil, []string{"LD_LIBRARY_PATH=/usr/lib/enflame"}},
		"the image's first": {[]string{"LD_LIBRARY_PATH=/opt/lib"}, []string{"LD_LIBRARY_PATH=/opt/lib:/usr/lib/enflame"}},
		"an empty one":      {[]string{"LD_LIBRARY_PATH="}, []string{"LD_LIBRARY_PATH=/usr/lib/enflame"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _, err := newModifier(t, "t20x4").Apply(context.Background(), t.TempDir(), spec(t, env(tt.env...), asks("none")))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, entry := range decode(t, text).Process.Env {
				if strings.HasPrefix(entry, "LD_") {
					got = append(got, entry)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSickHost: what cannot be looked at is not given, and does not stop those who do not ask for it.
func TestSickHost(t *testing.T) {
	t.Parallel()
	m := newModifier(t, "t20x4")
	if err := os.Remove(filepath.Join(m.Host.Root, "dev/gcu1")); err != nil {
		t.Fatal(err)
	}
	if _, o, err := m.Apply(context.Background(), t.TempDir(), spec(t, asks("0"))); err != nil || len(o.Cards) != 1 {
		t.Errorf("card 0: %+v, %v", o, err)
	}
	if _, _, err := m.Apply(context.Background(), t.TempDir(), spec(t, asks("1"))); err == nil || !strings.Contains(err.Error(), "gcu1") {
		t.Errorf("card 1: error %v", err)
	}
	if _, o, err := m.Apply(context.Background(), t.TempDir(), spec(t, asks("all"))); err != nil || len(o.Cards) != 3 || o.LeftOut == nil {
		t.Errorf("all: %+v, %v", o, err)
	}
	if err := os.Remove(filepath.Join(m.Host.Root, "dev/gcuctl")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Apply(context.Background(), t.TempDir(), spec(t, asks("0"))); err == nil {
		t.Error("a container starts without the control node")
	}
}

// FuzzApply checks that no spec gives cards to a pod of an untrusted namespace, and that what comes out is
// a spec again.
func FuzzApply(f *testing.F) {
	f.Add(`"process":{"env":["ENFLAME_VISIBLE_DEVICES=all"]}`)
	f.Add(`"linux":null,"process":null`)
	f.Add(`"linux":{"resources":{"devices":[{"allow":true,"access":"rw"}]}},"process":{"env":["ENFLAME_VISIBLE_DEVICES=0"]}`)
	f.Add(`"mounts":[null],"linux":{"devices":[null]},"process":{"env":[null,"ENFLAME_VISIBLE_DEVICES=0"]}`)
	m := newModifier(f, "t20x4")
	bundle := f.TempDir()
	f.Fuzz(func(t *testing.T, part string) {
		text := []byte(`{` + part + `}`)
		after, o, err := m.Apply(context.Background(), bundle, text)
		if err == nil && o.Changed {
			decode(t, after)
		}
		text = []byte(`{` + part + `,"annotations":{"io.kubernetes.cri.sandbox-namespace":"default"}}`)
		after, o, err = m.Apply(context.Background(), bundle, text)
		if err == nil && o.Changed && o.Reason != "the container is privileged" {
			t.Fatalf("%s gives %v: %s", text, o.Cards, after)
		}
	})
}

func BenchmarkApply(b *testing.B) {
	m := newModifier(b, "s60x8")
	text, bundle := spec(b, asks("2")), b.TempDir()
	for b.Loop() {
		if _, _, err := m.Apply(context.Background(), bundle, text); err != nil {
			b.Fatal(err)
		}
	}
}
