package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/utils/dump"
)

// FileName is the name of the file in kubelet's device-plugins folder.
const FileName = "kubelet_internal_checkpoint"

// MaxBytes bounds what is read: 128 cards of 1,024 units, each ID named in pods and in the list of
// registered devices, stay below a quarter of it.
const MaxBytes = 64 << 20

// Errors of Parse. Branch on them with errors.Is.
var (
	ErrChecksum = errors.New("checksum differs")
	ErrForm     = errors.New("not in the form kubelet writes")
)

// Checkpoint is one version of the file.
type Checkpoint struct {
	// Entries are sorted by pod, container and resource.
	Entries []Entry
	// Registered are the healthy device IDs of each resource at the time of writing, sorted.
	Registered map[string][]string
}

// Entry is what one container holds of one resource.
type Entry struct {
	PodUID    string
	Container string
	Resource  string
	// IDs are the device IDs, sorted, each once.
	IDs []string
	// Response is the plugin's answer to Allocate, nil when Err is set.
	Response *pluginapi.ContainerAllocateResponse
	// Err says why the answer could not be decoded.
	Err error
}

// CDIDevices returns the qualified CDI names in the plugin's answer.
func (e *Entry) CDIDevices() []string {
	var out []string
	for _, d := range e.Response.GetCdiDevices() {
		out = append(out, d.GetName())
	}
	return out
}

// The four types below are hashed by name: see the package comment.

// DevicesPerNUMA maps a NUMA node, -1 for none, to device IDs.
type DevicesPerNUMA map[int64][]string

// PodDevicesEntry is an entry as it stands in the file.
type PodDevicesEntry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	DeviceIDs     DevicesPerNUMA
	AllocResp     []byte
}

type checkpointData struct {
	PodDeviceEntries  []PodDevicesEntry
	RegisteredDevices map[string][]string
}

type document struct {
	Data     checkpointData
	Checksum uint64
}

// Parse reads one version of the file.
func Parse(text []byte) (*Checkpoint, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%d bytes, want at most %d: %w", len(text), MaxBytes, ErrForm)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if got := checksum(doc.Data); got != doc.Checksum {
		return nil, fmt.Errorf("computed %d, written %d: %w", got, doc.Checksum, ErrChecksum)
	}
	out := &Checkpoint{Registered: map[string][]string{}}
	for resource, ids := range doc.Data.RegisteredDevices {
		out.Registered[resource] = sorted(ids)
	}
	for i := range doc.Data.PodDeviceEntries {
		out.Entries = append(out.Entries, decode(&doc.Data.PodDeviceEntries[i]))
	}
	slices.SortStableFunc(out.Entries, func(a, b Entry) int {
		return strings.Compare(a.PodUID+"\x00"+a.Container+"\x00"+a.Resource, b.PodUID+"\x00"+b.Container+"\x00"+b.Resource)
	})
	return out, nil
}

func decode(e *PodDevicesEntry) Entry {
	out := Entry{PodUID: e.PodUID, Container: e.ContainerName, Resource: e.ResourceName}
	var ids []string
	for _, list := range e.DeviceIDs {
		ids = append(ids, list...)
	}
	out.IDs = sorted(ids)
	var response pluginapi.ContainerAllocateResponse
	if err := proto.Unmarshal(e.AllocResp, &response); err != nil {
		out.Err = fmt.Errorf("pod %s, container %s, resource %s: decode the answer to Allocate: %w", e.PodUID, e.ContainerName, e.ResourceName, err)
		return out
	}
	out.Response = &response
	return out
}

// Encode returns the text of a file as kubelet writes it. It is for imitations of kubelet.
func Encode(entries []PodDevicesEntry, registered map[string][]string) ([]byte, error) {
	doc := document{Data: checkpointData{PodDeviceEntries: entries, RegisteredDevices: registered}}
	doc.Checksum = checksum(doc.Data)
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	return text, nil
}

// checksum is kubelet's: 32-bit FNV-1a over a printout of the value with its type names.
func checksum(data checkpointData) uint64 {
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(data)))
	return uint64(h.Sum32())
}

func sorted(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
