// Package kubelet_test compares what this project knows of kubelet with kubelet's own packages.
package kubelet_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	theirs "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
)

var update = flag.Bool("update", false, "write the golden checkpoint again, with kubelet's own package")

const golden = "../../deviceplugin/kubelet/checkpoint/testdata/v1.37.2.json"

// TestCheckpoint writes a file with kubelet's package and reads it with ours, and the other way round.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	answer, err := proto.Marshal(&pluginapi.ContainerAllocateResponse{
		Envs:       map[string]string{"A": "1"},
		CdiDevices: []*pluginapi.CDIDevice{{Name: "enflame.com/gcushare=t-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		entries    []theirs.PodDevicesEntry
		registered map[string][]string
	}{
		"nothing at all": {},
		"empty, not nil": {entries: []theirs.PodDevicesEntry{}, registered: map[string][]string{}},
		"two containers": {
			entries: []theirs.PodDevicesEntry{
				{PodUID: "uid-1", ContainerName: "init", ResourceName: "enflame.com/gcu-memory", DeviceIDs: theirs.DevicesPerNUMA{-1: {"u2", "u1"}}, AllocResp: answer},
				{PodUID: "uid-1", ContainerName: "train", ResourceName: "enflame.com/gcu", DeviceIDs: theirs.DevicesPerNUMA{0: {"0"}, 1: {"4", "5"}}, AllocResp: answer},
			},
			registered: map[string][]string{"enflame.com/gcu-memory": {"u1", "u2"}, "enflame.com/gcu": {"5", "0", "4"}, "none": {}, "nil": nil},
		},
		"no devices, no answer": {entries: []theirs.PodDevicesEntry{{PodUID: "u", AllocResp: []byte{}}, {DeviceIDs: theirs.DevicesPerNUMA{3: nil}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := theirs.New(tt.entries, tt.registered).MarshalCheckpoint()
			if err != nil {
				t.Fatal(err)
			}
			if name == "two containers" {
				if *update {
					if err := os.WriteFile(filepath.FromSlash(golden), text, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := checkpoint.Parse(text)
			if kubelet := loads(text); (err == nil) != (kubelet == nil) {
				t.Fatalf("we say %v, kubelet says %v", err, kubelet)
			}
			if err != nil {
				return
			}
			if len(got.Entries) != len(tt.entries) {
				t.Errorf("%d entries, want %d", len(got.Entries), len(tt.entries))
			}
			var ours []checkpoint.PodDevicesEntry
			if tt.entries != nil {
				ours = []checkpoint.PodDevicesEntry{}
			}
			for _, e := range tt.entries {
				ours = append(ours, checkpoint.PodDevicesEntry{
					PodUID: e.PodUID, ContainerName: e.ContainerName, ResourceName: e.ResourceName,
					DeviceIDs: checkpoint.DevicesPerNUMA(e.DeviceIDs), AllocResp: e.AllocResp,
				})
			}
			again, err := checkpoint.Encode(ours, tt.registered)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(again)); diff != "" {
				t.Errorf("kubelet's file and ours (-want +got):\n%s", diff)
			}
		})
	}
}

// loads reads a file as kubelet does at its start.
func loads(text []byte) error {
	cp := theirs.New(nil, nil)
	if err := cp.UnmarshalCheckpoint(text); err != nil {
		return err
	}
	return cp.VerifyChecksum()
}
