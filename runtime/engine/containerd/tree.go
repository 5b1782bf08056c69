package containerd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tree is a parsed configuration.
type tree = map[string]any

// at returns the table at some keys, nil if there is none.
func at(t tree, keys ...string) tree {
	for _, key := range keys {
		next, ok := t[key].(tree)
		if !ok {
			return nil
		}
		t = next
	}
	return t
}

// merge puts one table over another.
func merge(under, over tree) tree {
	out := maps.Clone(under)
	if out == nil {
		out = tree{}
	}
	for key, value := range over {
		a, isTable := out[key].(tree)
		b, both := value.(tree)
		if isTable && both {
			value = merge(a, b)
		}
		out[key] = value
	}
	return out
}

// prune returns a table without the empty tables in it.
func prune(t tree) tree {
	out := tree{}
	for key, value := range t {
		if sub, ok := value.(tree); ok {
			sub = prune(sub)
			if len(sub) == 0 {
				continue
			}
			value = sub
		}
		out[key] = value
	}
	return out
}

// render writes a table as containerd writes its own: values first, tables below them two columns further
// in, keys in order.
func render(out *strings.Builder, keys []string, t tree) error {
	indent := strings.Repeat("  ", len(keys)-1)
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = key
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			quoted[i] = `"` + key + `"`
		}
	}
	fmt.Fprintf(out, "%s[%s]\n", indent, strings.Join(quoted, "."))
	var tables []string
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if _, ok := t[key].(tree); ok {
			tables = append(tables, key)
			continue
		}
		value, err := literal(t[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		fmt.Fprintf(out, "%s  %s = %s\n", indent, key, value)
	}
	for _, key := range tables {
		out.WriteString("\n")
		if err := render(out, append(slices.Clone(keys), key), t[key].(tree)); err != nil {
			return err
		}
	}
	return nil
}

// literal writes a value. JSON's strings are TOML's too.
func literal(value any) (string, error) {
	switch v := value.(type) {
	case string, bool, int64:
		text, err := json.Marshal(v)
		return string(text), err
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			part, err := literal(item)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "", fmt.Errorf("a value of type %T cannot be inherited", value)
}
