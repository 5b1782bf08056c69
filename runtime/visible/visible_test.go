package visible_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/runtime/visible"
)

// TestPick asks a host with two cards. A value that is refused has to be named in the error.
func TestPick(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value string
		want  []int
		void  bool
		fails bool
	}{
		"none is no card":                         {value: "none"},
		"void leaves the container alone":         {value: "void", void: true},
		"empty leaves the container alone":        {value: "", void: true},
		"all is every card":                       {value: "all", want: []int{0, 1}},
		"a number is that card":                   {value: "1", want: []int{1}},
		"twice the same card is one card":         {value: "1,1", want: []int{1}},
		"the order does not matter":               {value: "1,0", want: []int{0, 1}},
		"the prefix may be written":               {value: "GCU-0,GCU-1", want: []int{0, 1}},
		"a prefix may stand beside a bare number": {value: "0,GCU-0", want: []int{0}},
		"a blank is refused":                      {value: "0, 1", fails: true},
		"a card that is not there is refused":     {value: "9", fails: true},
		"one of several that is not there":        {value: "0,9", fails: true},
		"a word among cards is refused":           {value: "0,none", fails: true},
		"all among cards is refused":              {value: "all,0", fails: true},
		"capitals are refused":                    {value: "ALL", fails: true},
		"a small prefix is refused":               {value: "gcu-0", fails: true},
		"a negative number is refused":            {value: "-1", fails: true},
		"a sign is refused":                       {value: "+1", fails: true},
		"a leading zero is refused":               {value: "01", fails: true},
		"a comma at the end is refused":           {value: "0,", fails: true},
		"a comma alone is refused":                {value: ",", fails: true},
		"a uuid is refused":                       {value: "GCU-U53000080105", fails: true},
		"more cards than hosts have":              {value: "128", fails: true},
		"a number past all integers":              {value: "99999999999999999999", fails: true},
		"a hexadecimal number is refused":         {value: "0x1", fails: true},
		"a line end is refused":                   {value: "none\n", fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := visible.Parse(tt.value)
			var got []int
			if err == nil {
				got, err = s.Pick([]int{1, 0})
			}
			switch {
			case tt.fails && (err == nil || !strings.Contains(err.Error(), tt.value) && tt.value != "none\n"):
				t.Errorf("error %v, want one that names %q", err, tt.value)
			case !tt.fails && err != nil:
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
			if err == nil && s.Void() != tt.void {
				t.Errorf("Void() = %t", s.Void())
			}
		})
	}
}

func TestAllNeedsACard(t *testing.T) {
	t.Parallel()
	s, err := visible.Parse("all")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Pick(nil); err == nil {
		t.Errorf("all of no cards is %v: want an error", got)
	}
}

// FuzzParse checks that no value gives a card that its text does not name.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"none", "void", "", "all", "1", "1,1", "0, 1", "9", "0,none", "ALL", "-1", "GCU-0,GCU-1", "GCU-GCU-0", "127,128"} {
		f.Add(seed)
	}
	host := []int{0, 1, 2, 10, 127}
	f.Fuzz(func(t *testing.T, value string) {
		s, err := visible.Parse(value)
		if err != nil {
			return
		}
		got, err := s.Pick(host)
		if err != nil {
			return
		}
		named := strings.Split(value, ",")
		if value != "all" && len(got) > len(named) {
			t.Fatalf("%q gives %v", value, got)
		}
		for _, minor := range got {
			if value != "all" && !slices.ContainsFunc(named, func(n string) bool {
				return strings.TrimPrefix(n, "GCU-") == map[int]string{0: "0", 1: "1", 2: "2", 10: "10", 127: "127"}[minor]
			}) {
				t.Fatalf("%q gives card %d", value, minor)
			}
		}
		again, err := visible.Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is %q, which reads as %q, %v", value, s, again, err)
		}
	})
}
