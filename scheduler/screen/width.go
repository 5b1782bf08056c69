package screen

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Columns returns how many columns of a terminal a text takes.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Clean makes text from an object safe for a terminal: no control or formatting characters, one line.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar, !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// head returns as much of the start of s as fits into n columns.
func head(s string, n int) string {
	for i, r := range s {
		if n -= runeColumns(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// tail returns as much of the end of s as fits into n columns.
func tail(s string, n int) string {
	runes := []rune(s)
	i := len(runes)
	for i > 0 && n >= runeColumns(runes[i-1]) {
		i--
		n -= runeColumns(runes[i])
	}
	return string(runes[i:])
}

// Cut shortens s to n columns by leaving out its middle: names differ at their ends.
func Cut(s string, n int, gap string) string {
	if Columns(s) <= n {
		return s
	}
	rest := n - Columns(gap)
	if rest < 2 {
		return head(s, max(n, 0))
	}
	front := rest / 2
	return head(s, front) + gap + tail(s, rest-front)
}

// Wrap breaks text into lines of at most n columns, between words where it can.
func Wrap(s string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && Columns(line)+1+Columns(word) <= n {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for columns := Columns(word); columns > n; { // counted once: a word may be very long
			part := head(word, n)
			if part == "" {
				break
			}
			lines = append(lines, part)
			word, columns = word[len(part):], columns-Columns(part)
		}
		line = word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
