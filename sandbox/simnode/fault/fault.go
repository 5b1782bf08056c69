// Package fault is the text form of what is wrong with a simulated node: "restart, card-fail=3".
package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
)

// Set is what is wrong with one node at once.
type Set struct {
	Stop, Restart, Reboot bool
	// Failed, Gone and Hung are card minors.
	Failed, Gone, Hung []int
}

// Parse reads the annotation's value.
func Parse(text string) (Set, error) {
	var f Set
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		key, value, hasValue := strings.Cut(word, "=")
		minor, err := strconv.Atoi(value)
		card := hasValue && err == nil && minor >= 0 && minor < contract.MaxCards
		switch {
		case word == "":
		case word == "stop":
			f.Stop = true
		case word == "restart":
			f.Restart = true
		case word == "reboot":
			f.Reboot = true
		case key == "card-fail" && card:
			f.Failed = append(f.Failed, minor)
		case key == "card-gone" && card:
			f.Gone = append(f.Gone, minor)
		case key == "card-hang" && card:
			f.Hung = append(f.Hung, minor)
		default:
			return Set{}, fmt.Errorf("fault %q: want stop, restart, reboot, card-fail=<minor>, card-gone=<minor> or card-hang=<minor>, comma-separated", word)
		}
	}
	return f, nil
}

// String returns the annotation's value.
func (f Set) String() string {
	var words []string
	for _, w := range []struct {
		on   bool
		word string
	}{{f.Stop, "stop"}, {f.Restart, "restart"}, {f.Reboot, "reboot"}} {
		if w.on {
			words = append(words, w.word)
		}
	}
	for _, m := range f.Failed {
		words = append(words, fmt.Sprintf("card-fail=%d", m))
	}
	for _, m := range f.Gone {
		words = append(words, fmt.Sprintf("card-gone=%d", m))
	}
	for _, m := range f.Hung {
		words = append(words, fmt.Sprintf("card-hang=%d", m))
	}
	return strings.Join(words, ",")
}

// Apply returns the cards as the node agent would report them under the faults. A card that hangs is reported as it was.
func (f Set) Apply(d contract.NodeDevices) contract.NodeDevices {
	d.Devices = slices.DeleteFunc(slices.Clone(d.Devices), func(c contract.NodeDevice) bool {
		return slices.Contains(f.Gone, c.Minor)
	})
	for i := range d.Devices {
		if slices.Contains(f.Failed, d.Devices[i].Minor) {
			d.Devices[i].Health = "simulated fault: uncorrectable memory error"
		}
	}
	return d
}
