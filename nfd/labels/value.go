package labels

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The API server's limit on a label value and on the name part of a label key.
const maxLabel = 63

// hashDigits are enough to tell apart the models and machines that one cluster can have.
const hashDigits = 8

// Value returns a text as a legal label value: spaces become dashes. A text that needs more than that ends
// with a hash of itself. An empty text has no value.
func Value(text string) string { return legal(text, maxLabel) }

// legal returns a text as a label value of at most so many characters.
func legal(text string, limit int) string {
	text = strings.TrimSpace(text)
	value := strings.ReplaceAll(text, " ", "-")
	if value == "" || len(value) <= limit && isLegal(value) {
		return value
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:hashDigits]
	kept := make([]byte, 0, limit)
	for i := 0; i < len(value) && len(kept) < limit-hashDigits-1; i++ {
		c := value[i]
		if !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			c = '-'
		}
		kept = append(kept, c)
	}
	head := strings.Trim(string(kept), "-_.")
	if head == "" {
		return hash
	}
	return head + "-" + hash
}

// isLegal says whether the characters are those of a label value.
func isLegal(value string) bool {
	for i := range len(value) {
		c := value[i]
		inner := i > 0 && i < len(value)-1 && (c == '-' || c == '_' || c == '.')
		if !isAlphanumeric(c) && !inner {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
