package screen

import (
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	tests := map[string]struct {
		text string
		n    int
		want string
	}{
		"short enough":             {"abc", 3, "abc"},
		"the middle goes":          {"abcdefgh", 5, "ab…gh"},
		"wide characters":          {"显存温度过高", 6, "显…高"},
		"no room for both ends":    {"abcdef", 2, "ab"},
		"no room at all":           {"abcdef", 0, ""},
		"a negative width":         {"abcdef", -3, ""},
		"combining marks are thin": {"é́é́", 2, "é́é́"},
	}
	for name, tc := range tests {
		if got := Cut(tc.text, tc.n, "…"); got != tc.want {
			t.Errorf("%s: Cut(%q, %d) = %q, want %q", name, tc.text, tc.n, got, tc.want)
		}
	}
}

func FuzzWidth(f *testing.F) {
	f.Add("some text, 显存温度过高\x1b[31m and a-very-long-word-that-has-no-break", 10)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 2 + abs(n)%100
		s = Clean(s)
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x9b || r == 0x202e }) {
			t.Errorf("control characters in %q", s)
		}
		if got := Cut(s, n, "…"); Columns(got) > n {
			t.Errorf("Cut(%q, %d) = %q", s, n, got)
		}
		lines := Wrap(s, n)
		for _, line := range lines {
			if Columns(line) > n {
				t.Errorf("Wrap(%q, %d): %q", s, n, line)
			}
		}
		if got := strings.Join(lines, ""); got != strings.ReplaceAll(s, " ", "") && strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(s, " ", "") {
			t.Errorf("Wrap(%q, %d) lost text: %q", s, n, lines)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}
