package containerd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Marks by which our own lines are found again.
const (
	beginMark = "# BEGIN enflame-ctk"
	endMark   = "# END enflame-ctk"
	noLineEnd = ", no line end before"
	fileMade  = ", file made"
	addedMark = " # enflame-ctk: added"
	wasMark   = " # enflame-ctk: was "
)

// undo returns the text as it was without us, and whether the file would not be there.
func undo(text string) (original string, gone bool) {
	var out strings.Builder
	inside, cut := false, false
	for line := range strings.SplitAfterSeq(text, "\n") {
		bare := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(bare, beginMark):
			inside, cut, gone = true, strings.Contains(bare, noLineEnd), strings.Contains(bare, fileMade)
		case inside:
			inside = bare != endMark
		case strings.HasSuffix(bare, addedMark):
		default:
			if at := strings.LastIndex(bare, wasMark); at >= 0 {
				var was string
				if json.Unmarshal([]byte(bare[at+len(wasMark):]), &was) == nil {
					line = was + strings.TrimPrefix(line, bare)
				}
			}
			out.WriteString(line)
			cut = cut && line == "" // something was written behind the block: the line end is needed
		}
	}
	original = out.String()
	if cut {
		original = strings.TrimSuffix(original, "\n")
	}
	return original, gone && original == ""
}

// block puts lines between the marks at the end of a text.
func block(text, lines string, made bool) string {
	mark := beginMark
	switch {
	case made:
		mark += fileMade
	case text != "" && !strings.HasSuffix(text, "\n"):
		mark += noLineEnd
		text += "\n"
	}
	return text + mark + "\n" + lines + endMark + "\n"
}

// set gives a key of a table another value. It returns false if the text has no header of the table.
func set(text string, table []string, key, value string) (string, bool) {
	all := strings.SplitAfter(text, "\n")
	at := slices.IndexFunc(all, func(line string) bool { return slices.Equal(header(line), table) })
	if at < 0 {
		return text, false
	}
	assignment := regexp.MustCompile(`^\s*["']?` + regexp.QuoteMeta(key) + `["']?\s*=`)
	indent := all[at][:len(all[at])-len(strings.TrimLeft(all[at], " \t"))]
	for i := at + 1; i < len(all) && header(all[i]) == nil; i++ {
		if !assignment.MatchString(all[i]) {
			continue
		}
		bare := strings.TrimSuffix(all[i], "\n")
		was, err := json.Marshal(bare)
		if err != nil {
			return text, false
		}
		lead := bare[:len(bare)-len(strings.TrimLeft(bare, " \t"))]
		all[i] = fmt.Sprintf("%s%s = %s%s%s%s", lead, key, value, wasMark, was, strings.TrimPrefix(all[i], bare))
		return strings.Join(all, ""), true
	}
	if !strings.HasSuffix(all[at], "\n") {
		return text, false // a header without a line end: a table of its own at the end does as well
	}
	return strings.Join(slices.Insert(all, at+1, indent+"  "+key+" = "+value+addedMark+"\n"), ""), true
}

// header returns the keys of a table's header line, nil if it is none.
func header(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") || strings.HasPrefix(line, "[[") {
		return nil
	}
	var keys []string
	rest := line[1:]
	for {
		rest = strings.TrimLeft(rest, " \t")
		var key string
		switch {
		case rest == "":
			return nil
		case rest[0] == '"' || rest[0] == '\'':
			end := strings.IndexByte(rest[1:], rest[0])
			if end < 0 {
				return nil
			}
			key, rest = rest[1:end+1], rest[end+2:]
		default:
			end := strings.IndexAny(rest, ".] \t")
			if end <= 0 {
				return nil
			}
			key, rest = rest[:end], rest[end:]
		}
		keys = append(keys, key)
		rest = strings.TrimLeft(rest, " \t")
		switch {
		case strings.HasPrefix(rest, "."):
			rest = rest[1:]
		case strings.HasPrefix(rest, "]"):
			rest = strings.TrimSpace(rest[1:])
			if rest != "" && !strings.HasPrefix(rest, "#") {
				return nil
			}
			return keys
		default:
			return nil
		}
	}
}
