package libefml

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/topscloud/topscloud/eflib/libefml/libefmltest"
)

// TestLayout compares the structs with what the C compiler made of the same.
func TestLayout(t *testing.T) {
	t.Parallel()
	handle, err := purego.Dlopen(libefmltest.New(t).Library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	symbol, err := purego.Dlsym(handle, "StubLayout")
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 8192)
	n, _, _ := purego.SyscallN(symbol, uintptr(unsafe.Pointer(&out[0])), uintptr(len(out)))
	var (
		info devInfo
		mem  memory
		pwr  power
		temp temperature
		clk  clock
		lnk  link
		thr  throughput
		ecc  eccStatus
		rma  rmaDetails
		port portInfo
		proc process
		ev   event
		rec  errorRecord
	)
	at, size := unsafe.Offsetof(info.Name), unsafe.Sizeof(info) // types of both are uintptr
	want := map[string]uintptr{
		"dev_info": size, "dev_info.vendor": unsafe.Offsetof(info.Vendor), "dev_info.logical": unsafe.Offsetof(info.LogicalNumber),
		"mem_info": unsafe.Sizeof(mem), "mem_info.used": unsafe.Offsetof(mem.UsedMiB),
		"pwr_info": unsafe.Sizeof(pwr), "pwr_info.current": unsafe.Offsetof(pwr.Current),
		"temp_info": unsafe.Sizeof(temp), "temp_info.mem": unsafe.Offsetof(temp.Memory), "temp_info.board": unsafe.Offsetof(temp.Board),
		"clk_info": unsafe.Sizeof(clk), "clk_info.core": unsafe.Offsetof(clk.Core),
		"link_info": unsafe.Sizeof(lnk), "link_info.max_speed": unsafe.Offsetof(lnk.MaxSpeed),
		"link_info.width": unsafe.Offsetof(lnk.Width), "link_info.max_width": unsafe.Offsetof(lnk.MaxWidth),
		"throughput_info": unsafe.Sizeof(thr), "throughput_info.rx": unsafe.Offsetof(thr.Receive),
		"throughput_info.tx_nak": unsafe.Offsetof(thr.TransmitNAK), "throughput_info.rx_nak": unsafe.Offsetof(thr.ReceiveNAK),
		"ecc_info": unsafe.Sizeof(ecc), "ecc_info.pending": unsafe.Offsetof(ecc.Pending),
		"ecc_info.blacklist": unsafe.Offsetof(ecc.BlacklistPending),
		"ecc_info.single":    unsafe.Offsetof(ecc.SingleBit), "ecc_info.dbl": unsafe.Offsetof(ecc.DoubleBit),
		"rma_info": unsafe.Sizeof(rma), "rma_info.flagged": unsafe.Offsetof(rma.Flagged), "rma_info.dbl": unsafe.Offsetof(rma.DoubleBit),
		"port_info": unsafe.Sizeof(port), "port_info.uuid": unsafe.Offsetof(port.UUID), "port_info.vendor": unsafe.Offsetof(port.Vendor),
		"port_info.port_type": unsafe.Offsetof(port.PortType), "port_info.remote_card": unsafe.Offsetof(port.RemoteCard),
		"port_info.remote_uuid": unsafe.Offsetof(port.RemoteUUID), "port_info.remote_vendor": unsafe.Offsetof(port.RemoteVendor),
		"port_info.remote_bus": unsafe.Offsetof(port.RemoteBus), "port_info.remote_port_type": unsafe.Offsetof(port.RemotePortType),
		"process_info": unsafe.Sizeof(proc), "process_info.device": unsafe.Offsetof(proc.DeviceBytes),
		"process_info.system": unsafe.Offsetof(proc.SystemBytes),
		"event_info":          unsafe.Sizeof(ev), "event_info.type": unsafe.Offsetof(ev.Type), "event_info.message": unsafe.Offsetof(ev.Message),
		"record_info": unsafe.Sizeof(rec), "record_info.reset": unsafe.Offsetof(rec.ResetType),
		"record_info.source": unsafe.Offsetof(rec.Source), "record_info.time": unsafe.Offsetof(rec.Timestamp),
		"record_info.bdf": unsafe.Offsetof(rec.BDF),
	}
	if at != 0 {
		t.Errorf("the name of a card is at %d", at)
	}
	lines := strings.Split(strings.TrimSpace(string(out[:n])), "\n")
	for _, line := range lines {
		var name string
		var c uintptr
		if _, err := fmt.Sscan(line, &name, &c); err != nil {
			t.Fatal(err)
		}
		if ours, known := want[name]; !known || ours != c {
			t.Errorf("%s: %d in Go, %d in C", name, ours, c)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("C tells of %d sizes and offsets, Go of %d", len(lines), len(want))
	}
}

func TestBufferHasSlackBehindTheValue(t *testing.T) {
	t.Parallel()
	var b buffer[uint8]
	if unsafe.Offsetof(b.slack) != 1 || unsafe.Offsetof(b.value) != 0 || unsafe.Sizeof(b) < 1024 {
		t.Errorf("value at %d, slack at %d", unsafe.Offsetof(b.value), unsafe.Offsetof(b.slack))
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"Enflame S60\x00garbage", "\xff\xfe\x00", strings.Repeat("A", 128), "a\nb\x1b[31m", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := clean(raw)
		if len(s) > len(raw) || strings.ContainsAny(s, "\x00\n\x1b") {
			t.Errorf("%q was read as %q", raw, s)
		}
		id, err := cleanID(raw)
		if err != nil && id != "" {
			t.Errorf("%q was refused and read as %q", raw, id)
		}
		if err == nil && strings.ContainsAny(id, " \n\"',;") {
			t.Errorf("%q was read as the name of a card, %q", raw, id)
		}
	})
}
