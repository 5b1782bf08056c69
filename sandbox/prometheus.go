package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox/apply"
	"github.com/topscloud/topscloud/sandbox/process"
)

const (
	prometheusUser = "gcu-sandbox-prometheus"
	// scrapeInterval is short, so that a fault shows while one looks.
	scrapeInterval = "5s"
	// nodePrograms is the listener of what agent and discovery of all simulated nodes count.
	nodePrograms = "node-programs"
)

// prometheusRBAC lets Prometheus read what the API server and the scheduler tell about themselves.
const prometheusRBAC = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gcu-sandbox-prometheus}
rules:
- {nonResourceURLs: [/metrics, /metrics/resources], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gcu-sandbox-prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gcu-sandbox-prometheus}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: gcu-sandbox-prometheus}
`

// upPrometheus starts Prometheus, scraping all that the sandbox has.
func (s *Sandbox) upPrometheus(ctx context.Context) error {
	applier, err := apply.New(s.RESTConfig())
	if err != nil {
		return err
	}
	if _, err := applier.Apply(ctx, []byte(prometheusRBAC)); err != nil {
		return err
	}
	if err := s.serveNodePrograms(); err != nil {
		return err
	}
	return s.run(ctx, Prometheus, s.prometheusSpec)
}

// serveNodePrograms serves what the simulated nodes' programs count until the sandbox stops.
func (s *Sandbox) serveNodePrograms() error {
	listener, err := net.Listen("tcp", s.loopback(nodePrograms))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.nodes.Metrics(), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends by Close
	}()
	s.stopPrograms = func() { _ = server.Close(); <-done }
	return nil
}

func (s *Sandbox) loopback(listener string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port(listener)))
}

func (s *Sandbox) prometheusSpec() (process.Spec, error) {
	pair, err := s.authority.Client(prometheusUser)
	if err != nil {
		return process.Spec{}, err
	}
	cert, key, err := s.authority.Write(Prometheus, pair)
	if err != nil {
		return process.Spec{}, err
	}
	rules, err := manifests.Rules()
	if err != nil {
		return process.Spec{}, err
	}
	config, err := s.prometheusConfig(cert, key)
	if err != nil {
		return process.Spec{}, err
	}
	for name, text := range map[string][]byte{"gcu-rules.yaml": rules, "prometheus.yaml": config} {
		if err := os.WriteFile(s.layout.Config(name), text, 0o600); err != nil {
			return process.Spec{}, err
		}
	}
	return s.spec(Prometheus, s.options.Prometheus, []string{
		"--config.file=" + s.layout.Config("prometheus.yaml"), "--web.listen-address=" + s.loopback(Prometheus),
		"--storage.tsdb.path=" + filepath.Join(s.layout.Dir, Prometheus), "--storage.tsdb.retention.time=1d", "--log.level=warn",
	}), nil
}

// target is what Prometheus scrapes at one address.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// prometheusConfig is Prometheus' configuration. Jobs have the names that the rules go by.
func (s *Sandbox) prometheusConfig(cert, key string) ([]byte, error) {
	var exporters, programs []target
	for _, m := range s.options.Machines {
		if s.options.Exporters {
			exporters = append(exporters, target{Targets: []string{s.loopback(exporterListener + m.Name)}})
		}
		if s.options.Agents {
			programs = append(programs, target{Targets: []string{s.loopback(nodePrograms)},
				Labels: map[string]string{"__metrics_path__": "/" + m.Name, "instance": m.Name}})
		}
	}
	type job = map[string]any
	jobs := []job{
		{"job_name": "gcu-exporter", "static_configs": exporters},
		{"job_name": "gcu-device-plugin", "static_configs": programs},
	}
	secure := func(name, component, path string) {
		jobs = append(jobs, job{
			"job_name": name, "scheme": "https", "metrics_path": path,
			"tls_config":     job{"ca_file": s.authority.CAFile(), "cert_file": cert, "key_file": key},
			"static_configs": []target{{Targets: []string{s.loopback(component)}}},
		})
	}
	secure("kube-apiserver", APIServer, "/metrics")
	if s.options.GCUScheduler != "" {
		secure("gcu-scheduler", GCUScheduler, "/metrics")
		secure("gcu-scheduler-resources", GCUScheduler, "/metrics/resources")
	}
	return yaml.Marshal(job{
		"global":         job{"scrape_interval": scrapeInterval, "evaluation_interval": scrapeInterval},
		"rule_files":     []string{s.layout.Config("gcu-rules.yaml")},
		"scrape_configs": jobs,
	})
}

// executable returns the path of a program that can be started.
func executable(what, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", what, err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", errors.New(what + " " + path + ": not an executable file")
	}
	return filepath.Abs(path)
}
