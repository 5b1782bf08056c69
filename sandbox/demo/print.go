package demo

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// width is that of a plain terminal.
const width = 80

// podWidth leaves the other columns what they need.
const podWidth = 23

// print writes the table and the reasons.
func (d *demo) print() {
	fmt.Fprintf(d.Out, "\n%-*s %-11s %-17s %-17s %s\n", podWidth, "POD", "NODE", "RECORD", "CONTAINERS SEE", "STATUS")
	for _, r := range d.pods {
		cards := "?"
		if h, err := recordOf(r.pod, d.names); err == nil {
			cards = h.String()
		}
		node := r.pod.Spec.NodeName
		if node == "" {
			node = "-"
		}
		status := string(r.pod.Status.Phase)
		if r.wrong != "" {
			status += " !"
		}
		fmt.Fprintf(d.Out, "%-*s %-11s %-17s %-17s %s\n", podWidth, shorten(podName(r.pod), podWidth), shorten(node, 11), cards, d.seen(r.pod), status)
	}
	for _, r := range d.pods {
		reason, waits := waitingReason(r.pod)
		if !waits || r.pod.Spec.NodeName != "" {
			continue
		}
		fmt.Fprintf(d.Out, "\n%s waits:\n", podName(r.pod))
		indent(d.Out, reason)
	}
	fmt.Fprintln(d.Out)
}

// seen is the column of what containers see.
func (d *demo) seen(p *corev1.Pod) string {
	if !d.Agents {
		return "-"
	}
	h, err := seenBy(p, d.names)
	if err != nil {
		return "?"
	}
	return h.String()
}

// podName leaves out the namespace everybody is in.
func podName(p *corev1.Pod) string {
	if p.Namespace == metav1.NamespaceDefault {
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "~"
}

// indent writes text wrapped to the terminal.
func indent(out io.Writer, text string) {
	line := " "
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != " " {
			fmt.Fprintln(out, line)
			line = " "
		}
		line += " " + word
	}
	fmt.Fprintln(out, line)
}
