package simnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/exporter/command"
)

// exporter is a node's gcu-exporter: the command itself with the flags a node would give it, in this process.
type exporter struct {
	address string
	command *cobra.Command
	// ended is closed when run has returned, with err.
	ended chan struct{}
	err   error
}

// Cards are asked more often than on a real node, so that a fault can be watched. With 200 nodes of eight cards that
// is 800 readings of made-up cards a second, some thousandths of a processor.
const (
	sampleInterval = 2 * time.Second
	sampleDeadline = time.Second
)

func (r *realHost) makeExporter(n *node) error {
	if n.manager.options.Exporter == nil {
		return nil
	}
	address, err := n.manager.options.Exporter(n.Name)
	if err != nil {
		return err
	}
	r.exporter = newExporter(address,
		"--node-name="+n.Name, "--host-root="+r.hostRoot(),
		"--device-source="+source.Sim, "--machine="+n.Preset, "--control-file="+r.control(),
		"--book-socket="+r.bookSocket(), "--pod-resources-socket="+r.kubelet.PodResourcesSocket())
	return nil
}

func newExporter(address string, flags ...string) *exporter {
	e := &exporter{address: address, ended: make(chan struct{})}
	// Flags are all it goes by: the environment is that of the sandbox, not of the node.
	e.command = command.New(func(string) string { return "" })
	e.command.SetArgs(append([]string{
		"--web.listen-address=" + address,
		"--web.disable-exporter-metrics", // they would be those of the sandbox's process
		"--sample-interval=" + sampleInterval.String(), "--sample-deadline=" + sampleDeadline.String(),
	}, flags...))
	// What ends it is its error; what it notes meanwhile, such as an agent that is not up yet, its metrics say.
	e.command.SetOut(io.Discard)
	e.command.SetErr(io.Discard)
	return e
}

// run serves until ctx ends.
func (e *exporter) run(ctx context.Context) error {
	defer close(e.ended)
	e.err = e.command.ExecuteContext(ctx)
	return e.err
}

// wait returns when the exporter has looked at its cards.
func (e *exporter) wait(ctx context.Context) error {
	// Whoever has taken the port may not answer at all.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx, client, "http://"+e.address+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-e.ended:
			if e.err == nil {
				return errors.New("the exporter was stopped before it was ready")
			}
			return fmt.Errorf("exporter at %s: %w", e.address, e.err)
		default:
		}
		select {
		case <-tick.C:
		case <-e.ended: // the next turn says why
		case <-ctx.Done():
			return fmt.Errorf("exporter at %s is not ready: %w; its last answer: %w", e.address, context.Cause(ctx), err)
		}
	}
}

func ready(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
