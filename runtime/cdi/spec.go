package cdi

import (
	"errors"
	"path"
	"strconv"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host"
)

// All is the name of the device that is every card.
const All = "all"

// Where a container finds the vendor's files: places that loaders and shells search without being told.
const (
	toolDir    = "/usr/bin"
	libraryDir = "/usr/lib"
)

var errNoCard = errors.New("no card answers")

// NewSpec returns the spec of a host with these cards.
func NewSpec(h *host.Host, cards []host.Card) (*specs.Spec, error) {
	names, err := contract.NewNames(h.Files.Resource)
	if err != nil {
		return nil, err
	}
	if len(cards) == 0 {
		return nil, errNoCard
	}
	control, err := h.Control()
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{Kind: names.CDIKind()}
	for _, n := range control {
		spec.ContainerEdits.DeviceNodes = append(spec.ContainerEdits.DeviceNodes, deviceNode(h, n))
	}
	for _, tool := range h.Tools() {
		spec.ContainerEdits.Mounts = append(spec.ContainerEdits.Mounts, mount(toolDir, tool))
	}
	for _, library := range h.Libraries() {
		spec.ContainerEdits.Mounts = append(spec.ContainerEdits.Mounts, mount(libraryDir, library))
	}
	every := specs.Device{Name: All}
	for _, card := range cards {
		edits := specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{deviceNode(h, card.Node)}}
		spec.Devices = append(spec.Devices, specs.Device{Name: strconv.Itoa(card.Device.Minor), ContainerEdits: edits})
		if card.Device.UUID != "" {
			spec.Devices = append(spec.Devices, specs.Device{Name: card.Device.UUID, ContainerEdits: edits})
		}
		every.ContainerEdits.DeviceNodes = append(every.ContainerEdits.DeviceNodes, edits.DeviceNodes...)
	}
	spec.Devices = append(spec.Devices, every)
	spec.Version, err = cdi.MinimumRequiredVersion(spec)
	return spec, err
}

func deviceNode(h *host.Host, n host.Node) *specs.DeviceNode {
	mode := n.Mode
	uid, gid := n.UID, n.GID
	out := &specs.DeviceNode{Path: n.Path, Type: "c", Major: int64(n.Major), Minor: int64(n.Minor), FileMode: &mode, Permissions: "rwm", UID: &uid, GID: &gid}
	if path := h.EnginePath(n.Path); path != n.Path {
		out.HostPath = path
	}
	return out
}

func mount(dir string, u host.Utility) *specs.Mount {
	return &specs.Mount{HostPath: u.Source, ContainerPath: path.Join(dir, u.Name), Type: "bind", Options: []string{"bind", "ro", "nosuid", "nodev", "rprivate"}}
}
