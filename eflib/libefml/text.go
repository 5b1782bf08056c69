package libefml

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/topscloud/topscloud/eflib"
)

// clean returns the text in a buffer that may lack its NUL and hold anything: what is not printable is
// dropped.
func clean(buffer []byte) string {
	if end := bytes.IndexByte(buffer, 0); end >= 0 {
		buffer = buffer[:end]
	}
	s := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(buffer), ""))
	return strings.TrimSpace(s)
}

// cleanID returns the text in a buffer that names a card. It is refused where clean would have to
// change it, because half an identity is another card's.
func cleanID(buffer []byte) (string, error) {
	end := bytes.IndexByte(buffer, 0)
	if end < 0 {
		return "", fmt.Errorf("%w: text without an end", eflib.ErrImplausible)
	}
	s := strings.TrimSpace(string(buffer[:end]))
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune(`,;"'\`, r) {
			return "", fmt.Errorf("%w: %q is no name of a card", eflib.ErrImplausible, s)
		}
	}
	return s, nil
}
