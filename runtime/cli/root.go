package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/settings"
	"github.com/topscloud/topscloud/runtime/target"
	"github.com/topscloud/topscloud/runtime/visible"
)

// Version is the version of what --json prints.
const Version = "v1"

// New returns the command. getenv reads the environment; stat looks at device nodes, nil for the host's.
func New(getenv func(string) string, stat func(string) (host.Node, error)) *cobra.Command {
	root := &cobra.Command{
		Use:           "enflame-container-cli",
		Short:         "What containers with GCU cards are given on this host",
		Version:       app.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	t := target.New(root.PersistentFlags(), getenv, stat)
	root.AddCommand(newInfo(t), newList(t), newConfigure(t))
	return root
}

// open opens the host and its settings.
func open(t *target.Target) (*host.Host, settings.Runtime, error) {
	h, err := t.Host()
	if err != nil {
		return nil, settings.Runtime{}, err
	}
	s, err := settings.Read(t.Root)
	return h, s.Runtime, err
}

// Node is a device node.
type Node struct {
	Path  string `json:"path"`
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

// Mount is a file of the host and its place in a container whose image has no link there.
type Mount struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

func nodeOf(n host.Node) Node { return Node{Path: n.Path, Major: n.Major, Minor: n.Minor} }

// mounts returns what a container with cards gets besides nodes.
func mounts(h *host.Host, s settings.Runtime) []Mount {
	out := []Mount{}
	for _, u := range h.Tools() {
		out = append(out, Mount{Source: u.Source, Destination: path.Join(s.ToolPath, u.Name)})
	}
	for _, u := range h.Libraries() {
		out = append(out, Mount{Source: u.Source, Destination: path.Join(s.LibraryPath, u.Name)})
	}
	return out
}

// selectionOf reads a --device flag.
func selectionOf(value string) (visible.Selection, error) {
	s, err := visible.Parse(value)
	if err != nil {
		return s, fmt.Errorf("--device: %w", err)
	}
	return s, nil
}

const deviceHelp = `cards: "all", "none" (tools and libraries only) or numbers such as 0,1`

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// complain prints what could not be looked at.
func complain(out io.Writer, err error) {
	if err != nil {
		fmt.Fprintf(out, "left out: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nleft out: "))
	}
}
