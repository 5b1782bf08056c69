package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// nriPlugin looks at each container that an engine with NRI is about to make. It is a second look, not the way
// by which containers get cards: an engine goes on without a plugin that is not connected.
type nriPlugin struct{ agent *Agent }

var _ stub.CreateContainerInterface = (*nriPlugin)(nil)

// CreateContainer implements stub.CreateContainerInterface. An error makes the creation fail; kubelet tries again
// and shows it.
func (p *nriPlugin) CreateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	m := made{pod: types.UID(pod.GetUid()), annotations: pod.GetAnnotations(), container: c.GetName(), env: c.GetEnv()}
	for _, d := range c.GetLinux().GetDevices() {
		m.devices = append(m.devices, node{path: d.GetPath(), major: d.GetMajor(), minor: d.GetMinor()})
	}
	return nil, nil, p.agent.verifyNamed(m, pod.GetNamespace(), pod.GetName())
}

// nriAgain is how long after the engine went, or was not there, it is looked for again.
const nriAgain = 5 * time.Second

// watchNRI keeps the plugin connected for as long as the engine has NRI on.
func (a *Agent) watchNRI(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := os.Stat(a.o.NRISocket); err == nil {
			if err := a.runNRI(ctx); err != nil && ctx.Err() == nil {
				a.logger.V(2).Info("Not connected to the engine's NRI", "err", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(nriAgain):
		}
	}
}

func (a *Agent) runNRI(ctx context.Context) error {
	closed := make(chan struct{}, 1)
	s, err := stub.New(&nriPlugin{a}, stub.WithPluginName("gcu-device-plugin"), stub.WithPluginIdx("90"),
		stub.WithSocketPath(a.o.NRISocket), stub.WithLogger(nriLog{a.logger}),
		// The library would end the process otherwise.
		stub.WithOnClose(func() {
			select {
			case closed <- struct{}{}:
			default:
			}
		}))
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	defer s.Stop()
	a.logger.V(2).Info("Connected to the engine's NRI: each container's cards are compared with its record")
	a.o.Metrics.nri.Set(1)
	defer a.o.Metrics.nri.Set(0)
	select {
	case <-ctx.Done():
	case <-closed:
	}
	return nil
}

// nriLog puts the library's messages into our log.
type nriLog struct{ logger klog.Logger }

func (l nriLog) Debugf(_ context.Context, format string, args ...any) { l.put(5, format, args) }
func (l nriLog) Infof(_ context.Context, format string, args ...any)  { l.put(4, format, args) }
func (l nriLog) Warnf(_ context.Context, format string, args ...any)  { l.put(2, format, args) }
func (l nriLog) Errorf(_ context.Context, format string, args ...any) { l.put(1, format, args) }

func (l nriLog) put(level int, format string, args []any) {
	l.logger.V(level).Info("NRI: " + fmt.Sprintf(format, args...))
}
