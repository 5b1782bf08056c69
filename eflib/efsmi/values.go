package efsmi

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

// amount is a number with a unit: "300 W", "42976MiB", "71℃", "0.0 %".
var amount = regexp.MustCompile(`^(-?[0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(\S*)$`)

// number reads an amount in one of some units.
func number(text string, units ...string) (float64, error) {
	text = strings.TrimSpace(text)
	if missing(text) {
		return 0, eflib.ErrNotSupported
	}
	m := amount.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%w: %q", eflib.ErrImplausible, text)
	}
	for _, unit := range units {
		if m[2] == unit {
			return strconv.ParseFloat(m[1], 64)
		}
	}
	return 0, fmt.Errorf("%w: %q: want it in %q", eflib.ErrImplausible, text, units)
}

// missing says whether a text stands for no value.
func missing(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "n/a", "na", "-", "none", "unknown":
		return true
	}
	return false
}

// celsius are the spellings of the unit of temperatures; the tool has used all of them.
var celsius = []string{"C", "℃", "°C", "'C", ""}

func measured(text string, convert func(float64) eflib.Reading[float64], units ...string) eflib.Reading[float64] {
	v, err := number(text, units...)
	if err != nil {
		return eflib.Unknown[float64](err)
	}
	return convert(v)
}

// mebibytes reads an amount of memory.
func mebibytes(text string) (uint64, error) {
	v, err := number(text, "MiB")
	if err == nil && (v < 0 || v > 1<<30) {
		err = fmt.Errorf("%w: %q", eflib.ErrImplausible, text)
	}
	if err != nil {
		return 0, err
	}
	return uint64(v), nil
}

// truth reads a yes or no.
func truth(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if missing(text) {
		return false, eflib.ErrNotSupported
	}
	return false, fmt.Errorf("%w: %q", eflib.ErrImplausible, text)
}

// prefixed reads the number in "Gen5" or "X16".
func prefixed(text, prefix string) (uint32, error) {
	text = strings.TrimSpace(text)
	if missing(text) {
		return 0, eflib.ErrNotSupported
	}
	if len(text) <= len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return 0, fmt.Errorf("%w: %q: want %s and a number", eflib.ErrImplausible, text, prefix)
	}
	n, err := strconv.ParseUint(text[len(prefix):], 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%w: %q: want %s and a number", eflib.ErrImplausible, text, prefix)
	}
	return uint32(n), nil
}

// powerMode knows the words of the modes; a level like "LP1" is none of them.
func powerMode(text string) eflib.Reading[eflib.PowerMode] {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "active":
		return eflib.Known(eflib.PowerActive)
	case "suspend":
		return eflib.Known(eflib.PowerSuspend)
	case "sleep":
		return eflib.Known(eflib.PowerSleep)
	}
	return eflib.Unknown[eflib.PowerMode](fmt.Errorf("%w: power level %q", eflib.ErrNotSupported, text))
}

var tableAddress = regexp.MustCompile(`^(?:([0-9a-fA-F]{2,8}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$`)

// parseTableAddress reads the bus id of the table, which has the last two digits of the domain:
// "00:23:00.0". Only domains below 256 can be told from it.
func parseTableAddress(text string) (topology.Address, error) {
	m := tableAddress.FindStringSubmatch(text)
	if m == nil {
		return topology.Address{}, fmt.Errorf("bus id %q: want dd:bb:dd.f", text)
	}
	return topology.ParseAddress(strings.Repeat("0", max(0, 4-len(m[1]))) + m[1] + ":" + m[2])
}

// name keeps a text that names a card, if it is one word of the characters that such names have.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

func cardName(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case missing(text):
		return "", nil
	case !name.MatchString(text):
		return "", fmt.Errorf("%w: %q is no name of a card", eflib.ErrImplausible, text)
	}
	return text, nil
}
