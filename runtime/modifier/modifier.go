package modifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/settings"
	"github.com/topscloud/topscloud/runtime/visible"
)

// Modifier edits specs for one host.
type Modifier struct {
	Host     *host.Host
	Settings settings.Runtime
	// Preview leaves the host as it is: links in /dev/char that are missing are not made.
	Preview bool
}

// Outcome is what was decided about a container.
type Outcome struct {
	// Changed says whether the spec is another one now.
	Changed bool
	// Asked is the value of ENFLAME_VISIBLE_DEVICES, Reason why it counted or not.
	Asked, Reason string
	// Cards are the minors of the cards that were added.
	Cards []int
	// LeftOut says which cards of the host could not be looked at; they were not asked for by number.
	LeftOut error
}

// Apply edits the spec of the container in a bundle. Where nothing is to be changed it returns the same
// text.
func (m *Modifier) Apply(ctx context.Context, bundle string, text []byte) ([]byte, Outcome, error) {
	var v view
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, Outcome{}, fmt.Errorf("read spec: %w", err)
	}
	asked, err := v.env(contract.EnvVisibleDevices)
	if err != nil {
		return nil, Outcome{}, err
	}
	out := Outcome{Asked: asked}
	if asked == "" || asked == "void" {
		out.Reason = "the container asks for nothing"
		return text, out, nil
	}
	names, err := contract.NewNames(m.Host.Files.Resource)
	if err != nil {
		return nil, out, err
	}
	if !v.privileged() && v.given(names, m.Host.Files.Card) {
		out.Reason = "the engine has given the cards already"
		return text, out, nil
	}
	permitted, reason := v.permitted(m.Settings)
	out.Reason = reason
	if !permitted {
		return text, out, nil
	}
	selection, err := visible.Parse(asked)
	if err != nil {
		return nil, out, err
	}
	return m.give(ctx, bundle, text, &v, selection, out)
}

// ErrGiven means that the spec of a container has cards already.
var ErrGiven = errors.New("the spec has cards already")

// Give edits the spec of the container in a bundle as if it had asked for a selection and its asking
// counted: the caller is whoever makes the container. What its environment asks for does not matter.
func (m *Modifier) Give(ctx context.Context, bundle string, text []byte, selection visible.Selection) ([]byte, Outcome, error) {
	var v view
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, Outcome{}, fmt.Errorf("read spec: %w", err)
	}
	out := Outcome{Asked: selection.String(), Reason: "the caller says so"}
	if selection.Void() {
		return text, out, nil
	}
	names, err := contract.NewNames(m.Host.Files.Resource)
	if err != nil {
		return nil, out, err
	}
	if v.given(names, m.Host.Files.Card) {
		return nil, out, ErrGiven
	}
	return m.give(ctx, bundle, text, &v, selection, out)
}

// give edits the spec for a selection that counts.
func (m *Modifier) give(ctx context.Context, bundle string, text []byte, v *view, selection visible.Selection, out Outcome) ([]byte, Outcome, error) {
	root, err := rootOf(bundle, v)
	if err != nil {
		return nil, out, err
	}
	var e edits
	if out.Cards, out.LeftOut, err = m.addCards(ctx, root, v, selection, &e); err != nil {
		return nil, out, err
	}
	if err := m.addUtilities(root, v, &e); err != nil {
		return nil, out, err
	}
	spec := object{}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, out, fmt.Errorf("read spec: %w", err)
	}
	if err := e.apply(spec); err != nil {
		return nil, out, fmt.Errorf("edit spec: %w", err)
	}
	edited, err := json.Marshal(spec)
	out.Changed = err == nil
	return edited, out, err
}

// rootOf returns the folder of the container's root file system. An engine names it by its whole path, or
// by one inside the bundle; a relative path that climbs out of the bundle is nobody's.
func rootOf(bundle string, v *view) (string, error) {
	switch {
	case filepath.IsAbs(v.Root.Path):
		return v.Root.Path, nil
	case v.Root.Path != "" && !filepath.IsLocal(v.Root.Path):
		return "", fmt.Errorf("root %s leads out of the bundle: %w", v.Root.Path, host.ErrEscape)
	}
	return filepath.Join(bundle, v.Root.Path), nil
}

// addCards adds the cards that are asked for, and what every container with cards has.
func (m *Modifier) addCards(ctx context.Context, root string, v *view, s visible.Selection, e *edits) (minors []int, leftOut, err error) {
	if s.String() == "none" {
		return nil, nil, nil
	}
	cards, leftOut := m.Host.List(ctx)
	present := make([]int, len(cards))
	for i, card := range cards {
		present[i] = card.Device.Minor
	}
	minors, err = s.Pick(present)
	if err != nil {
		return nil, leftOut, errors.Join(err, leftOut)
	}
	nodes, err := m.Host.Control()
	if err != nil {
		return nil, leftOut, err
	}
	for _, minor := range minors {
		for _, card := range cards {
			if card.Device.Minor == minor {
				nodes = append(nodes, card.Node)
			}
		}
	}
	// The engine makes the nodes in its own /dev. Where the image has a link in its place, a node would be
	// made where the link leads.
	if at, err := host.Resolve(root, "/dev"); err != nil || at != "/dev" {
		return nil, leftOut, fmt.Errorf("/dev of the root file system is a link: %w", host.ErrEscape)
	}
	for _, node := range nodes {
		if err := addNode(v, node, e); err != nil {
			return nil, leftOut, err
		}
		if m.Preview {
			continue
		}
		if err := m.Host.MakeCharLink(node); err != nil {
			return nil, leftOut, err
		}
	}
	return minors, leftOut, nil
}

func addNode(v *view, node host.Node, e *edits) error {
	major, minor := int64(node.Major), int64(node.Minor)
	e.rules = append(e.rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Minor: &minor, Access: "rwm"})
	for _, device := range v.Linux.Devices {
		if device.Path != node.Path {
			continue
		}
		if device.Type != "c" || device.Major != major || device.Minor != minor {
			return fmt.Errorf("the container has another device at %s", node.Path)
		}
		return nil // there already
	}
	mode := node.Mode
	uid, gid := node.UID, node.GID
	e.devices = append(e.devices, specs.LinuxDevice{Path: node.Path, Type: "c", Major: major, Minor: minor, FileMode: &mode, UID: &uid, GID: &gid})
	return nil
}

// addUtilities adds the vendor's tools and libraries, as far as the host has them.
func (m *Modifier) addUtilities(root string, v *view, e *edits) error {
	for _, tool := range m.Host.Tools() {
		if err := addMount(root, v, m.Settings.ToolPath, tool, e); err != nil {
			return err
		}
	}
	for _, library := range m.Host.Libraries() {
		if err := addMount(root, v, m.Settings.LibraryPath, library, e); err != nil {
			return err
		}
		e.libraryPath = m.Settings.LibraryPath
	}
	return nil
}

func addMount(root string, v *view, folder string, u host.Utility, e *edits) error {
	path := filepath.Join(folder, u.Name)
	at, err := host.Resolve(root, path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(e.mounts, func(m specs.Mount) bool { return m.Destination == at }) {
		return nil // the image has links for the other names of a library
	}
	for _, mount := range v.Mounts {
		destination := filepath.Clean(mount.Destination)
		if destination == at || destination == path {
			return nil // the user has put a file of their own there
		}
		for _, ours := range []string{at, path} {
			if strings.HasPrefix(ours, strings.TrimSuffix(destination, "/")+"/") {
				return fmt.Errorf("%s lies in the volume at %s of the container: change library-path or tool-path", ours, destination)
			}
		}
	}
	e.mounts = append(e.mounts, specs.Mount{Destination: at, Type: "bind", Source: u.Source, Options: []string{"bind", "ro", "nosuid", "nodev", "rprivate"}})
	return nil
}
