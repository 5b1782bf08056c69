package simnode

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/topscloud/topscloud/internal/contract"
)

// Machine is one simulated node.
type Machine struct {
	// Name is the node's name.
	Name string
	// Preset is the name the hardware came from, for people.
	Preset string
	Hardware
}

// Hardware is what discovery finds on a host.
type Hardware struct {
	// Devices are the cards, as the node agent reports them.
	Devices contract.NodeDevices
	// Host is the machine's DMI product name, Driver the version of the loaded driver.
	Host, Driver string
	// Family and Product come from the vendor's library; empty where unknown.
	Family, Product string
	// CPUs and MemoryGiB describe the host.
	CPUs, MemoryGiB int64
}

// ParseMachines turns --machine values (<preset> or <preset>:<count>) into machines. Nodes are named
// <preset>-<n>; the number goes on where a preset stands more than once.
func ParseMachines(values []string) ([]Machine, error) {
	next := map[string]int{}
	var out []Machine
	for _, v := range values {
		preset, countText, counted := strings.Cut(v, ":")
		count := 1
		if counted {
			n, err := strconv.Atoi(countText)
			if err != nil || n < 1 || n > 5000 {
				return nil, fmt.Errorf("machine %q: count %q: want 1 to 5000", v, countText)
			}
			count = n
		}
		for range count {
			m, err := NewMachine(preset, fmt.Sprintf("%s-%d", preset, next[preset]))
			if err != nil {
				return nil, err
			}
			next[preset]++
			out = append(out, m)
		}
	}
	return out, nil
}

// NewMachine returns a machine of a preset under a node name of the caller's choice. Card uuids carry
// the node's name, so two machines of a preset have different cards.
func NewMachine(preset, node string) (Machine, error) {
	if errs := validation.IsDNS1123Subdomain(node); len(errs) > 0 {
		return Machine{}, fmt.Errorf("node name %q: %s", node, errs[0])
	}
	hw, err := presetHardware(preset, node)
	if err != nil {
		return Machine{}, err
	}
	return Machine{Name: node, Preset: preset, Hardware: hw}, nil
}
