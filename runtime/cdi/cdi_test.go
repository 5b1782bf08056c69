package cdi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	library "tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/runtime/cdi"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

const dir = "/etc/cdi"

var ctx = context.Background()

func generate(t testing.TB, h *host.Host, removeLast bool) cdi.Result {
	t.Helper()
	r, err := cdi.Generate(ctx, h, dir, removeLast)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func listed(t testing.TB, h *host.Host) []string {
	t.Helper()
	list, err := cdi.List(h, dir, "/var/run/cdi")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range list {
		out = append(out, l.Name)
	}
	return out
}

func check(t testing.TB, h *host.Host) string {
	t.Helper()
	found, err := cdi.Check(ctx, h, dir)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, "; ")
}

// change puts a changed machine below a host's root.
func change(t testing.TB, h *host.Host, preset string, change func(m *sim.Machine)) {
	t.Helper()
	m, err := sim.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	change(&m)
	if err := m.WriteSysfs(h.Root); err != nil {
		t.Fatal(err)
	}
}

// TestEveryDeviceResolves looks at each card's names as an engine does, on machines of each kind.
func TestEveryDeviceResolves(t *testing.T) {
	t.Parallel()
	for _, preset := range sim.Presets() {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			h := hosttest.New(t, preset)
			generate(t, h, false)
			cards, err := h.List(ctx)
			if _, all := eflib.DeviceErrors(err); !all {
				t.Fatal(err)
			}
			cache, err := library.NewCache(library.WithSpecDirs(filepath.Join(h.Root, dir)), library.WithAutoRefresh(false))
			if err != nil {
				t.Fatal(err)
			}
			resolve := func(name string) []string {
				spec := &specs.Spec{Linux: &specs.Linux{Resources: &specs.LinuxResources{}}}
				if missing, err := cache.InjectDevices(spec, "enflame.com/gcu="+name); err != nil || len(missing) > 0 {
					t.Fatalf("%s: %v, missing %v", name, err, missing)
				}
				var nodes []string
				for i, d := range spec.Linux.Devices {
					nodes = append(nodes, d.Path)
					rule := spec.Linux.Resources.Devices[i]
					if !rule.Allow || *rule.Major != d.Major || *rule.Minor != d.Minor || rule.Access != "rwm" {
						t.Errorf("%s: rule %+v of %s", name, rule, d.Path)
					}
				}
				if len(spec.Mounts) != 4 {
					t.Errorf("%s: %d mounts", name, len(spec.Mounts))
				}
				return nodes
			}
			for _, card := range cards {
				want := []string{"/dev/gcuctl", card.Node.Path}
				for _, name := range []string{strconv.Itoa(card.Device.Minor), card.Device.UUID} {
					if diff := cmp.Diff(want, resolve(name)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
			}
			if got := resolve(cdi.All); len(got) != len(cards)+1 {
				t.Errorf("all is %v", got)
			}
			if found := check(t, h); found != "" {
				t.Errorf("check: %s", found)
			}
		})
	}
}

func TestGenerateTwiceWritesOnce(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	first := generate(t, h, false)
	if second := generate(t, h, false); !first.Changed || second.Changed {
		t.Errorf("changed: first %t, second %t", first.Changed, second.Changed)
	}
	// A power cut left half a file, a killed writer its staging folder.
	hosttest.Write(t, h.Root, dir+"/enflame.com-gcu.yaml", "cdiVersion: 0.5.0\nkind: enfl")
	hosttest.Write(t, h.Root, dir+"/.enflame-staging-1/enflame.com-gcu.yaml", "half")
	if found := check(t, h); found == "" {
		t.Error("check says nothing of half a file")
	}
	generate(t, h, false)
	entries, err := os.ReadDir(filepath.Join(h.Root, dir))
	if err != nil || len(entries) != 1 || check(t, h) != "" {
		t.Errorf("left %v, %v; check: %s", entries, err, check(t, h))
	}
}

// TestSpecIsBackAfterReboot: the folder was on tmpfs; after the reboot it was gone while everything that
// was derived from it believed it there.
func TestSpecIsBackAfterReboot(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	first := generate(t, h, false)
	if err := os.RemoveAll(filepath.Dir(first.Path)); err != nil {
		t.Fatal(err)
	}
	if found := check(t, h); !strings.Contains(found, "is missing") {
		t.Errorf("check: %s", found)
	}
	if again := generate(t, h, false); !again.Changed || check(t, h) != "" {
		t.Errorf("%+v, check: %s", again, check(t, h))
	}
}

// TestLastCard: an empty spec is not valid, so one that was written kept all later ones from being written.
func TestLastCard(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	path := generate(t, h, false).Path
	change(t, h, "t20x4", func(m *sim.Machine) { m.Cards = m.Cards[:1] })
	if generate(t, h, true); check(t, h) != "" || len(listed(t, h)) != 3 {
		t.Errorf("with one card: %v, check: %s", listed(t, h), check(t, h))
	}
	change(t, h, "t20x4", func(m *sim.Machine) { m.Cards = nil })
	if _, err := cdi.Generate(ctx, h, dir, false); err == nil {
		t.Error("the last card's spec goes without being asked for")
	}
	if found := check(t, h); !strings.Contains(found, "has no card") {
		t.Errorf("check: %s", found)
	}
	if r := generate(t, h, true); !r.Removed {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	if r := generate(t, h, true); r.Removed || check(t, h) != "" {
		t.Errorf("again: %+v", r)
	}
	change(t, h, "t20x4", func(m *sim.Machine) { m.Cards = m.Cards[:1] })
	if r := generate(t, h, true); !r.Changed || len(listed(t, h)) != 3 {
		t.Errorf("the next card: %+v, %v", r, listed(t, h))
	}
}

// TestReaderNeverSeesAPart reads the file in a loop while it is written again and again; 1000 times in full.
func TestReaderNeverSeesAPart(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "s60x8")
	cards, err := h.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	path := generate(t, h, false).Path
	stop, reads := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				reads <- n
				return
			default:
			}
			spec, err := library.ReadSpec(path, 0)
			if err != nil || len(spec.Devices) != 2*len(cards)+1 && len(spec.Devices) != 3 {
				t.Errorf("read %d: %v", n, err)
			}
			n++
		}
	}()
	turns := 60
	if os.Getenv("TOPSCLOUD_TEST_FULL") != "" {
		turns = 1000
	}
	inventory := &turning{all: h.Cards}
	h.Cards = inventory
	for range turns {
		if r := generate(t, h, false); !r.Changed {
			t.Fatal("nothing was written")
		}
	}
	close(stop)
	if n := <-reads; n < 10 {
		t.Errorf("only %d reads", n)
	}
}

// turning has all cards every other time, and one in between.
type turning struct {
	all  eflib.Inventory
	turn int
	list []eflib.Device
}

func (i *turning) Devices(ctx context.Context) ([]eflib.Device, error) {
	if i.list == nil {
		list, err := i.all.Devices(ctx)
		if err != nil {
			return nil, err
		}
		i.list = list
	}
	if i.turn++; i.turn%2 == 1 {
		return i.list[:1], nil
	}
	return i.list, nil
}

// TestOthersStay: whole cards and tickets of shared ones wrote one file, and each took the other's devices
// away.
func TestOthersStay(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	hosttest.Write(t, h.Root, "/var/run/cdi/enflame.com-gcushare-x.json",
		`{"cdiVersion":"0.5.0","kind":"enflame.com/gcushare","devices":[{"name":"ticket-1","containerEdits":{"env":["A=b"]}}]}`)
	hosttest.Write(t, h.Root, "/etc/cdi/acme.json",
		`{"cdiVersion":"0.5.0","kind":"acme.com/npu","devices":[{"name":"0","containerEdits":{"env":["A=b"]}}]}`)
	generate(t, h, false)
	got := strings.Join(listed(t, h), " ")
	if !strings.Contains(got, "enflame.com/gcushare=ticket-1") || !strings.Contains(got, "enflame.com/gcu=all") || strings.Contains(got, "acme") {
		t.Errorf("listed: %s", got)
	}
}

// TestDriverAway: a generator that ran before the driver was loaded replaced a good spec by an empty one.
func TestDriverAway(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	path := generate(t, h, false).Path
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	same := func() {
		t.Helper()
		if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
			t.Errorf("the file has changed: %v", err)
		}
	}
	change(t, h, "t20x4", func(m *sim.Machine) { m.DriverVersion = "" })
	for _, removeLast := range []bool{false, true} {
		if _, err := cdi.Generate(ctx, h, dir, removeLast); !errors.Is(err, eflib.ErrDriverNotLoaded) {
			t.Errorf("removeLast %t: error %v", removeLast, err)
		}
		same()
	}
	change(t, h, "t20x4", func(*sim.Machine) {})
	nodes, err := filepath.Glob(filepath.Join(h.Root, "dev/gcu[0-9]"))
	if err != nil || len(nodes) != 4 {
		t.Fatal(nodes, err)
	}
	for _, node := range nodes {
		if err := os.Remove(node); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cdi.Generate(ctx, h, dir, true); err == nil {
		t.Error("no card answers, and the spec goes")
	}
	same()
	if err := os.Remove(filepath.Join(h.Root, "dev/gcuctl")); err != nil {
		t.Fatal(err)
	}
	if _, err := cdi.Generate(ctx, h, dir, true); err == nil {
		t.Error("no control node, and the spec goes")
	}
	same()
}

// TestEngineRoot: written by a pod that has the host in a folder of its own, the spec named paths below that
// folder, which the engine does not have.
func TestEngineRoot(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	h.EngineRoot = "/"
	r := generate(t, h, false)
	text, err := os.ReadFile(r.Path)
	if err != nil || strings.Contains(string(text), h.Root) || strings.Contains(string(text), "hostPath: /dev") || !strings.Contains(string(text), "hostPath: /usr/bin/efsmi") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestSickCard: the others are written, and the one is named.
func TestSickCard(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	generate(t, h, false)
	hosttest.Write(t, h.Root, "/dev/gcu1", "1:3")
	if found := check(t, h); !strings.Contains(found, "device 1 is no more") || !strings.Contains(found, "not looked at") {
		t.Errorf("check: %s", found)
	}
	if r := generate(t, h, false); r.LeftOut == nil || len(r.Devices) != 7 {
		t.Errorf("%+v", r)
	}
}
