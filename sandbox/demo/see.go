package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// see prints which labels pods chose their nodes by and who wrote them, and where the exporters are.
func (d *demo) see(ctx context.Context) []error {
	if !d.Agents {
		return nil
	}
	nodes, err := d.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return []error{err}
	}
	labels := labelsOf(nodes.Items, selected(d.pods, d.names))
	fmt.Fprintf(d.Out, "Labels that the examples choose nodes by, with their writer on the Node:\n\n")
	fmt.Fprintf(d.Out, "%-13s %-26s %-12s %s\n", "NODE", "LABEL", "VALUE", "WRITTEN BY")
	for _, l := range labels {
		fmt.Fprintf(d.Out, "%-13s %-26s %-12s %s\n", shorten(l.node, 13), l.key, shorten(l.value, 12), l.by)
	}
	fmt.Fprintln(d.Out)
	errs := judgeLabels(labels)
	if len(labels) == 0 {
		errs = append(errs, fmt.Errorf("no node has one of the labels that the examples choose nodes by"))
	}
	return append(errs, d.exporters(ctx)...)
}

// exporters prints the addresses of the exporters and how many holders of cards each names, which has to be as many
// as there are in the records of its node's pods.
func (d *demo) exporters(ctx context.Context) []error {
	if len(d.Exporters) == 0 {
		return nil
	}
	var errs []error
	var example string
	fmt.Fprintf(d.Out, "%-13s %-34s %s\n", "NODE", "EXPORTER", "HOLDERS OF CARDS IT NAMES")
	for _, node := range slices.Sorted(maps.Keys(d.Exporters)) {
		url := d.Exporters[node]
		want := d.holders(node)
		got, err := d.named(ctx, url, want)
		fmt.Fprintf(d.Out, "%-13s %-34s %d\n", shorten(node, 13), url, got)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("exporter of %s: %w", node, err))
		case got != want:
			errs = append(errs, fmt.Errorf("exporter of %s names %d holders of cards: the records have %d", node, got, want))
		}
		if example == "" && got > 0 {
			example = url
		}
	}
	if example != "" {
		fmt.Fprintf(d.Out, "\n  curl -s %s | grep allocation_bytes\n", example)
	}
	fmt.Fprintln(d.Out)
	return errs
}

// holders counts what containers of a node's running pods hold, one for each card.
func (d *demo) holders(node string) int {
	n := 0
	for _, r := range d.pods {
		if r.pod.Spec.NodeName != node {
			continue
		}
		if h, err := recordOf(r.pod, d.names); err == nil {
			n += len(h.whole)
			for _, parts := range h.shares {
				n += len(parts)
			}
		}
	}
	return n
}

// named counts the holders that an exporter names. It learns of a pod a moment after the pod runs, so it is asked
// until it names as many as wanted, or patience ends.
func (d *demo) named(ctx context.Context, url string, want int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := allocations(ctx, url)
		if err == nil && got == want {
			return got, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return got, err
		}
	}
}

func allocations(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"?collect[]=allocation", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", answer.Status, text)
	}
	return strings.Count(string(text), "\nenflame_gcu_allocation_bytes{"), nil
}
