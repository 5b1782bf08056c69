package libefml_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/eflibtest"
	"github.com/topscloud/topscloud/eflib/libefml"
	"github.com/topscloud/topscloud/eflib/libefml/libefmltest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/topology"
)

func open(t *testing.T, stub *libefmltest.Stub, timeout time.Duration) *libefml.Library {
	t.Helper()
	l, err := libefml.Open(libefml.Options{Path: stub.Library, CallTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTelemetry(t *testing.T) {
	can := eflibtest.Can{Fields: eflib.AllFields &^ eflib.FieldPGUsage, Alone: true}
	eflibtest.TestTelemetry(t, can, func(t *testing.T, m sim.Machine) eflibtest.Rig {
		stub := libefmltest.New(t)
		// Alone, the library's index is the minor; joined with sysfs it need not be.
		show := func(m sim.Machine) {
			m = m.Clone()
			slices.SortFunc(m.Cards, func(a, b eflib.Device) int { return a.Minor - b.Minor })
			stub.Show(m)
		}
		show(m)
		l := open(t, stub, time.Second)
		return eflibtest.Rig{Inventory: l, Telemetry: l, Show: show}
	})
}

// one is a library with one card in full.
func one(t *testing.T) (*libefmltest.Stub, *libefml.Library, eflib.Device) {
	t.Helper()
	m, err := sim.Preset("s60x8")
	if err != nil {
		t.Fatal(err)
	}
	m.Cards = m.Cards[:1]
	stub := libefmltest.New(t)
	stub.Show(m)
	return stub, open(t, stub, time.Second), m.Cards[0]
}

func TestEveryFunction(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	for function, answer := range map[string]string{
		"EfmlGetDevName": "Enflame S60", "EfmlGetDevSKU": "sku", "EfmlGetDevUuid": "TR1V57100501", "EfmlGetDevSn": "C0AAD40510049",
		"EfmlGetDevPn": "EFB-0088000-00", "EfmlGetDevMfd": "2024-10-13", "EfmlGetFwVersion": "33.6.5", "EfmlGetHwArchName": "scorpio",
		"EfmlGetDevSlotOamName": "PCIE3_GPU", "EfmlGetAffinityCpuList": "0-31", "EfmlGetDevMem": "45063602176 1129",
		"EfmlGetDevPwr": "300 118.5", "EfmlGetDevTempV2": "71 72.5 60", "EfmlGetDevClk": "7000 1400",
		"EfmlGetDevDtuUsage": "99", "EfmlGetDevDtuUsageAsync": "12.5", "EfmlGetDevSipUsage": "33", "EfmlGetClusterCount": "2",
		"EfmlGetPGCount": "1", "EfmlGetPcieLinkInfo": "3 5 8 16", "EfmlGetPcieThroughput": "1.5 2.5 18446744073709551614 4",
		"EfmlGetDevEccStatus": "1 0 1 5 6", "EfmlGetDevRmaDetails": "1 0 6", "EfmlGetDevHealth": "1", "EfmlGetPowerMode": "5",
		"EfmlGetGcuVirtStatus": "3", "EfmlGetNumaNode": "1", "EfmlGetGcuLareIsSupported": "1", "EfmlGetGcuLarePortNum": "2",
		"EfmlGetProcessInfo":  "2 100 1048576 4096 200 2097152 0",
		"EfmlGetErrorRecords": "1 7 2 3 1700000000 4352", "EfmlGetVdevCount": "1",
	} {
		stub.Set(function, "0", answer)
	}
	for key, answer := range map[string]string{
		"EfmlGetDevClusterUsage 0.0": "10", "EfmlGetDevClusterUsage 0.1": "20", "EfmlGetDevPGUsage 0.0": "30",
		"EfmlGetGcuLarePortInfo 0.0": "1 0 18 0 0 3", "EfmlGetGcuLareLinkInfo 0.0": "2 2 8 8",
		"EfmlGetGcuLarePortInfo 0.1": "0 0 0 0 0 0", "EfmlGetGcuLareLinkInfo 0.1": "0 2 0 8",
		"EfmlGetVdevMem 0.0": "7516192768 10", "EfmlGetVdevDtuUsage 0.0": "40",
	} {
		function, part, _ := strings.Cut(key, " ")
		stub.Set(function, part, answer)
	}
	got, err := l.Sample(t.Context(), card, eflib.AllFields)
	if err != nil {
		t.Fatal(err)
	}
	percent := func(list ...float64) eflib.Reading[[]eflib.Reading[float64]] {
		var out []eflib.Reading[float64]
		for _, v := range list {
			out = append(out, eflib.Known(v))
		}
		return eflib.Known(out)
	}
	want := eflib.Sample{
		Identity: eflib.Known(eflib.Identity{
			Name: "Enflame S60", UUID: "GCU-TR1V57100501", SerialNumber: "C0AAD40510049", PartNumber: "EFB-0088000-00",
			ManufacturedOn: "2024-10-13", SKU: "sku", Firmware: "33.6.5", Architecture: "scorpio", Slot: "PCIE3_GPU", CPUs: "0-31",
		}),
		Health:         eflib.Known(eflib.Health{State: eflib.Healthy}),
		Memory:         eflib.Known(eflib.Memory{TotalBytes: 45063602176, UsedBytes: 1129 << 20}),
		PowerWatts:     eflib.Known(118.5),
		PowerCap:       eflib.Known(300.0),
		ASICCelsius:    eflib.Known(71.0),
		HBMCelsius:     eflib.Known(72.5),
		BoardCelsius:   eflib.Known(60.0),
		CoreMHz:        eflib.Known(1400.0),
		HBMMHz:         eflib.Known(7000.0),
		Usage:          eflib.Known(12.5),
		SIPUsage:       eflib.Known(33.0),
		ClusterUsage:   percent(10, 20),
		PGUsage:        percent(30),
		PCIeLink:       eflib.Known(eflib.Link{Generation: 3, MaxGeneration: 5, Width: 8, MaxWidth: 16}),
		PCIeThroughput: eflib.Known(eflib.Throughput{Transmit: 1.5, Receive: 2.5, TransmitNAK: math.MaxUint64 - 1, ReceiveNAK: 4}),
		ECC:            eflib.Known(eflib.ECC{Enabled: true, RetirementPending: true, SingleBit: 5, DoubleBit: 6}),
		RMA:            eflib.Known(eflib.RMA{DoubleBit: 6}),
		PowerMode:      eflib.Known(eflib.PowerSuspend),
		Virtualization: eflib.Known(eflib.VirtSRIOVPF),
		Processes: eflib.Known([]eflib.Process{
			{PID: 100, DeviceBytes: 1 << 20, SystemBytes: 4096}, {PID: 200, DeviceBytes: 2 << 20},
		}),
		Ports: eflib.Known([]eflib.Port{
			{Link: eflib.Known(eflib.Link{Generation: 2, MaxGeneration: 2, Width: 8, MaxWidth: 8}), Connected: true, Remote: topology.Address{Bus: 0x12}, RemotePort: 3},
			{Number: 1, Link: eflib.Known(eflib.Link{MaxGeneration: 2, MaxWidth: 8})},
		}),
		VirtualDevices: eflib.Known([]eflib.VirtualDevice{{Memory: eflib.Known(eflib.Memory{TotalBytes: 7 << 30, UsedBytes: 10 << 20}), Usage: eflib.Known(40.0)}}),
		ErrorRecords:   eflib.Known([]eflib.ErrorRecord{{ID: 7, ResetType: 2, Source: 3, Timestamp: 1700000000}}),
	}
	got.Time = time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Fields() != eflib.AllFields {
		t.Errorf("fields %b", got.Fields())
	}
	if h, err := l.Host(t.Context()); err != nil || h.DriverVersion != "1.8.7" {
		t.Errorf("host: %+v, %v", h, err)
	}
	if v, err := l.Version(t.Context()); err != nil || v != "2.1.0" {
		t.Errorf("version: %q, %v", v, err)
	}
	stub.Unset("EfmlGetDevDtuUsageAsync", "0")
	if s, _ := l.Sample(t.Context(), card, eflib.FieldUsage); !s.Usage.Equal(eflib.Known(99.0)) {
		t.Errorf("without the call that does not sample: %v", s.Usage)
	}
}

// Every code, on one reading: it is that reading's error, and the others are read.
func TestCodes(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	for code := range uint32(256) {
		if code == 0 || code == 1 || code == 6 {
			continue // success, and what starts the library again: TestDriverReload
		}
		stub.Set("EfmlGetDevPwr", "0", fmt.Sprint("!", code))
		s, err := l.Sample(t.Context(), card, eflib.FieldPower|eflib.FieldMemory)
		if err != nil || s.Memory.Err() != nil {
			t.Fatalf("code %d: %v, memory %v", code, err, s.Memory)
		}
		reason := s.PowerWatts.Err()
		var of *libefml.CodeError
		var named *eflib.DeviceError
		if !errors.As(reason, &of) || of.Code != code || !errors.As(reason, &named) || named.Reading != "power" || named.Entry != card.Entry() {
			t.Errorf("code %d: %v", code, reason)
		}
		for target, codes := range map[error][]uint32{
			eflib.ErrNotSupported: {3, 9, 13}, eflib.ErrDeviceLost: {12}, eflib.ErrTimeout: {253}, eflib.ErrDriverNotLoaded: {},
		} {
			if errors.Is(reason, target) != slices.Contains(codes, code) {
				t.Errorf("code %d: %v: wrong about %v", code, reason, target)
			}
		}
	}
}

// Case 46: what a driver says when it has nothing to say is never a value.
func TestGarbage(t *testing.T) {
	t.Parallel()
	const none = "4294967295"
	for name, tt := range map[string]struct{ function, answer, reading string }{
		"usage of 4294967295":        {"EfmlGetDevDtuUsageAsync", none, "Usage"},
		"usage of NaN":               {"EfmlGetDevDtuUsageAsync", "nan", "Usage"},
		"usage over 100":             {"EfmlGetDevDtuUsageAsync", "100.5", "Usage"},
		"usage below 0":              {"EfmlGetDevSipUsage", "-1", "SIPUsage"},
		"usage without end":          {"EfmlGetDevSipUsage", "inf", "SIPUsage"},
		"more in use than there is":  {"EfmlGetDevMem", "1073741824 2048", "Memory"},
		"no memory":                  {"EfmlGetDevMem", "0 0", "Memory"},
		"memory of -1":               {"EfmlGetDevMem", "18446744073709551615 0", "Memory"},
		"memory in use of -1":        {"EfmlGetDevMem", "45063602176 " + none, "Memory"},
		"a temperature of -1":        {"EfmlGetDevTempV2", "-1 40 40", "ASICCelsius"},
		"a temperature of 65535":     {"EfmlGetDevTempV2", "40 65535 40", "HBMCelsius"},
		"a temperature of NaN":       {"EfmlGetDevTempV2", "40 40 nan", "BoardCelsius"},
		"a clock of 4294967295":      {"EfmlGetDevClk", none + " 1400", "HBMMHz"},
		"a power of 4294967295":      {"EfmlGetDevPwr", "300 " + none, "PowerWatts"},
		"a power of minus infinity":  {"EfmlGetDevPwr", "-inf 100", "PowerCap"},
		"clusters of 4294967295":     {"EfmlGetClusterCount", none, "ClusterUsage"},
		"a link of 4294967295 lanes": {"EfmlGetPcieLinkInfo", "5 5 " + none + " 16", "PCIeLink"},
		"a link of 0":                {"EfmlGetPcieLinkInfo", "0 0 0 0", "PCIeLink"},
		"a throughput of NaN":        {"EfmlGetPcieThroughput", "nan 0 0 0", "PCIeThroughput"},
		"NAK of -1":                  {"EfmlGetPcieThroughput", "0 0 18446744073709551615 0", "PCIeThroughput"},
		"errors of 4294967295":       {"EfmlGetDevEccStatus", "1 1 0 " + none + " 0", "ECC"},
		"a boolean of 7":             {"EfmlGetDevEccStatus", "7 1 0 0 0", "ECC"},
		"RMA without support":        {"EfmlGetDevRmaDetails", "0 1 0", "RMA"},
		"health of 255":              {"EfmlGetDevHealth", "255", "Health"},
		"power mode 3":               {"EfmlGetPowerMode", "3", "PowerMode"},
		"virtualisation 4294967295":  {"EfmlGetGcuVirtStatus", none, "Virtualization"},
		"processes of 4294967295":    {"EfmlGetProcessInfo", none, "Processes"},
		"a process of number 0":      {"EfmlGetProcessInfo", "1 0 1 1", "Processes"},
		"a process that holds -1":    {"EfmlGetProcessInfo", "1 5 18446744073709551615 1", "Processes"},
		"ports of 4294967295":        {"EfmlGetGcuLarePortNum", none, "Ports"},
		"virtual devices of -1":      {"EfmlGetVdevCount", "-1", "VirtualDevices"},
		"a uuid without an end":      {"EfmlGetDevUuid", "!fill A", "Identity"},
		"a uuid of odd bytes":        {"EfmlGetDevUuid", "!bytes 41ff4200", "Identity"},
		"a uuid of two lines":        {"EfmlGetDevUuid", "!bytes 410a4200", "Identity"},
		"a serial number with quote": {"EfmlGetDevSn", `A"B`, "Identity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, l, card := one(t)
			stub.Set("EfmlGetGcuLareIsSupported", "0", "1")
			stub.Set("EfmlGetGcuLarePortNum", "0", "0")
			stub.Set("EfmlGetClusterCount", "0", "0")
			stub.Set("EfmlGetPGCount", "0", "0")
			stub.Set(tt.function, "0", tt.answer)
			s, err := l.Sample(t.Context(), card, eflib.AllFields)
			if err != nil {
				t.Fatal(err)
			}
			v := reflect.ValueOf(s)
			for i := range v.NumField() {
				r, isReading := v.Field(i).Interface().(interface{ Err() error })
				if !isReading {
					continue
				}
				field := v.Type().Field(i).Name
				bad := field == tt.reading
				if err := r.Err(); bad != (err != nil) || bad && tt.reading != "RMA" && !errors.Is(err, eflib.ErrImplausible) {
					t.Errorf("%s: %v, %v", field, r, err)
				}
			}
		})
	}
}

func TestTextsAreBoundedAndClean(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	stub.Set("EfmlGetDevName", "0", "!fill N")
	stub.Set("EfmlGetFwVersion", "0", "!bytes 33332e1b5b33316d362e35ff0a00")
	s, err := l.Sample(t.Context(), card, eflib.FieldIdentity)
	id, known := s.Identity.Value()
	if err != nil || !known || id.Name != strings.Repeat("N", 128) || id.Firmware != "33.[31m6.5" {
		t.Errorf("got %q, %q, %v, %v", id.Name, id.Firmware, s.Identity, err)
	}
}

func TestLibraryWithoutOptionalFunctions(t *testing.T) {
	t.Parallel()
	stub := libefmltest.NewBare(t)
	stub.Set("EfmlGetDevCount", "-", "1")
	stub.Set("EfmlGetDevInfo", "0", "0x1e36 0xc035 0 0x11 0 0")
	l := open(t, stub, time.Second)
	devices, err := l.Devices(t.Context())
	if err != nil || len(devices) != 1 || devices[0].UUID != "" || devices[0].Health.Problem() != "health not supported" || devices[0].Model != "S60" {
		t.Fatalf("got %+v, %v", devices, err)
	}
	s, err := l.Sample(t.Context(), devices[0], eflib.AllFields)
	if err != nil || s.Fields() != eflib.FieldIdentity || !errors.Is(s.ECC.Err(), eflib.ErrNotSupported) || !errors.Is(s.Processes.Err(), eflib.ErrNotSupported) {
		t.Errorf("got %b, %v, %v", s.Fields(), s.ECC, err)
	}
	if err := l.Events(t.Context(), nil); err != nil {
		t.Errorf("events: %v", err)
	}
}

func TestDriverReload(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	sample := func() error {
		_, err := l.Sample(t.Context(), card, eflib.FieldMemory)
		return err
	}
	if err := sample(); err != nil {
		t.Fatal(err)
	}
	stub.Set("EfmlInit", "-", "!6")
	stub.Set("EfmlGetDevMem", "0", "!6")
	if err := sample(); !errors.Is(err, eflib.ErrDriverNotLoaded) {
		t.Errorf("the driver goes: %v", err)
	}
	for range 50 {
		if err := sample(); !errors.Is(err, eflib.ErrDriverNotLoaded) {
			t.Errorf("the driver is gone: %v", err)
		}
	}
	if calls := len(stub.Calls()); calls > 20 {
		t.Errorf("%d starts and ends for 50 questions without a driver", calls)
	}
	stub.Unset("EfmlInit", "-")
	stub.Set("EfmlGetDevMem", "0", "45063602176 0")
	for end := time.Now().Add(5 * time.Second); sample() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the driver is back and nobody noticed")
		}
	}
	if calls := stub.Calls(); calls[0] != "init" || !slices.Contains(calls, "shutdown") {
		t.Errorf("calls %v", calls)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if calls := stub.Calls(); calls[len(calls)-1] != "shutdown" {
		t.Errorf("calls %v", calls)
	}
	if err := sample(); !errors.Is(err, libefml.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// The library starts and says that it is not started, whatever is done. Nobody is told to load a driver that may well
// be there, and the reading comes back when the library does.
func TestLibraryThatStaysUninitialised(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	stub.Set("EfmlGetDevMem", "0", "!1")
	for range 3 {
		s, err := l.Sample(t.Context(), card, eflib.FieldMemory)
		reason := errors.Join(err, s.Memory.Err())
		var of *libefml.CodeError
		if errors.Is(reason, eflib.ErrDriverNotLoaded) || !errors.As(reason, &of) || of.Code != 1 {
			t.Errorf("the driver is there and the library cannot be started: %v", reason)
		}
	}
	stub.Set("EfmlInit", "-", "!6")
	if _, err := l.Sample(t.Context(), card, eflib.FieldMemory); !errors.Is(err, eflib.ErrDriverNotLoaded) {
		t.Errorf("the driver is gone: %v", err)
	}
	stub.Unset("EfmlInit", "-")
	stub.Set("EfmlGetDevMem", "0", "45063602176 0")
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s, err := l.Sample(t.Context(), card, eflib.FieldMemory); err == nil && s.Memory.Err() == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the library works again and nobody noticed")
		}
	}
}

// One reading hangs. Readings before it are there, the rest is out of time at once, the card stays
// marked until the call is back, and other cards never notice.
func TestStuckCard(t *testing.T) {
	m, err := sim.Preset("s60x8")
	if err != nil {
		t.Fatal(err)
	}
	stub := libefmltest.New(t)
	stub.Show(m)
	l := open(t, stub, 200*time.Millisecond)
	if _, err := l.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	stub.Set("EfmlGetDevPwr", "2", "!hang")
	s, err := l.Sample(t.Context(), m.Cards[2], eflib.AllFields)
	if err != nil || s.Memory.Err() != nil || !errors.Is(s.PowerWatts.Err(), eflib.ErrTimeout) || !errors.Is(s.Usage.Err(), eflib.ErrTimeout) {
		t.Errorf("memory %v, power %v, usage %v, %v", s.Memory, s.PowerWatts, s.Usage, err)
	}
	start := time.Now()
	for range 200 {
		if _, err := l.Sample(t.Context(), m.Cards[2], eflib.FieldMemory); !errors.Is(err, eflib.ErrTimeout) {
			t.Fatalf("a stuck card answered: %v", err)
		}
	}
	if took := time.Since(start); took > 150*time.Millisecond*20 {
		t.Errorf("200 questions to a stuck card took %v", took)
	}
	if now := runtime.NumGoroutine(); now > before+3 {
		t.Errorf("%d goroutines, %d before", now, before)
	}
	if s, err := l.Sample(t.Context(), m.Cards[3], eflib.AllFields); err != nil || s.PowerWatts.Err() != nil {
		t.Errorf("another card: %v, %v", s.PowerWatts, err)
	}
	// The driver is reloaded under the stuck call: the others come back, and the library is not ended
	// while a call is in it.
	stub.Set("EfmlGetDevMem", "3", "!1")
	if s, _ := l.Sample(t.Context(), m.Cards[3], eflib.FieldMemory); !errors.Is(s.Memory.Err(), eflib.ErrDriverNotLoaded) && !errors.Is(s.Memory.Err(), eflib.ErrTimeout) {
		t.Errorf("a driver that is new at every call: %v", s.Memory)
	}
	stub.Set("EfmlGetDevMem", "3", "45063602176 0")
	eventually(t, func() bool {
		_, err := l.Sample(t.Context(), m.Cards[3], eflib.FieldMemory)
		return err == nil
	})
	if slices.Contains(stub.Calls(), "shutdown") {
		t.Errorf("the library was ended under a call: %v", stub.Calls())
	}
	stub.Set("EfmlGetDevPwr", "2", "300 100")
	eventually(t, func() bool {
		s, err := l.Sample(t.Context(), m.Cards[2], eflib.FieldPower)
		return err == nil && s.PowerWatts.Err() == nil
	})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A caller that goes away does not make a card look stuck.
func TestCancelledCallIsNotStuck(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	if _, err := l.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	stub.Set("EfmlGetDevPwr", "0", "!slow 100")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if s, _ := l.Sample(ctx, card, eflib.FieldPower); !errors.Is(s.PowerWatts.Err(), context.Canceled) {
		t.Errorf("cancelled: %v", s.PowerWatts)
	}
	if _, err := l.Sample(t.Context(), card, eflib.FieldMemory); err != nil {
		t.Errorf("right after it: %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	stub, l, _ := one(t)
	if err := l.Events(t.Context(), nil); err != nil {
		t.Errorf("a driver without events: %v", err)
	}
	stub.Set("EfmlGetEvent", "-", "on")
	stub.Set("EfmlGetEvent", "1", "7 20 something broke")
	stub.Set("EfmlGetEvent", "2", "8 11 !fill E")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []libefml.Event
	err := l.Events(ctx, func(e libefml.Event) {
		if got = append(got, e); len(got) == 2 {
			cancel()
		}
	})
	want := []libefml.Event{{ID: 7, Type: libefml.EventError, Message: "something broke"}, {ID: 8, Type: libefml.EventResetFinish, Message: strings.Repeat("E", 128)}}
	if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestUnhealthyCauses(t *testing.T) {
	t.Parallel()
	stub, l, card := one(t)
	cause := func() string {
		s, err := l.Sample(t.Context(), card, eflib.FieldHealth)
		h, _ := s.Health.Value()
		if err != nil {
			t.Error(err)
		}
		return h.Problem()
	}
	stub.Set("EfmlGetDevHealth", "0", "0")
	if got := cause(); got != "reported unhealthy by the driver" {
		t.Error(got)
	}
	stub.Set("EfmlGetDevEccStatus", "0", "1 1 0 0 3")
	if got := cause(); got != "reported unhealthy by the driver, with double-bit ECC errors" {
		t.Error(got)
	}
	stub.Set("EfmlGetDevHealth", "0", "1")
	if got := cause(); got != "" {
		t.Errorf("errors of the past alone make a card unhealthy: %s", got)
	}
	stub.Set("EfmlGetDevRmaDetails", "0", "1 1 3")
	if got := cause(); got != "marked for replacement (RMA)" {
		t.Error(got)
	}
}

func TestSearchPath(t *testing.T) {
	t.Parallel()
	list := libefml.SearchPath("")
	if len(list) != 30 || list[0] != "libefml.so" || list[29] != "/usr/lib/aarch64-linux-gnu/libefml.so.1.0.0" {
		t.Errorf("got %q", list)
	}
	list = libefml.SearchPath("/host")
	if len(list) != 54 || list[0] != "/host/usr/lib/libefml.so" || list[24] != "libefml.so" {
		t.Errorf("got %q", list)
	}
	if _, err := libefml.Open(libefml.Options{Path: "/none/libefml.so"}); !errors.Is(err, libefml.ErrNoLibrary) {
		t.Errorf("got %v", err)
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about in 10 s")
		}
	}
}
