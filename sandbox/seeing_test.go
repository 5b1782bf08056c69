package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/sandbox"
)

func metrics(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// series returns the values of a metric's series that have all the given labels, as written.
func series(text, name string, labels ...string) []string {
	var out []string
lines:
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue lines
			}
		}
		out = append(out, line[strings.LastIndexByte(line, ' ')+1:])
	}
	return out
}

// labelWriter returns who wrote a label of a node, by the API server's notes.
func labelWriter(n *corev1.Node, key string) string {
	for _, f := range n.ManagedFields {
		if strings.Contains(string(f.FieldsV1.Raw), fmt.Sprintf("%q:", "f:"+key)) {
			return f.Manager
		}
	}
	return ""
}

// TestNodesAreSeen looks at what feature discovery and the exporter of each node say, and how they follow the node's
// faults.
func TestNodesAreSeen(t *testing.T) {
	dir := t.TempDir()
	options := sandbox.Options{DataDir: dir, Machines: machines(t, "s60x8", "t10x8"), Agents: true, Exporters: true, Log: testLog{t}}
	sb, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Stop()
	client, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	state, err := sb.Layout().ReadState()
	if err != nil {
		t.Fatal(err)
	}
	addresses := state.Exporters()
	if len(addresses) != 2 {
		t.Fatalf("exporters %v: want one for each node", addresses)
	}
	node := func(ctx context.Context, name string) *corev1.Node {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Start returns when labels and exporters are there, so nothing is waited for.
	for name, want := range map[string]map[string]string{
		"s60x8-0": {"enflame.com/gcu.model": "S60", "enflame.com/gcu.memory": "41984", "enflame.com/gcu.count": "8", "enflame.com/gpu.product": "scorpio"},
		"t10x8-0": {"enflame.com/gcu.model": "T10", "enflame.com/gcu.memory": "16384", "enflame.com/gcu.count": "8"},
	} {
		n := node(t.Context(), name)
		for key, value := range want {
			if n.Labels[key] != value || labelWriter(n, key) != "gcu-feature-discovery" {
				t.Errorf("node %s: label %s is %q, written by %q: want %q by feature discovery", name, key, n.Labels[key], labelWriter(n, key), value)
			}
		}
		if by := labelWriter(n, "enflame.com/gcushare"); by == "gcu-feature-discovery" || by == "" {
			t.Errorf("node %s: label gcushare was written by %q", name, by)
		}
		text, err := metrics(t.Context(), addresses[name])
		if err != nil {
			t.Fatal(err)
		}
		if got := series(text, "enflame_gcu_count", fmt.Sprintf("host=%q", name)); fmt.Sprint(got) != "[8]" {
			t.Errorf("exporter of %s: enflame_gcu_count %v, want 8 of that node", name, got)
		}
	}
	if err := sb.Nodes().SetFault(t.Context(), "s60x8-0", "card-fail=3,card-gone=5,card-hang=1"); err != nil {
		t.Fatal(err)
	}
	follows := func(what, url string, want map[string]string) {
		eventually(t, what, func(ctx context.Context) (bool, error) {
			text, err := metrics(ctx, url)
			if err != nil {
				return false, err
			}
			for labels, value := range want {
				name, minor, _ := strings.Cut(labels, " ")
				if minor != "" {
					minor = fmt.Sprintf("minor_number=%q", minor)
				}
				if got := series(text, name, minor); fmt.Sprint(got) != value {
					return false, nil
				}
			}
			return true, nil
		})
	}
	count := func(want string) {
		eventually(t, "label gcu.count is "+want, func(ctx context.Context) (bool, error) {
			return node(ctx, "s60x8-0").Labels["enflame.com/gcu.count"] == want, nil
		})
	}
	follows("the exporter tells the faults", addresses["s60x8-0"], map[string]string{
		"enflame_gcu_count": "[7]", "enflame_gcu_health 3": "[1]", "enflame_gcu_health 4": "[2]",
		"enflame_gcu_up 5": "[]", "enflame_gcu_up 1": "[0]", "enflame_gcu_up 3": "[1]",
	})
	count("7")
	follows("the other node is as it was", addresses["t10x8-0"], map[string]string{
		"enflame_gcu_count": "[8]", "enflame_gcu_health 3": "[2]", "enflame_gcu_up 1": "[1]",
	})
	if err := sb.Nodes().SetFault(t.Context(), "s60x8-0", ""); err != nil {
		t.Fatal(err)
	}
	follows("all is well again", addresses["s60x8-0"], map[string]string{
		"enflame_gcu_count": "[8]", "enflame_gcu_health 3": "[2]", "enflame_gcu_up 5": "[1]", "enflame_gcu_up 1": "[1]",
	})
	count("8")

	// A node that comes later gets a port of its own, which the state knows.
	if err := sb.Nodes().Add(t.Context(), machines(t, "t20x4")[0]); err != nil {
		t.Fatal(err)
	}
	if err := sb.Nodes().WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err = sb.Layout().ReadState(); err != nil {
		t.Fatal(err)
	}
	follows("the exporter of a node that was added", state.Exporters()["t20x4-0"], map[string]string{"enflame_gcu_count": "[4]"})

	sb.Stop()
	if _, err := metrics(t.Context(), addresses["t10x8-0"]); err == nil {
		t.Error("an exporter outlived its sandbox")
	}
}

func TestExportersNeedAgents(t *testing.T) {
	_, err := sandbox.Start(t.Context(), sandbox.Options{DataDir: t.TempDir(), Exporters: true})
	if err == nil || !strings.Contains(err.Error(), "want agents too") {
		t.Errorf("got %v", err)
	}
}
