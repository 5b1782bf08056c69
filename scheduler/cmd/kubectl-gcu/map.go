package main

import (
	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/screen"
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
	output
	ascii bool
}

func newMap(a *app) *cobra.Command {
	var o mapOptions
	cmd := &cobra.Command{
		Use:               "map [node...]",
		Short:             "Draw nodes, switches, cards and who holds them",
		Long:              mapHelp,
		Example:           mapExamples,
		ValidArgsFunction: a.completeNodes,
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE: func(cmd *cobra.Command, args []string) error {
			names, client, namespace, err := a.reach()
			if err != nil {
				return err
			}
			seen, err := gcumap.Read(cmd.Context(), client, names, survey.Scope{Nodes: args, Namespace: namespace})
			if err != nil {
				return err
			}
			m := gcumap.Build(seen, gcumap.Options{RecordTimeout: a.recordTimeout, Now: a.now()})
			return o.write(a, m, func() *screen.Page {
				return gcumap.Draw(m, gcumap.DrawOptions{Names: names, Wide: o.wide(), ASCII: o.ascii})
			})
		},
	}
	f := cmd.Flags()
	o.flags(f, "wide", "json", "yaml")
	o.listed = "wide, json or yaml"
	f.Lookup("output").Usage = o.listed + "; without it a picture of 80 columns"
	f.BoolVar(&o.ascii, "ascii", false, "draw with ASCII characters only")
	return cmd
}
