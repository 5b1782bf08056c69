package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/eflib/efsmi"
)

// jsonRunner returns a runner that answers "-q" with the text form of what the tool prints as JSON.
func jsonRunner(run efsmi.Runner) efsmi.Runner {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		if !slices.Equal(args, []string{"-q"}) {
			return run(ctx, args...)
		}
		out, err := run(ctx, "-q", "--json-format")
		if err != nil {
			return nil, err
		}
		text, err := queryText(out)
		return []byte(text), err
	}
}

const deviceHeading = "DEV ID"

var deviceKey = regexp.MustCompile(`^DEV ID *([0-9]+)$`)

// maxDepth bounds how deep the JSON is followed.
const maxDepth = 32

// queryText writes a JSON value as the text "efsmi -q" would print: each object under a key "DEV ID n", and
// each that has a number as "DEV ID", becomes a group, every other scalar a line "key : value" in the order of
// the file.
func queryText(out []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	var b strings.Builder
	if err := writeValue(d, &b, "", 0); err != nil {
		return "", fmt.Errorf("efsmi -q --json-format: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("efsmi -q --json-format: text after the JSON value")
	}
	return b.String(), nil
}

func writeValue(d *json.Decoder, b *strings.Builder, key string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		writeLine(b, key, token)
		return nil
	}
	if m := deviceKey.FindStringSubmatch(key); m != nil && delim == '{' {
		fmt.Fprintf(b, "%s %s\n", deviceHeading, m[1])
	}
	for d.More() {
		inner := key
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			inner, _ = name.(string) // a name of an object is a string
		}
		if err := writeValue(d, b, inner, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end of the object or list
	return err
}

// writeLine writes a scalar. What has a line break in it is none of the tool's values.
func writeLine(b *strings.Builder, key string, value any) {
	text := fmt.Sprint(value)
	switch {
	case value == nil || strings.ContainsAny(key+text, "\n\r") || strings.Contains(key, ":"):
	case key == deviceHeading:
		fmt.Fprintf(b, "%s %s\n", deviceHeading, text)
	default:
		fmt.Fprintf(b, "%s : %s\n", key, text)
	}
}
