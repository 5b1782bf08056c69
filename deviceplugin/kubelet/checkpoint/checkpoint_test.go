package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
)

// golden was written by kubelet's own package (see test/kubelet).
func golden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/v1.37.2.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type line struct {
	Pod, Container, Resource string
	IDs, CDI                 []string
}

func lines(c *checkpoint.Checkpoint) []line {
	var out []line
	for _, e := range c.Entries {
		out = append(out, line{e.PodUID, e.Container, e.Resource, e.IDs, e.CDIDevices()})
	}
	return out
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := checkpoint.Parse(golden(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []line{
		{"uid-1", "init", "enflame.com/gcu-memory", []string{"u1", "u2"}, []string{"enflame.com/gcushare=t-1"}},
		{"uid-1", "train", "enflame.com/gcu", []string{"0", "4", "5"}, []string{"enflame.com/gcushare=t-1"}},
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0", "4", "5"}, got.Registered["enflame.com/gcu"]); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	text := string(golden(t))
	tests := map[string]struct {
		text string
		want error
	}{
		"an empty file":              {"", checkpoint.ErrForm},
		"half a file":                {text[:len(text)/2], checkpoint.ErrForm},
		"another pod's UID":          {strings.Replace(text, "uid-1", "uid-2", 1), checkpoint.ErrChecksum},
		"a device more":              {strings.Replace(text, `"u2"`, `"u2","u3"`, 1), checkpoint.ErrChecksum},
		"no checksum":                {`{"Data":{}}`, checkpoint.ErrChecksum},
		"devices as in kubelet 1.19": {`{"Data":{"PodDeviceEntries":[{"PodUID":"u","DeviceIDs":["a"]}]},"Checksum":1}`, checkpoint.ErrForm},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := checkpoint.Parse([]byte(tt.text)); !errors.Is(err, tt.want) {
				t.Errorf("Parse() = %v, want %v", err, tt.want)
			}
		})
	}
}

// TestParseKeepsTheOthers: one answer that cannot be decoded costs only itself.
func TestParseKeepsTheOthers(t *testing.T) {
	t.Parallel()
	text, err := checkpoint.Encode([]checkpoint.PodDevicesEntry{
		{PodUID: "a", ContainerName: "c", ResourceName: "r", DeviceIDs: checkpoint.DevicesPerNUMA{-1: {"1"}}, AllocResp: []byte{0xff}},
		{PodUID: "b", ContainerName: "c", ResourceName: "r", DeviceIDs: checkpoint.DevicesPerNUMA{-1: {"2"}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkpoint.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != 2 || got.Entries[0].Err == nil || got.Entries[1].Err != nil {
		t.Errorf("entries %+v, want an error on the first only", got.Entries)
	}
	if got.Entries[0].CDIDevices() != nil {
		t.Errorf("CDI devices of an unreadable answer: %v", got.Entries[0].CDIDevices())
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), checkpoint.FileName)
	r := checkpoint.NewReader(path)
	if _, err := r.Read(); !checkpoint.Missing(err) {
		t.Fatalf("Read() = %v, want no such file", err)
	}
	put := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	put(golden(t))
	first, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Read(); err != nil || again != first {
		t.Errorf("an unchanged file was parsed twice (%v)", err)
	}
	put([]byte("{"))
	if _, err := r.Read(); !errors.Is(err, checkpoint.ErrForm) {
		t.Errorf("Read() = %v, want %v", err, checkpoint.ErrForm)
	}
	put(golden(t))
	if _, err := r.Read(); err != nil {
		t.Errorf("a good file after a bad one: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":null},"Checksum":0}`))
	f.Add([]byte(`{"Data":{"PodDeviceEntries":[{"DeviceIDs":{"-1":null},"AllocResp":"AA=="}]},"Checksum":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := checkpoint.Parse(text)
		if err != nil {
			return
		}
		for i := range got.Entries {
			e := &got.Entries[i]
			if (e.Response == nil) != (e.Err != nil) {
				t.Errorf("entry %d has answer %v and error %v", i, e.Response, e.Err)
			}
			e.CDIDevices()
		}
	})
}

// FuzzEncode: whatever kubelet may write is read back, which the checksum makes unlikely to be met by
// FuzzParse.
func FuzzEncode(f *testing.F) {
	f.Add("uid", "c", "r", "id", int64(-1), []byte{})
	f.Fuzz(func(t *testing.T, pod, container, resource, id string, numa int64, answer []byte) {
		text, err := checkpoint.Encode([]checkpoint.PodDevicesEntry{{
			PodUID: pod, ContainerName: container, ResourceName: resource,
			DeviceIDs: checkpoint.DevicesPerNUMA{numa: {id}}, AllocResp: answer,
		}}, nil)
		if err != nil {
			t.Skip()
		}
		got, err := checkpoint.Parse(text)
		if err != nil {
			// JSON cannot carry text that is not UTF-8; what is read differs from what was hashed.
			if errors.Is(err, checkpoint.ErrChecksum) {
				return
			}
			t.Fatal(err)
		}
		if len(got.Entries) != 1 || got.Entries[0].PodUID != pod {
			t.Errorf("entries %+v", got.Entries)
		}
	})
}
