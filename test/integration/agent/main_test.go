// Package agent_test runs the node agent against a real API server, with the rights it ships with, and the
// imitation of kubelet's device manager. Each test has a node and a namespace of its own.
package agent_test

import (
	"testing"

	"github.com/topscloud/topscloud/test/integration/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }
