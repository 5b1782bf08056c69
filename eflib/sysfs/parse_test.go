package sysfs

import (
	"fmt"
	"strings"
	"testing"
)

func FuzzParseHex(f *testing.F) {
	for _, s := range []string{"0x1e36", "0x120000", "1e36", "0x", "0x+e36", "0x1_36"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, digits := range []int{4, 6} {
			n, err := parseHex(text, digits)
			if err == nil && fmt.Sprintf("0x%0*x", digits, n) != strings.ToLower(text) {
				t.Errorf("%q was read as %#x", text, n)
			}
		}
	})
}

func FuzzParseCardName(f *testing.F) {
	for _, s := range []string{"gcu0", "gcu127", "gcu128", "gcu01", "gcu", "gcu+1", "vgcu0", "gcu0 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, ok := parseCardName(name)
		if ok && (fmt.Sprintf("gcu%d", n) != name || n < 0 || n > 127) {
			t.Errorf("%q was read as %d", name, n)
		}
		if !ok && n != 0 {
			t.Errorf("%q was refused and read as %d", name, n)
		}
	})
}

func FuzzParseDev(f *testing.F) {
	for _, s := range []string{"240:0", "240", "240:", ":0", "-1:0", "4096:0", "1:1048576", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		major, minor, err := parseDev(text)
		if err == nil && (major > 4095 || minor > 1048575) {
			t.Errorf("%q was read as %d:%d", text, major, minor)
		}
		if err != nil && (major != 0 || minor != 0) {
			t.Errorf("%q was refused and read as %d:%d", text, major, minor)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gcu128", "gcu01", "gcu", "gcu+1", "vgcu0", "gcu0 ", "gcu1000"} {
		if n, ok := parseCardName(name); ok {
			t.Errorf("%q was read as %d", name, n)
		}
	}
	for _, text := range []string{"", "240", "240:", ":0", "-1:0", "4096:0", "1:1048576", "1:2:3", "1: 2"} {
		if major, minor, err := parseDev(text); err == nil {
			t.Errorf("%q was read as %d:%d", text, major, minor)
		}
	}
}
