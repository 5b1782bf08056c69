package doctor

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Level says how bad a finding is.
type Level int

// Levels: all is well; worth a look; containers with cards will fail.
const (
	OK Level = iota
	Warning
	Error
)

// String is the level's word.
func (l Level) String() string { return [...]string{"ok", "look", "error"}[l] }

// Finding is what was seen of one topic.
type Finding struct {
	Level       Level
	Topic, Text string
	// Remedy says what is to be done; empty where all is well.
	Remedy string
}

// Columns of the report: level, topic, text up to the width of a terminal.
const (
	textColumn = 19
	width      = 80
)

// Print writes findings for people, in 80 columns.
func Print(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		lead := fmt.Sprintf("%-6s %-11s ", f.Level, f.Topic)
		for _, line := range wrap(f.Text, width-textColumn) {
			if _, err := fmt.Fprintln(w, lead+line); err != nil {
				return err
			}
			lead = strings.Repeat(" ", textColumn)
		}
		lead = strings.Repeat(" ", textColumn) + "→ "
		for _, line := range wrap(f.Remedy, width-textColumn-2) {
			if _, err := fmt.Fprintln(w, lead+line); err != nil {
				return err
			}
			lead = strings.Repeat(" ", textColumn+2)
		}
	}
	return nil
}

// wrap breaks a text between words; a word that is longer than a line stays whole, to be copied.
func wrap(text string, width int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			out = append(out, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// Worst returns the worst level of some findings.
func Worst(findings []Finding) Level {
	worst := OK
	for _, f := range findings {
		worst = max(worst, f.Level)
	}
	return worst
}
