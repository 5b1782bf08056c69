package health_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
)

var update = flag.Bool("update", false, "write golden files")

// pastOf is a history with something in every field.
func pastOf(t testing.TB) health.History {
	t.Helper()
	h := newHost(t, "t20x4", health.Options{})
	h.edit = map[int]func(*eflib.Sample){1: log(1), 2: ecc(4)}
	h.update(h.look("unhealthy 0 stuck"))
	h.now = h.now.Add(1500 * time.Millisecond)
	h.edit[1], h.edit[3] = log(1, 2), ecc(1)
	h.update(h.look(""))
	return h.tracker.History()
}

func TestHistoryGolden(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "history-v1.json")
	text, err := health.EncodeHistory(pastOf(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(text)+"\n"); diff != "" {
		t.Errorf("(-golden +written):\n%s", diff)
	}
	got, err := health.DecodeHistory(kept)
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := health.New(health.Options{}, got)
	if err != nil {
		t.Fatal(err)
	}
	want := pastOf(t)
	if diff := cmp.Diff(want, tracker.History()); diff != "" {
		t.Errorf("(-told +kept):\n%s", diff)
	}
}

func TestDecodeHistoryRefuses(t *testing.T) {
	t.Parallel()
	text, err := health.EncodeHistory(pastOf(t))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"empty":            "",
		"cut short":        string(text[:len(text)-9]),
		"a changed figure": strings.Replace(string(text), `"faults":1`, `"faults":2`, 1),
		"a newer version":  strings.Replace(string(text), `"v1"`, `"v2"`, 1),
		"an unknown field": strings.Replace(string(text), `"cards"`, `"colour":"red","cards"`, 1),
		"text behind":      string(text) + "{}",
	}
	for name, text := range tests {
		if _, err := health.DecodeHistory([]byte(text)); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
	for name, spoil := range map[string]func(*health.History){
		"an unknown cause": func(h *health.History) { h.Cards[0].After = []health.Cause{"gremlins"} },
		"a bad minor":      func(h *health.History) { h.Cards[0].Card.Minor = 128 },
		"not sorted":       func(h *health.History) { h.Cards[0], h.Cards[1] = h.Cards[1], h.Cards[0] },
		"no address":       func(h *health.History) { h.Cards[0].Card.PCIBusID = "" },
		"an unknown weight": func(h *health.History) {
			h.Cards[0].Findings = []health.FindingHistory{{Cause: health.RMA, Weight: "feather"}}
		},
	} {
		past := pastOf(t)
		spoil(&past)
		if _, err := health.EncodeHistory(past); err == nil {
			t.Errorf("%s: it was written", name)
		}
		if _, err := health.New(health.Options{}, &past); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// What is read is written again the same, and a tracker can go on from it.
func FuzzDecodeHistory(f *testing.F) {
	text, err := health.EncodeHistory(pastOf(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":"v1","checksum":"","cards":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		past, err := health.DecodeHistory(text)
		if err != nil {
			return
		}
		again, err := health.EncodeHistory(*past)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		twice, err := health.DecodeHistory(again)
		if err != nil {
			t.Fatal(err)
		}
		if third, err := health.EncodeHistory(*twice); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("not steady: %v\n%s\n%s", err, again, third)
		}
		h := newHost(t, "t20x4", health.Options{})
		h.tracker = h.start(past)
		h.update(h.look("unplug 1\nhang 2"))
		if _, err := health.EncodeHistory(h.tracker.History()); err != nil {
			t.Fatal(err)
		}
	})
}
