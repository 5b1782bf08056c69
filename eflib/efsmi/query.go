package efsmi

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// ParseQuery reads what the tool prints with -q: groups of "key : value" under "DEV ID n". Older and
// newer releases name some keys differently; both are read. The error joins one error per card that
// cannot be understood.
func ParseQuery(text string) (Report, error) {
	var r Report
	var errs []error
	index, keys := -1, map[string]string{}
	end := func() {
		if index < 0 {
			return
		}
		c, err := cardOf(index, keys)
		if err != nil {
			errs = append(errs, &eflib.DeviceError{Entry: fmt.Sprintf("index %d", index), Err: err})
			return
		}
		r.Cards = append(r.Cards, c)
		r.Driver = cmp.Or(r.Driver, keys["Ver"])
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if id, found := strings.CutPrefix(line, "DEV ID"); found {
			end()
			index, keys = -1, map[string]string{}
			n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 7)
			if err != nil {
				errs = append(errs, fmt.Errorf("%q: want DEV ID and a number of 0 to 127", line))
				continue
			}
			index = int(n)
			continue
		}
		key, value, found := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if _, twice := keys[key]; found && !twice {
			keys[key] = strings.TrimSpace(value)
		}
	}
	end()
	return finish(r, errs)
}

// cardOf makes a card of its keys. Only its place is needed; the rest may be missing or odd.
func cardOf(index int, keys map[string]string) (Card, error) {
	address, err := topology.ParseAddress(fmt.Sprintf("%04s:%02s:%02s.%s", keys["Domain"], keys["Bus"], keys["Dev"], keys["Func"]))
	if err != nil {
		return Card{}, err
	}
	c := Card{Index: index, Address: address}
	if v, err := strconv.ParseUint(keys["Vendor ID"], 16, 16); err == nil {
		c.VendorID = uint16(v)
	}
	if v, err := strconv.ParseUint(keys["Device ID"], 16, 16); err == nil {
		c.Device = uint16(v)
	}
	s := &c.Sample
	s.Identity = identityOf(keys)
	s.Memory, c.TotalMiB = memoryOf(keys)
	s.PowerWatts = measured(keys["Cur Power"], eflib.Watts, "W")
	s.PowerCap = measured(keys["Power Capa"], eflib.Watts, "W")
	s.ASICCelsius = measured(keys["GCU Temp"], eflib.Celsius, celsius...)
	s.HBMMHz = measured(keys["Mem CLK"], eflib.Megahertz, "MHz")
	s.Usage = measured(keys["GCU Usage"], eflib.Percent, "%")
	s.PowerMode = powerMode(keys["Dpm Level"])
	s.PCIeLink = linkOf(keys)
	s.PCIeThroughput = throughputOf(keys)
	s.RMA = rmaOf(keys)
	s.Health = healthOf(keys, s.RMA)
	return c, nil
}

func identityOf(keys map[string]string) eflib.Reading[eflib.Identity] {
	uuid, err := cardName(keys["Dev UUID"])
	if err != nil {
		return eflib.Unknown[eflib.Identity](err)
	}
	serial, err := cardName(keys["Dev SN"])
	if err != nil {
		return eflib.Unknown[eflib.Identity](err)
	}
	return eflib.Known(eflib.Identity{
		Name: keys["Dev Name"], UUID: contract.NormalUUID(uuid), SerialNumber: serial,
		PartNumber: keys["Dev PN"], ManufacturedOn: keys["Dev MFD"],
	})
}

func memoryOf(keys map[string]string) (eflib.Reading[eflib.Memory], uint64) {
	total, err := mebibytes(cmp.Or(keys["Total Size"], keys["Mem Size"]))
	if err != nil {
		return eflib.Unknown[eflib.Memory](err), 0
	}
	used, err := mebibytes(cmp.Or(keys["Used Size"], keys["Mem Usage"]))
	if err != nil {
		return eflib.Unknown[eflib.Memory](err), total
	}
	return eflib.MemoryOf(total<<20, used<<20), total
}

func linkOf(keys map[string]string) eflib.Reading[eflib.Link] {
	var n [4]uint32
	for i, k := range [...]struct{ key, prefix string }{
		{"Cur Link Speed", "Gen"}, {"Max Link Speed", "Gen"}, {"Cur Link Width", "X"}, {"Max Link Width", "X"},
	} {
		var err error
		if n[i], err = prefixed(keys[k.key], k.prefix); err != nil {
			return eflib.Unknown[eflib.Link](err)
		}
	}
	return eflib.PCIeLinkOf(n[0], n[1], n[2], n[3])
}

func throughputOf(keys map[string]string) eflib.Reading[eflib.Throughput] {
	transmit, err := number(keys["Tx Throughput"], "MiB/s")
	if err != nil {
		return eflib.Unknown[eflib.Throughput](err)
	}
	receive, err := number(keys["Rx Throughput"], "MiB/s")
	if err != nil {
		return eflib.Unknown[eflib.Throughput](err)
	}
	return eflib.ThroughputOf(eflib.Throughput{Transmit: transmit, Receive: receive})
}

func rmaOf(keys map[string]string) eflib.Reading[eflib.RMA] {
	flagged, err := truth(keys["Flags"])
	if err != nil {
		return eflib.Unknown[eflib.RMA](err)
	}
	doubleBit, err := strconv.ParseUint(cmp.Or(keys["Total DBE"], keys["DBE"]), 10, 32)
	if err != nil {
		return eflib.Unknown[eflib.RMA](fmt.Errorf("%w: double-bit errors: %w", eflib.ErrImplausible, err))
	}
	return eflib.RMAOf(eflib.RMA{Flagged: flagged, DoubleBit: uint32(doubleBit)})
}

func healthOf(keys map[string]string, rma eflib.Reading[eflib.RMA]) eflib.Reading[eflib.Health] {
	if r, known := rma.Value(); known && r.Flagged {
		return eflib.Known(eflib.Health{State: eflib.Unhealthy, Cause: "marked for replacement (RMA)"})
	}
	well, err := truth(keys["Health"])
	switch {
	case err != nil:
		return eflib.Unknown[eflib.Health](err)
	case !well:
		return eflib.Known(eflib.Health{State: eflib.Unhealthy, Cause: "reported unhealthy by the driver"})
	}
	return eflib.Known(eflib.Health{State: eflib.Healthy})
}
