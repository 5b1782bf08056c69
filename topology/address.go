package topology

import (
	"cmp"
	"fmt"
	"strings"
)

// Address is the address of a PCI function.
type Address struct {
	Domain   uint32
	Bus      uint8
	Device   uint8 // 0 to 31
	Function uint8 // 0 to 7
}

// ParseAddress reads "0000:40:00.0", or "40:00.0" in domain 0. The domain has four to eight hexadecimal
// digits, as the kernel writes it; "00:23:00.0" is neither form and is refused.
func ParseAddress(text string) (Address, error) {
	var a Address
	rest := text
	domain, short, full := strings.Cut(text, ":")
	if strings.Count(text, ":") == 2 && full {
		if len(domain) < 4 || len(domain) > 8 {
			return Address{}, badAddress(text, "a domain has four to eight digits")
		}
		d, ok := hex(domain)
		if !ok {
			return Address{}, badAddress(text, "the domain is not hexadecimal")
		}
		a.Domain, rest = d, short
	}
	// rest is bb:dd.f
	if len(rest) != 7 || rest[2] != ':' || rest[5] != '.' {
		return Address{}, badAddress(text, "want dddd:bb:dd.f or bb:dd.f")
	}
	bus, ok1 := hex(rest[0:2])
	device, ok2 := hex(rest[3:5])
	function, ok3 := hex(rest[6:7])
	switch {
	case !ok1 || !ok2 || !ok3:
		return Address{}, badAddress(text, "not hexadecimal")
	case device > 31:
		return Address{}, badAddress(text, "a device is at most 1f")
	case function > 7:
		return Address{}, badAddress(text, "a function is at most 7")
	}
	a.Bus, a.Device, a.Function = uint8(bus), uint8(device), uint8(function)
	return a, nil
}

func badAddress(text, why string) error {
	return fmt.Errorf("PCI address %q: %s", text, why)
}

// hex reads one to eight hexadecimal digits and nothing else: no sign, prefix or underscore.
func hex(digits string) (uint32, bool) {
	if digits == "" || len(digits) > 8 {
		return 0, false
	}
	var n uint32
	for i := 0; i < len(digits); i++ {
		switch c := digits[i]; {
		case c >= '0' && c <= '9':
			n = n<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint32(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | uint32(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// String returns the address as the kernel writes it, "0000:40:00.0".
func (a Address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Device, a.Function)
}

// Compare orders addresses by domain, bus, device and function.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Bus, b.Bus),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.Function, b.Function))
}

// MarshalText returns the String form.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what ParseAddress reads.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := ParseAddress(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}
