package fault_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "stop", "restart, card-fail=3", "card-gone=-1", "card-hang=2,card-gone=1", "card-fail", "stop=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := fault.Parse(text)
		if err != nil {
			return
		}
		again, err := fault.Parse(set.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, set, err)
		}
		if diff := cmp.Diff(set, again); diff != "" {
			t.Errorf("-first +second:\n%s", diff)
		}
	})
}
