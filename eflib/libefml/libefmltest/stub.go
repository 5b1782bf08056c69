// Package libefmltest builds the made-up libefml of folder stub and says what it answers.
package libefmltest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
)

// Stub is one made-up library: a file of its own, so that tests do not share its state.
type Stub struct {
	// Library is the file to open.
	Library string

	t     testing.TB
	mu    sync.Mutex        // guards lines
	lines map[string]string // answers by "function key"
}

// New builds the library and copies it for this test. Without a C compiler the test is skipped; a
// compiler that fails is a failure.
func New(t testing.TB) *Stub { return place(t, full) }

// NewBare is New without any function that a library may lack.
func NewBare(t testing.TB) *Stub { return place(t, bare) }

var (
	full = sync.OnceValues(func() ([]byte, error) { return compile() })
	bare = sync.OnceValues(func() ([]byte, error) { return compile("-DOMIT_OPTIONAL") })
)

func place(t testing.TB, build func() ([]byte, error)) *Stub {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler named cc to build the made-up libefml")
	}
	library, err := build()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stub{Library: filepath.Join(t.TempDir(), "libefml.so"), t: t, lines: map[string]string{}}
	if err := os.WriteFile(s.Library, library, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write()
	// A test that leaves calls hanging gets them back, so that none outlives it.
	t.Cleanup(func() { s.Set("EfmlGetDevCount", "-", "0"); s.release() })
	return s
}

func compile(flags ...string) ([]byte, error) {
	_, file, _, _ := runtime.Caller(0)
	source := filepath.Join(filepath.Dir(file), "../stub/efml_stub.c")
	folder, err := os.MkdirTemp("", "efml-stub-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	target := filepath.Join(folder, "libefml.so")
	args := append(flags, "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl")
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cc %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return os.ReadFile(target)
}

// Set says what a function answers to a key from now on; stub/efml_stub.c says how to write both.
func (s *Stub) Set(function, key, answer string) {
	s.mu.Lock()
	s.lines[function+" "+key] = answer
	s.mu.Unlock()
	s.write()
}

// Unset takes an answer back: not supported.
func (s *Stub) Unset(function, key string) {
	s.mu.Lock()
	delete(s.lines, function+" "+key)
	s.mu.Unlock()
	s.write()
}

func (s *Stub) release() {
	s.mu.Lock()
	maps.DeleteFunc(s.lines, func(_, answer string) bool { return answer == "!hang" })
	s.mu.Unlock()
	s.write()
}

// write replaces the description in one step.
func (s *Stub) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.lines)) {
		fmt.Fprintln(&b, key, s.lines[key])
	}
	path := s.Library + ".txt"
	err := os.WriteFile(path+".new", []byte(b.String()), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// Calls returns "init" and "shutdown" for each such call, in order.
func (s *Stub) Calls() []string {
	text, err := os.ReadFile(s.Library + ".calls")
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Show makes the library answer as a machine would. Its indexes are the places of the cards in the
// machine, not their minors, as nothing promises that these agree.
func (s *Stub) Show(m sim.Machine) {
	lines := map[string]string{}
	if m.DriverVersion == "" {
		lines["EfmlInit -"], lines["EfmlGetDevCount -"] = "!6", "!6"
	} else {
		lines["EfmlGetDriverVer -"], lines["EfmlGetLibVer -"] = m.DriverVersion, "2.1.0"
		lines["EfmlGetDevCount -"] = fmt.Sprint(len(m.Cards))
		for index, card := range m.Cards {
			s.card(lines, m, index, card)
		}
	}
	s.mu.Lock()
	s.lines = lines
	s.mu.Unlock()
	s.write()
}

func (s *Stub) card(lines map[string]string, m sim.Machine, index int, card eflib.Device) {
	set := func(function string, values ...any) {
		lines[fmt.Sprint(function, " ", index)] = strings.TrimSuffix(fmt.Sprintln(values...), "\n")
	}
	a := card.PCIAddress
	set("EfmlGetDevInfo", card.VendorID, card.DeviceID, a.Domain, a.Bus, a.Device, a.Function)
	if m.Hangs(card.Minor) {
		set("EfmlGetDevInfo", "!hang")
		return
	}
	if m.Broken(card.Minor) {
		set("EfmlGetDevHealth", "!254")
		return
	}
	sample, err := m.Sample(s.t.Context(), card, eflib.AllFields)
	if err != nil {
		s.t.Fatal(err)
	}
	set("EfmlGetNumaNode", card.NUMA)
	describe(lines, index, sample, set)
}

func describe(lines map[string]string, index int, s eflib.Sample, set func(string, ...any)) {
	id, _ := s.Identity.Value()
	set("EfmlGetDevName", id.Name)
	set("EfmlGetDevUuid", strings.TrimPrefix(id.UUID, "GCU-"))
	set("EfmlGetDevSn", id.SerialNumber)
	set("EfmlGetFwVersion", id.Firmware)
	health, _ := s.Health.Value()
	set("EfmlGetDevHealth", bit(health.State == eflib.Healthy))
	memory, _ := s.Memory.Value()
	set("EfmlGetDevMem", memory.TotalBytes, memory.UsedBytes>>20)
	watts, _ := s.PowerWatts.Value()
	limit, _ := s.PowerCap.Value()
	set("EfmlGetDevPwr", limit, watts)
	asic, _ := s.ASICCelsius.Value()
	hbm, _ := s.HBMCelsius.Value()
	board, _ := s.BoardCelsius.Value()
	set("EfmlGetDevTempV2", asic, hbm, board)
	core, _ := s.CoreMHz.Value()
	hbmClock, _ := s.HBMMHz.Value()
	set("EfmlGetDevClk", hbmClock, core)
	usage, _ := s.Usage.Value()
	set("EfmlGetDevDtuUsageAsync", usage)
	sip, _ := s.SIPUsage.Value()
	set("EfmlGetDevSipUsage", sip)
	if clusters, known := s.ClusterUsage.Value(); known {
		set("EfmlGetClusterCount", len(clusters))
		for i, c := range clusters {
			v, _ := c.Value()
			lines[fmt.Sprintf("EfmlGetDevClusterUsage %d.%d", index, i)] = fmt.Sprint(v)
		}
	}
	link, _ := s.PCIeLink.Value()
	set("EfmlGetPcieLinkInfo", link.Generation, link.MaxGeneration, link.Width, link.MaxWidth)
	set("EfmlGetPcieThroughput", 0, 0, 0, 0)
	ecc, _ := s.ECC.Value()
	set("EfmlGetDevEccStatus", bit(ecc.Enabled), bit(ecc.Pending), 0, ecc.SingleBit, ecc.DoubleBit)
	rma, _ := s.RMA.Value()
	set("EfmlGetDevRmaDetails", 1, bit(rma.Flagged), rma.DoubleBit)
	mode, _ := s.PowerMode.Value()
	set("EfmlGetPowerMode", int(mode))
	virtualization, _ := s.Virtualization.Value()
	set("EfmlGetGcuVirtStatus", int(virtualization))
	set("EfmlGetGcuLareIsSupported", 0)
	set("EfmlGetProcessInfo", 0)
	set("EfmlGetErrorRecords", 0)
	set("EfmlGetVdevCount", 0)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
