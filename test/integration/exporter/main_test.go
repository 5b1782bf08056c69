// Package exporter_test runs the exporter's command beside the real node agent, the imitation of kubelet and a real
// API server, and reads its page as Prometheus does.
package exporter_test

import (
	"testing"

	"github.com/topscloud/topscloud/test/integration/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }
