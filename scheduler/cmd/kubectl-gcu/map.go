package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/survey"
)

const mapHelp = `Draw nodes, PCI switches, GCU cards and the pods that hold them, by the same
account that the scheduler decides by. Without names all nodes with GCU are
drawn.

How to read it:
  12288/42976 MiB   what pods hold of a card, and its memory
  8 units           what the holder asked of this card; the first line of the
                    node says how large a unit is
  ? pod             no record yet; room for it is set aside on the emptiest card
  ! pod             its record is unreadable or overdue; this closes the node
  free?  ≥12288     pods that you may not read may hold more

A card is sick, swapped (exchanged under its holders), whole (held by one pod),
shared, cordoned or free.

Rights needed: list on nodes (get, when nodes are named), list on pods in all
namespaces. With less the map shows what it can see and says what is missing.`

const mapExamples = `  kubectl gcu map
  kubectl gcu map gcu-node-1 -o wide
  kubectl gcu map -o json | jq '.nodes[].cards[] | select(.state == "free") | .uuid'`

type mapOptions struct {
	output, color string
	ascii         bool
}

func newMap(a *app) *cobra.Command {
	var o mapOptions
	cmd := &cobra.Command{
		Use:     "map [node...]",
		Short:   "Draw nodes, switches, cards and who holds them",
		Long:    mapHelp,
		Example: mapExamples,
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.names()
			if err != nil {
				return err
			}
			client, namespace, err := a.connect()
			if err != nil {
				return err
			}
			seen, err := gcumap.Read(cmd.Context(), client, names, survey.Scope{Nodes: args, Namespace: namespace})
			if err != nil {
				return err
			}
			m := gcumap.Build(seen, gcumap.Options{RecordTimeout: a.recordTimeout, Now: a.now()})
			return o.write(a, names, m)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "wide, json or yaml; without it a picture of 80 columns")
	f.StringVar(&o.color, "color", "auto", "auto (on a terminal, unless NO_COLOR is set), always or never")
	f.BoolVar(&o.ascii, "ascii", false, "draw with ASCII characters only")
	return cmd
}

func (o *mapOptions) validate() error {
	switch o.output {
	case "", "wide", "json", "yaml":
	default:
		return fmt.Errorf("--output %q: want wide, json or yaml", o.output)
	}
	switch o.color {
	case "auto", "always", "never":
		return nil
	}
	return fmt.Errorf("--color %q: want auto, always or never", o.color)
}

func (o *mapOptions) write(a *app, names *contract.Names, m *gcumap.Map) error {
	switch o.output {
	case "json":
		e := json.NewEncoder(a.out)
		e.SetIndent("", "    ")
		e.SetEscapeHTML(false)
		return e.Encode(m)
	case "yaml":
		text, err := yaml.Marshal(m)
		if err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	}
	drawing := gcumap.Draw(m, gcumap.DrawOptions{Names: names, Wide: o.output == "wide", ASCII: o.ascii})
	return drawing.Text(a.out, o.colored(a))
}

func (o *mapOptions) colored(a *app) bool {
	if o.color != "auto" {
		return o.color == "always"
	}
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && isTerminal(a.out)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
