package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// recorder is a device plugin that does nothing but note what it is asked. IDs are noted as letters, one for each
// set that was allocated, since kubelet chooses among equal ones as it likes.
type recorder struct {
	pluginapi.UnimplementedDevicePluginServer
	resource, dir string
	prefers       bool
	server        *grpc.Server
	served        chan struct{}

	// mu guards the fields below.
	mu       sync.Mutex
	trace    []string
	sets     [][]string
	devices  []*pluginapi.Device
	changed  chan struct{}
	stopping chan struct{}
	// refuseAllocate and refuseStart are how often to answer with an error.
	refuseAllocate, refuseStart int
}

func newRecorder(resource, dir string, prefers bool) *recorder {
	r := &recorder{resource: resource, dir: dir, prefers: prefers, changed: make(chan struct{})}
	for i := range 8 {
		r.devices = append(r.devices, &pluginapi.Device{ID: fmt.Sprintf("d%d", i), Health: pluginapi.Healthy})
	}
	return r
}

// serve opens a new socket and registers it.
func (r *recorder) serve(t *testing.T, name string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(r.dir, name+".sock"))
	if err != nil {
		t.Fatal(err)
	}
	server, served := grpc.NewServer(), make(chan struct{})
	pluginapi.RegisterDevicePluginServer(server, r)
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with Stop
	}()
	r.mu.Lock()
	r.server, r.served, r.stopping = server, served, make(chan struct{})
	r.mu.Unlock()
	conn, err := grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(r.dir, "kubelet.sock"))
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	api := pluginapi.NewRegistrationClient(conn)
	err = poll(ctx, func(ctx context.Context) error {
		_, err := api.Register(ctx, &pluginapi.RegisterRequest{
			Version: pluginapi.Version, Endpoint: name + ".sock", ResourceName: r.resource, Options: r.options(),
		})
		if status.Code(err) != codes.Unavailable && err != nil {
			t.Fatalf("register: %v", err) // kubelet has heard it; a second try on the same socket would be another story
		}
		return err
	})
	if err != nil {
		t.Fatalf("register: %v", err)
	}
}

// stop ends the plugin.
func (r *recorder) stop() {
	r.mu.Lock()
	server, served, stopping := r.server, r.served, r.stopping
	r.server = nil
	r.mu.Unlock()
	if server == nil {
		return
	}
	close(stopping)
	server.Stop()
	<-served
}

func (r *recorder) options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: r.prefers}
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(format, args...)
}

// noteLocked drops repetitions: how often kubelet tries again is a matter of time.
func (r *recorder) noteLocked(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if n := len(r.trace); n == 0 || r.trace[n-1] != line {
		r.trace = append(r.trace, line)
	}
}

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.trace)
}

// setHealth changes the health of the devices that were allocated, or of the others.
func (r *recorder) setHealth(health string, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range r.devices {
		if slices.ContainsFunc(r.sets, func(set []string) bool { return slices.Contains(set, d.ID) }) == held {
			r.devices[i] = &pluginapi.Device{ID: d.ID, Health: health}
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	r.note("options")
	return r.options(), nil
}

func (r *recorder) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	r.note("list")
	for {
		r.mu.Lock()
		list, changed, stopping := slices.Clone(r.devices), r.changed, r.stopping
		r.mu.Unlock()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stopping:
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (r *recorder) GetPreferredAllocation(_ context.Context, in *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	out := &pluginapi.PreferredAllocationResponse{}
	for _, c := range in.ContainerRequests {
		r.note("prefer %d of %d, %d included", c.AllocationSize, len(c.AvailableDeviceIDs), len(c.MustIncludeDeviceIDs))
		ids := slices.Clone(c.AvailableDeviceIDs)
		slices.Sort(ids)
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(c.MustIncludeDeviceIDs, id) })
		ids = append(slices.Clone(c.MustIncludeDeviceIDs), ids...)
		out.ContainerResponses = append(out.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids[:c.AllocationSize]})
	}
	return out, nil
}

func (r *recorder) Allocate(_ context.Context, in *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &pluginapi.AllocateResponse{}
	for _, c := range in.ContainerRequests {
		ids := slices.Sorted(slices.Values(c.DevicesIds))
		if r.refuseAllocate > 0 {
			r.refuseAllocate--
			r.noteLocked("allocate %d: refused", len(ids))
			return nil, errors.New("refused for the test")
		}
		shared := ""
		for i, set := range r.sets {
			n := 0
			for _, id := range ids {
				if slices.Contains(set, id) {
					n++
				}
			}
			if n > 0 {
				shared += fmt.Sprintf(", %d of %s", n, letter(i))
			}
		}
		r.sets = append(r.sets, ids)
		r.noteLocked("allocate %s: %d%s", letter(len(r.sets)-1), len(ids), shared)
		out.ContainerResponses = append(out.ContainerResponses, &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"ENFLAME_SET": letter(len(r.sets) - 1)}})
	}
	return out, nil
}

// PreStartContainer notes every set that has just these IDs: an init container and a later one may share it.
func (r *recorder) PreStartContainer(_ context.Context, in *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := slices.Sorted(slices.Values(in.DevicesIds))
	which := ""
	for i, set := range r.sets {
		if slices.Equal(set, ids) {
			which += letter(i)
		}
	}
	if r.refuseStart > 0 {
		r.refuseStart--
		r.noteLocked("start %s: refused", which)
		return nil, errors.New("refused for the test")
	}
	r.noteLocked("start %s: %d", which, len(ids))
	return &pluginapi.PreStartContainerResponse{}, nil
}

func letter(i int) string { return string(rune('A' + i)) }

// forget lets a set's IDs be anybody's again, when its pod is gone.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.sets {
		r.sets[i] = nil
	}
}
