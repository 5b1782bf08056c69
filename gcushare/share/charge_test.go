package share_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/share"

	v1 "k8s.io/api/core/v1"
)

func hold(phase share.Phase, minor int, mib int64) share.Hold {
	return share.Hold{Phase: phase, Minor: minor, MiB: mib}
}

func TestCharges(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		holds        []share.Hold
		before, then []share.Charge // before and after the pod is initialized
	}{
		"an init container runs alone": {
			holds:  []share.Hold{hold(share.Init, 0, 30), hold(share.App, 0, 4), hold(share.App, 0, 4)},
			before: []share.Charge{{Minor: 0, MiB: 30}}, then: []share.Charge{{Minor: 0, MiB: 8}},
		},
		"a sidecar that starts earlier runs beside the init container": {
			holds:  []share.Hold{hold(share.Sidecar, 0, 2), hold(share.Init, 0, 30), hold(share.App, 0, 4)},
			before: []share.Charge{{Minor: 0, MiB: 32}}, then: []share.Charge{{Minor: 0, MiB: 6}},
		},
		"a sidecar that starts later does not": {
			holds:  []share.Hold{hold(share.Init, 0, 30), hold(share.Sidecar, 0, 2), hold(share.App, 0, 4)},
			before: []share.Charge{{Minor: 0, MiB: 30}}, then: []share.Charge{{Minor: 0, MiB: 6}},
		},
		"a pod that asks in an init container only holds nothing afterwards": {
			holds:  []share.Hold{hold(share.Init, 1, 9)},
			before: []share.Charge{{Minor: 1, MiB: 9}}, then: []share.Charge{},
		},
		"cards are charged apart and sorted": {
			holds:  []share.Hold{hold(share.App, 3, 5), hold(share.Init, 0, 7), hold(share.App, 1, 2)},
			before: []share.Charge{{Minor: 0, MiB: 7}, {Minor: 1, MiB: 2}, {Minor: 3, MiB: 5}}, then: []share.Charge{{Minor: 1, MiB: 2}, {Minor: 3, MiB: 5}},
		},
		"a card that an init container held whole is shared later": {
			holds:  []share.Hold{{Phase: share.Init, MiB: 16, Whole: true}, hold(share.App, 0, 4)},
			before: []share.Charge{{MiB: 16, Whole: true}}, then: []share.Charge{{MiB: 4}},
		},
		"sums never wrap around": {
			holds:  []share.Hold{hold(share.App, 0, math.MaxInt64), hold(share.App, 0, math.MaxInt64)},
			before: []share.Charge{{MiB: math.MaxInt64}}, then: []share.Charge{{MiB: math.MaxInt64}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.before, share.Charges(test.holds, false)); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.then, share.Charges(test.holds, true)); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTotals holds the totals to what Kubernetes itself counts, as in case 05 and its variants.
func TestTotals(t *testing.T) {
	t.Parallel()
	m := names.ResourceMemory
	tests := map[string]struct {
		options []func(*v1.Pod)
		want    int64
	}{
		"init above the apps":            {[]func(*v1.Pod){ledgertest.Init("i", m, 30), ledgertest.App("a", m, 4), ledgertest.App("b", m, 4)}, 30},
		"apps above the init":            {[]func(*v1.Pod){ledgertest.Init("i", m, 3), ledgertest.App("a", m, 4), ledgertest.App("b", m, 4)}, 8},
		"init only":                      {[]func(*v1.Pod){ledgertest.Init("i", m, 30)}, 30},
		"a sidecar started before":       {[]func(*v1.Pod){ledgertest.Sidecar("s", m, 2), ledgertest.Init("i", m, 30), ledgertest.App("a", m, 4)}, 32},
		"a sidecar started after":        {[]func(*v1.Pod){ledgertest.Init("i", m, 30), ledgertest.Sidecar("s", m, 2), ledgertest.App("a", m, 4)}, 30},
		"a sidecar runs beside the apps": {[]func(*v1.Pod){ledgertest.Init("i", m, 3), ledgertest.Sidecar("s", m, 2), ledgertest.App("a", m, 4)}, 6},
		"sidecars add up as they start":  {[]func(*v1.Pod){ledgertest.Sidecar("s", m, 5), ledgertest.Sidecar("u", m, 5), ledgertest.App("a", m, 1)}, 11},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := share.Parse(names, ledgertest.Pod("p", test.options...), share.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			if got := req.Totals[share.Memory]; got != test.want {
				t.Errorf("%d units, want %d", got, test.want)
			}
		})
	}
}

func TestArithmeticSaturates(t *testing.T) {
	t.Parallel()
	const most = int64(math.MaxInt64)
	for name, test := range map[string][2]int64{
		"add at the end": {share.Add(most, 1), most}, "add": {share.Add(2, 3), 5},
		"multiply at the end": {share.Mul(most/2, 3), most}, "multiply by zero": {share.Mul(most, 0), 0}, "multiply": {share.Mul(6, 7), 42},
		"subtract below zero": {share.Sub(2, 3), 0}, "subtract": {share.Sub(3, 2), 1},
		"units of nothing": {share.Units(10, 0), 0}, "units": {share.Units(1023, 102), 10},
		"slices of nothing": {share.SliceMiB(16384, 0), 0}, "a slice rounds down": {share.SliceMiB(16384, 6), 2730},
	} {
		if test[0] != test[1] {
			t.Errorf("%s: %d, want %d", name, test[0], test[1])
		}
	}
}

func TestLighter(t *testing.T) {
	t.Parallel()
	two := []share.Charge{{Minor: 0, MiB: 8}, {Minor: 1, MiB: 8}}
	tests := map[string]struct {
		a    []share.Charge
		want bool
	}{
		"the same":                      {two, false},
		"less of one card":              {[]share.Charge{{Minor: 0, MiB: 4}, {Minor: 1, MiB: 8}}, true},
		"one card fewer":                {two[:1], true},
		"nothing":                       {nil, true},
		"less of one, more of another":  {[]share.Charge{{Minor: 0, MiB: 4}, {Minor: 1, MiB: 9}}, false},
		"less, and of another card too": {[]share.Charge{{Minor: 0, MiB: 4}, {Minor: 2, MiB: 1}}, false},
		"as much, of the whole card":    {[]share.Charge{{Minor: 0, MiB: 8, Whole: true}, {Minor: 1, MiB: 4}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := share.Lighter(tt.a, two); got != tt.want {
				t.Errorf("lighter: %t", got)
			}
		})
	}
	if !share.Lighter([]share.Charge{{Minor: 0, MiB: 8}}, []share.Charge{{Minor: 0, MiB: 8, Whole: true}}) {
		t.Error("a share of a card that was held whole is not lighter")
	}
}
