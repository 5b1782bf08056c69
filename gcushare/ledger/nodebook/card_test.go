package nodebook_test

import (
	"testing"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	"github.com/topscloud/topscloud/topology"
)

func TestHoldingOn(t *testing.T) {
	t.Parallel()
	const here, there = "0000:11:00.0", "0000:12:00.0"
	type card struct {
		minor         int
		uuid, address string
	}
	made := "GCU-PCI-" + here
	tests := map[string]struct {
		holding, seen card
		want          bool
	}{
		"both ask the card":                               {card{3, "GCU-A", here}, card{3, "GCU-A", here}, true},
		"a record without the prefix":                     {card{3, "A", here}, card{3, "GCU-A", here}, true},
		"another card in its place":                       {card{3, "GCU-A", here}, card{3, "GCU-B", here}, false},
		"another card in its place, an older agent":       {card{3, "GCU-A", ""}, card{3, "GCU-B", here}, false},
		"the card was taken out, the reader has sysfs":    {card{3, "GCU-A", ""}, card{3, made, here}, false},
		"another minor":                                   {card{3, "GCU-A", here}, card{2, "GCU-A", here}, false},
		"another place":                                   {card{3, "GCU-A", here}, card{3, "GCU-A", there}, false},
		"both read sysfs":                                 {card{3, made, here}, card{3, made, here}, true},
		"both read sysfs, an older agent":                 {card{3, made, ""}, card{3, made, here}, true},
		"both read sysfs, the minor went to another":      {card{3, made, here}, card{3, "GCU-PCI-" + there, there}, false},
		"the reader has sysfs alone":                      {card{3, "GCU-A", here}, card{3, made, here}, true},
		"the reader has sysfs alone, an older agent":      {card{3, "GCU-A", ""}, card{3, made, here}, false},
		"the reader has sysfs alone, another place":       {card{3, "GCU-A", here}, card{3, "GCU-PCI-" + there, there}, false},
		"the reader has sysfs alone, another minor":       {card{3, "GCU-A", here}, card{4, made, here}, false},
		"the agent has sysfs alone":                       {card{3, made, here}, card{3, "GCU-A", here}, true},
		"the agent has sysfs alone, an older agent":       {card{3, made, ""}, card{3, "GCU-A", here}, false},
		"the card told the reader nothing":                {card{3, "GCU-A", here}, card{3, "", here}, true},
		"the card told the reader nothing, older agent":   {card{3, "GCU-A", ""}, card{3, "", here}, false},
		"the card told the reader nothing, another place": {card{3, "GCU-A", here}, card{3, "", there}, false},
		"nobody was told anything":                        {card{3, "", ""}, card{3, "", here}, false},
		"nobody was told anything but the place":          {card{3, "", here}, card{3, "", here}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, err := topology.ParseAddress(tt.seen.address)
			if err != nil {
				t.Fatal(err)
			}
			h := nodebook.Holding{Minor: tt.holding.minor, UUID: tt.holding.uuid, PCIBusID: tt.holding.address}
			if got := h.On(&eflib.Device{Minor: tt.seen.minor, UUID: tt.seen.uuid, PCIAddress: address}); got != tt.want {
				t.Errorf("%t, want %t", got, tt.want)
			}
		})
	}
}
