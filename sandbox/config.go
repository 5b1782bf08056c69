package sandbox

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/manifests"
)

// minimalSchedulerConfig serves while the release ships no configuration of its own.
const minimalSchedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: gcu-scheduler
  resourceNamespace: kube-system
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
profiles:
- schedulerName: gcu-scheduler
- schedulerName: gcushare-scheduler
`

// writeSchedulerConfig renders gcu-scheduler's configuration for this sandbox and returns its path.
// Only what a deployment has to set itself is changed: how to reach the API server.
func (s *Sandbox) writeSchedulerConfig() (string, error) {
	text := s.options.GCUSchedulerConfig
	if len(text) == 0 {
		text = []byte(minimalSchedulerConfig)
		if shipped, ok := manifests.SchedulerConfig(); ok {
			text = shipped
		}
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("gcu-scheduler configuration: %w", err)
	}
	conn, _ := config["clientConnection"].(map[string]any)
	if conn == nil {
		conn = map[string]any{}
	}
	conn["kubeconfig"] = s.layout.Config(GCUScheduler + ".kubeconfig")
	config["clientConnection"] = conn
	b, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("gcu-scheduler configuration: %w", err)
	}
	path := s.layout.Config("gcu-scheduler-config.yaml")
	return path, os.WriteFile(path, b, 0o600)
}
