package sim

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/eflib"
)

// Fault is something that a made-up machine has for as long as it is said to have it. See ParseFaults.
type Fault struct {
	Kind string
	// Minor is the card; it has no meaning for faults of the driver.
	Minor int
	// Args are the words after the card.
	Args []string
}

// driverKind is the one fault that is not about a card.
const driverKind = "driver"

// virtualizations are the words for the ways to divide a card, in the order of their numbers.
var virtualizations = [...]string{"host", "vgcu", "mdev", "sriov-pf", "sriov-vf"}

// ParseFaults reads a list of faults, one a line; empty lines and those that start with # are skipped.
//
//	unplug N                        card N is gone
//	hang N                          no call about card N returns before its deadline
//	unreadable N                    card N is there and cannot be read
//	unhealthy N CAUSE…              card N is unhealthy, for a cause in any words
//	ecc-double-bit N [COUNT]        card N had COUNT (1) double-bit errors and is unhealthy
//	too-hot N [CELSIUS]             card N has CELSIUS (105) degrees and is unhealthy
//	memory-used N MIB               MIB of card N's memory are in use
//	link N GENERATION WIDTH         card N's PCIe link is down to these
//	virtualization N MODE           host, vgcu, mdev, sriov-pf or sriov-vf
//	process N PID MIB               process PID holds MIB of card N's memory
//	port N PORT [CARD PORT]         card N has port PORT of the interconnect, joined to PORT of CARD
//	vgcu N COUNT                    card N is divided into COUNT vGCUs
//	error-record N ID TYPE          the driver's log of card N has record ID of reset type TYPE
//	pcie N SENT GOT NAK NAK         what goes over card N's PCIe link, and NAKs of both directions
//	rma N                           card N is to be sent back; its health stays as it is
//	driver VERSION                  the driver has this version
//	driver none                     the driver is not loaded
//
// The error joins one error per line that cannot be understood; the faults are those of the others.
func ParseFaults(text string) ([]Fault, error) {
	var faults []Fault
	var errs []error
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		f, err := parseFault(words)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		faults = append(faults, f)
	}
	return faults, errors.Join(append(errs, lines.Err())...)
}

func parseFault(words []string) (Fault, error) {
	f := Fault{Kind: words[0]}
	if len(words) < 2 {
		return Fault{}, fmt.Errorf("fault %q: which card?", f.Kind)
	}
	if f.Kind == driverKind {
		f.Args = words[1:]
	} else {
		minor, err := strconv.ParseUint(words[1], 10, 7)
		if err != nil {
			return Fault{}, fmt.Errorf("fault %s: card %q: want a number of 0 to 127", f.Kind, words[1])
		}
		f.Minor, f.Args = int(minor), words[2:]
	}
	// Applying it to a machine that has the card shows whether it can be understood.
	trial := Machine{Cards: []eflib.Device{{Minor: f.Minor, MemoryMiB: 1 << 20}}}
	return f, f.Apply(&trial)
}

// String returns the line that ParseFaults reads.
func (f Fault) String() string {
	words := []string{f.Kind}
	if f.Kind != driverKind {
		words = append(words, strconv.Itoa(f.Minor))
	}
	return strings.Join(append(words, f.Args...), " ")
}

// Apply changes a machine. A fault of a card that the machine does not have changes nothing.
func (f Fault) Apply(m *Machine) error {
	if f.Kind == driverKind {
		if len(f.Args) != 1 {
			return fmt.Errorf("fault %q: want one version, or none", f)
		}
		m.DriverVersion = f.Args[0]
		if m.DriverVersion == "none" {
			m.DriverVersion = ""
		}
		return nil
	}
	i := m.index(f.Minor)
	if i < 0 {
		return nil
	}
	state := m.state[f.Minor]
	if err := f.apply(m, &state, m.Cards[i]); err != nil {
		return fmt.Errorf("fault %q: %w", f, err)
	}
	if m.index(f.Minor) >= 0 {
		if m.state == nil {
			m.state = map[int]cardState{}
		}
		m.state[f.Minor] = state
	}
	return nil
}

func (f Fault) apply(m *Machine, state *cardState, card eflib.Device) error {
	switch f.Kind {
	case "unplug":
		m.Remove(f.Minor)
		return f.numbers(0, 0)
	case "hang":
		state.hangs = true
		return f.numbers(0, 0)
	case "unreadable":
		m.Break(f.Minor)
		return f.numbers(0, 0)
	case "unhealthy":
		if len(f.Args) == 0 {
			return errors.New("want a cause")
		}
		m.SetHealth(f.Minor, strings.Join(f.Args, " "))
		return nil
	case "ecc-double-bit":
		m.SetHealth(f.Minor, "double-bit ECC error")
		state.doubleBit = 1
		return f.numbers(0, 1e6, &state.doubleBit)
	case "too-hot":
		m.SetHealth(f.Minor, "too hot")
		celsius := uint32(105)
		err := f.numbers(0, 200, &celsius)
		state.celsius = float64(celsius)
		return err
	case "memory-used":
		var used uint32
		if err := f.numbers(1, 1<<30, &used); err != nil {
			return err
		}
		// More than there is cannot be in use, on whichever model the fault is put.
		state.usedMiB = min(int64(used), card.MemoryMiB)
		return nil
	case "link":
		var generation, width uint32
		if err := f.numbers(2, 32, &generation, &width); err != nil {
			return err
		}
		full := m.link(card)
		link, err := eflib.PCIeLinkOf(generation, max(generation, uint32(full.MaxGeneration)), width, uint32(full.MaxWidth)).Get()
		if err == nil {
			state.link = link
		}
		return err
	case "virtualization":
		for number, word := range virtualizations {
			if len(f.Args) == 1 && f.Args[0] == word {
				state.virtualization = eflib.Virtualization(number)
				return nil
			}
		}
		return fmt.Errorf("want one of %s", strings.Join(virtualizations[:], ", "))
	}
	return state.give(f)
}

// numbers reads the arguments, least of which have to be there, into places.
func (f Fault) numbers(least int, limit uint64, places ...*uint32) error {
	if len(f.Args) < least || len(f.Args) > len(places) {
		return fmt.Errorf("%d arguments after the card: want %d to %d", len(f.Args), least, len(places))
	}
	for i, word := range f.Args {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil || n > limit {
			return fmt.Errorf("%q: want a number of 0 to %d", word, limit)
		}
		*places[i] = uint32(n)
	}
	return nil
}

// WriteFaults makes a control file hold these faults and no others. A reader sees the old or the new
// list, never a part.
func WriteFaults(path string, faults ...Fault) error {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintln(&b, f)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".faults-")
	if err != nil {
		return err
	}
	_, err = temp.WriteString(b.String())
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
