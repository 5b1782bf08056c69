package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/scheduler/screen"
)

// answerNo is the exit code of a verb that answered, and the answer is no: the pod waits, the request
// does not fit. 1 is left for verbs that could not answer.
const answerNo = 3

// errAnswerNo makes the command end with answerNo and without a message, which stands in the output.
var errAnswerNo = errors.New("the answer is no")

// exitCode returns what the process ends with, and whether the error is worth a line.
func exitCode(err error) (code int, tell bool) {
	switch {
	case err == nil:
		return 0, false
	case errors.Is(err, errAnswerNo):
		return answerNo, false
	}
	return 1, true
}

// output is how a verb puts out its answer.
type output struct {
	format, color string
	formats       []string
	// listed is how messages name the formats.
	listed string
}

func (o *output) flags(f *pflag.FlagSet, formats ...string) {
	o.formats, o.listed = formats, strings.Join(formats, ", ")
	f.StringVarP(&o.format, "output", "o", "", "one of: "+o.listed+"; without it text of 80 columns")
	f.StringVar(&o.color, "color", "auto", "auto (on a terminal, unless NO_COLOR is set), always or never")
}

func (o *output) validate() error {
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--output %q: want %s", o.format, o.listed)
	}
	if !slices.Contains([]string{"auto", "always", "never"}, o.color) {
		return fmt.Errorf("--color %q: want auto, always or never", o.color)
	}
	return nil
}

func (o *output) wide() bool { return o.format == "wide" }

// write puts out an answer, as data or as the page that draw makes of it.
func (o *output) write(a *app, answer any, draw func() *screen.Page) error {
	switch o.format {
	case "json":
		e := json.NewEncoder(a.out)
		e.SetIndent("", "    ")
		e.SetEscapeHTML(false)
		return e.Encode(answer)
	case "yaml":
		text, err := yaml.Marshal(answer)
		if err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	}
	color := o.color == "always" ||
		o.color == "auto" && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && isTerminal(a.out)
	return draw().Text(a.out, color)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
