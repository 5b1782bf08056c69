package gcumap

import "testing"

func TestBar(t *testing.T) {
	tests := map[string]struct {
		used, total int64
		want        string
	}{
		"nothing":                    {0, 42976, "░░░░░░"},
		"a little is not nothing":    {1, 42976, "▌░░░░░"},
		"half":                       {21488, 42976, "███░░░"},
		"a little room is not full":  {42975, 42976, "█████▌"},
		"full":                       {42976, 42976, "██████"},
		"more than there is":         {50000, 42976, "██████"},
		"fewer units than the steps": {1, 3, "██░░░░"},
		"a card without memory":      {0, 0, "██████"},
	}
	for name, tc := range tests {
		on, off := unicodeGlyphs.bar(tc.used, tc.total, 6)
		if on+off != tc.want {
			t.Errorf("%s: bar(%d, %d) = %s, want %s", name, tc.used, tc.total, on+off, tc.want)
		}
	}
}
