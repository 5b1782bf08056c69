package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/topscloud/topscloud/sandbox/pki"
	"github.com/topscloud/topscloud/sandbox/process"
)

// readyTimeout bounds the start of one component on a busy machine.
const readyTimeout = 2 * time.Minute

// probe asks a component whether it is ready, with the administrator's certificate.
type probe struct{ client *http.Client }

func newProbe(a *pki.Authority) (*probe, error) {
	pair, err := a.Client(adminUser, "system:masters")
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CAPEM())
	return &probe{&http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}, DisableKeepAlives: true},
	}}, nil
}

// wait returns when the component's readiness path below url answers 200. It gives up when the process ends, ctx ends, or
// readyTimeout is over; the error then says what the last answer was and what the log ends with.
func (p *probe) wait(ctx context.Context, proc *process.Process, url string) error {
	url += readyPath(proc.Name())
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		answer := p.ask(ctx, url)
		if answer == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-proc.Done():
			return fmt.Errorf("%w before it was ready; its log ends with:\n%s", proc.Err(), proc.LogTail(12))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last answer: %s; its log ends with:\n%s", proc.Name(), context.Cause(ctx), answer, proc.LogTail(12))
		}
	}
}

// readyPath is /readyz, which the controller manager and Prometheus do not have.
func readyPath(name string) string {
	switch name {
	case ControllerManager:
		return "/healthz"
	case Prometheus:
		return "/-/ready"
	}
	return "/readyz"
}

// ask returns "" for ready, else the reason why not.
func (p *probe) ask(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 2048))
	if resp.StatusCode == http.StatusOK {
		return ""
	}
	return resp.Status + " " + strings.TrimSpace(string(body))
}
