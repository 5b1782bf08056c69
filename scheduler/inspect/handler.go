package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
)

// Path is where the old scheduler answered.
const Path = "/gcushare-scheduler/inspect"

// Handler answers from the ledger; pods add what a ledger does not keep. version is the text of
// GET /version.
func Handler(l *ledger.Ledger, pods corelisters.PodLister, version string) http.Handler {
	find := func(namespace, name string) *v1.Pod {
		pod, err := pods.Pods(namespace).Get(name)
		if err != nil {
			return nil // gone between the ledger's view and now
		}
		return pod
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) {
		nodes := slices.SortedFunc(l.View().Nodes(), func(a, b *ledger.Node) int { return strings.Compare(a.Name, b.Name) })
		out := []Node{}
		for _, n := range nodes {
			if n.Sharing {
				out = append(out, describe(n, find))
			}
		}
		write(w, http.StatusOK, out)
	})
	mux.HandleFunc("GET "+Path+"/{node}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("node")
		n := l.View().Node(name)
		switch {
		case n == nil:
			write(w, http.StatusNotFound, Node{Name: name, Devices: map[string]Device{}, Error: fmt.Sprintf("node %s is not known", name)})
		case !n.Sharing:
			write(w, http.StatusNotFound, Node{Name: name, Devices: map[string]Device{}, Error: fmt.Sprintf("node %s does not share its cards (label %s=true)", name, l.Names().SharingLabel)})
		default:
			write(w, http.StatusOK, describe(n, find))
		}
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, version)
	})
	return mux
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "    ")
	_ = enc.Encode(body) // the caller hung up
}
