package sysfs

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/topology"
)

// maxText is the size of a memory page, the most an attribute of sysfs can hold.
const maxText = 4096

// readText reads a small file without the white space around its text.
func readText(fsys fs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// parseHex reads "0x" and exactly so many hexadecimal digits.
func parseHex(text string, digits int) (uint32, error) {
	rest, ok := strings.CutPrefix(text, "0x")
	if !ok || len(rest) != digits {
		return 0, fmt.Errorf("%q: want 0x and %d digits", text, digits)
	}
	n, err := strconv.ParseUint(rest, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q: not hexadecimal", text)
	}
	return uint32(n), nil
}

// parseCardName reads the minor out of "gcu3".
func parseCardName(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "gcu")
	if !ok || len(digits) > 3 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || n >= topology.MaxCards || strconv.FormatUint(n, 10) != digits {
		return 0, false
	}
	return int(n), true
}

// Device numbers of Linux have 12 bits for the major and 20 for the minor.
const (
	majorBits = 12
	minorBits = 20
)

// parseDev reads "major:minor".
func parseDev(text string) (major, minor uint32, err error) {
	first, second, _ := strings.Cut(text, ":")
	a, err1 := strconv.ParseUint(first, 10, majorBits)
	b, err2 := strconv.ParseUint(second, 10, minorBits)
	if err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("%q: want major:minor", text)
	}
	return uint32(a), uint32(b), nil
}
