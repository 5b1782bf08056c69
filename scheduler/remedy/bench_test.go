package remedy_test

import (
	"fmt"
	"testing"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/remedy"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

// The worst case: a whole machine is wanted, and each of 400 machines has 24 holders. All sets of a few
// holders are tried in vain before the full ones are thinned out. Normal is some seconds; a person waits
// for it.
func BenchmarkFindOnBusyCluster(b *testing.B) {
	c := &cluster{}
	for i := range 400 {
		h := surveytest.NewHost("s60x8", fmt.Sprintf("n%03d", i))
		c.hosts = append(c.hosts, h)
		for k := range 24 {
			c.pods = append(c.pods, h.Pod("ns", fmt.Sprintf("p%d-%d", i, k), surveytest.Memory("main", 12, k%8)))
		}
	}
	pod := surveytest.Waiting("ns", "asked", surveytest.Work{Name: "main", Resource: names.ResourceWhole, Amount: 8})
	req, err := share.Parse(names, pod, share.Defaults{})
	if err != nil {
		b.Fatal(err)
	}
	nodes := c.nodes()
	for b.Loop() {
		changes := remedy.Find(nodes, req)
		if len(changes) != 1 || changes[0].Kind != remedy.Finish || len(changes[0].Pods) != 24 || changes[0].Smallest {
			b.Fatalf("%+v", changes)
		}
	}
}
