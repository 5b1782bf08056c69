package node_test

import "testing"

// TestPlainPod shows that the node is a node: a pod without cards runs, its log is read, a program is started in
// it, and it sees no card.
func TestPlainPod(t *testing.T) {
	e := newEnv(t)
	e.create(pod("plain", "", 0))
	p := e.running("plain")
	if p.Spec.NodeName != nodeName {
		t.Errorf("node %q, want %q", p.Spec.NodeName, nodeName)
	}
	r, err := parse([]byte(e.kubectl("logs", "plain")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "log", r, nil)
	if r.Tried[0].Open != "EPERM" {
		t.Errorf("a card made by number: %+v", r.Tried[0])
	}
	check(t, "exec", e.execSees("plain", "main"), nil)
}

// TestShares shows that a container sees the card of its record and nothing else, when it starts and when a
// program is started in it later.
func TestShares(t *testing.T) {
	e := newEnv(t)
	startProgram(t)
	tests := []struct {
		name, res string
		amount    int64
	}{
		{"memory", memory, 8}, {"slices", slice, 2}, {"card", whole, 1}, {"cards", whole, 2},
	}
	for _, tt := range tests {
		e.create(pod(tt.name, tt.res, tt.amount))
	}
	for _, tt := range tests {
		p := e.running(tt.name)
		cards := recorded(t, p, "main")
		check(t, tt.name, e.sees(tt.name, "main"), cards)
		check(t, tt.name+", exec", e.execSees(tt.name, "main"), cards)
	}
}
