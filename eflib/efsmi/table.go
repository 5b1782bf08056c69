package efsmi

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

// Card is what the tool printed about one card.
type Card struct {
	// Index is the tool's number of the card.
	Index            int
	Address          topology.Address
	VendorID, Device uint16
	// TotalMiB is the card's memory, 0 when not printed.
	TotalMiB uint64
	Sample   eflib.Sample
}

// Report is all that was printed.
type Report struct {
	// Driver is the version of the driver, empty when not printed.
	Driver string
	Cards  []Card
}

// ErrNoCards means that a text has no card in it, so it may be something else altogether.
var ErrNoCards = errors.New("no card in the output")

var (
	driverCell = regexp.MustCompile(`Driver Ver: *([0-9][0-9A-Za-z.+~-]*)`)
	watts      = regexp.MustCompile(`([0-9.]+)W`)
	warmth     = regexp.MustCompile(`^([0-9]+) *(?:℃|°C|C\b)? `)
)

// ParseTable reads the table that the tool prints without arguments. Each card is two rows. The error
// joins one error per card that cannot be understood.
func ParseTable(text string) (Report, error) {
	var r Report
	var errs []error
	var open *Card // has had its first row
	for line := range strings.Lines(text) {
		cells := rowOf(line)
		if m := driverCell.FindStringSubmatch(line); m != nil && r.Driver == "" {
			r.Driver = m[1]
		}
		if len(cells) != 3 {
			open = nil
			continue
		}
		if open != nil {
			secondRow(open, cells)
			r.Cards = append(r.Cards, *open)
			open = nil
			continue
		}
		index, rest, _ := strings.Cut(cells[0], " ")
		n, err := strconv.ParseUint(index, 10, 7)
		if err != nil {
			continue // a heading
		}
		if open, err = firstRow(int(n), strings.TrimSpace(rest), cells); err != nil {
			errs = append(errs, &eflib.DeviceError{Entry: fmt.Sprintf("index %d", n), Err: err})
			open = nil
		}
	}
	return finish(r, errs)
}

// rowOf returns the cells of a row, nil for a line that is none.
func rowOf(line string) []string {
	line = strings.TrimSpace(line)
	if len(line) < 2 || line[0] != '|' || line[len(line)-1] != '|' {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func firstRow(index int, model string, cells []string) (*Card, error) {
	bus, _, _ := strings.Cut(cells[2], " ")
	address, err := parseTableAddress(bus)
	if err != nil {
		return nil, err
	}
	c := &Card{Index: index, Address: address}
	c.Sample.Identity = eflib.Known(eflib.Identity{Name: model, Firmware: cells[1]})
	return c, nil
}

func secondRow(c *Card, cells []string) {
	first := cells[0] + " "
	heat, level := "", ""
	if m := warmth.FindStringSubmatch(first); m != nil {
		heat, first = m[1], first[len(m[0]):]
	}
	if words := strings.Fields(first); len(words) > 0 {
		level = words[0]
	}
	c.Sample.ASICCelsius = measured(heat, eflib.Celsius, celsius...)
	c.Sample.PowerMode = powerMode(level)
	if m := watts.FindAllStringSubmatch(first, 2); len(m) == 2 {
		c.Sample.PowerWatts = measured(m[0][1], eflib.Watts, "")
		c.Sample.PowerCap = measured(m[1][1], eflib.Watts, "")
	}
	if words := strings.Fields(cells[1]); len(words) == 2 {
		c.TotalMiB, _ = mebibytes(words[0]) // 0 is unknown
		if words[1] == "Disable" {
			c.Sample.Virtualization = eflib.Known(eflib.VirtHost)
		}
	}
	words := strings.Fields(cells[2])
	if len(words) > 0 {
		c.Sample.Usage = measured(words[0], eflib.Percent, "%")
	}
	if id, known := c.Sample.Identity.Value(); known && len(words) == 2 {
		if serial, err := cardName(words[1]); err == nil {
			id.SerialNumber = serial
			c.Sample.Identity = eflib.Known(id)
		}
	}
}

// finish takes out cards that claim one place or number, since nothing tells which is right, and gives
// every reading that was not printed its reason.
func finish(r Report, errs []error) (Report, error) {
	indexes, places := map[int]int{}, map[topology.Address]int{}
	for _, c := range r.Cards {
		indexes[c.Index]++
		places[c.Address]++
	}
	kept := r.Cards[:0:0]
	for _, c := range r.Cards {
		if indexes[c.Index] > 1 || places[c.Address] > 1 {
			errs = append(errs, &eflib.DeviceError{Entry: c.Address.String(), Err: fmt.Errorf("index %d: %w", c.Index, eflib.ErrDuplicateMinor)})
			continue
		}
		c.Sample.Name(c.Address.String())
		c.Sample.Fail(eflib.AllFields, c.Address.String(), eflib.ErrNotSupported)
		kept = append(kept, c)
	}
	r.Cards = kept
	if len(kept) == 0 && len(errs) == 0 {
		return r, ErrNoCards
	}
	return r, errors.Join(errs...)
}
