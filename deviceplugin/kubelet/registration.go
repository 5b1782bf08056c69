package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// registration is one socket, known to one kubelet.
type registration struct {
	pluginapi.UnimplementedDevicePluginServer
	server  *Server
	logger  klog.Logger
	socket  *socket
	grpc    *grpc.Server
	kubelet fileID

	since   time.Time // when kubelet accepted it
	streams atomic.Int32
	opened  atomic.Bool   // there was a stream
	calls   sync.RWMutex  // read-locked by running calls, but for the streams
	done    chan struct{} // closed to end the streams
	served  chan struct{} // closed when the socket is no longer served
}

var _ pluginapi.DevicePluginServer = (*registration)(nil)

// register makes a socket, serves it and tells kubelet of it.
func (s *Server) register(ctx context.Context, kubelet string, id fileID) (*registration, error) {
	sock, err := listen(s.nextPath())
	if err != nil {
		return nil, err
	}
	r := &registration{
		server: s, logger: klog.FromContext(ctx), socket: sock, kubelet: id,
		done: make(chan struct{}), served: make(chan struct{}),
	}
	r.grpc = grpc.NewServer(grpc.WaitForHandlers(true), grpc.StatsHandler(callCounter{r}))
	pluginapi.RegisterDevicePluginServer(r.grpc, r)
	go func() {
		defer close(r.served)
		if err := r.grpc.Serve(sock); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			r.logger.Error(err, "Serving kubelet ended", "socket", sock.path)
		}
	}()
	if err := r.announce(ctx, kubelet); err != nil {
		r.stop()
		return nil, err
	}
	r.since = time.Now()
	return r, nil
}

func (r *registration) announce(ctx context.Context, kubelet string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := Dial(kubelet)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     filepath.Base(r.socket.path),
		ResourceName: r.server.o.Resource,
		Options:      r.options(),
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", r.server.o.Resource, err)
	}
	return nil
}

// Dial returns a client of the socket at path. It connects when it is first used, and again after the other side was
// away.
func Dial(path string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return conn, nil
}

// stop lets running calls finish, ends the streams and removes the socket. The streams come after the
// calls: kubelet closes the connection when its stream ends.
func (r *registration) stop() {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.calls.Lock()
		r.calls.Unlock() //nolint:staticcheck // to have waited for the running calls is all
	}()
	timer := time.AfterFunc(drainTimeout, r.grpc.Stop)
	defer timer.Stop()
	select {
	case <-finished:
	case <-r.served: // the drain took too long
	}
	close(r.done)
	r.grpc.GracefulStop()
	<-r.served
	<-finished
	if err := r.socket.remove(); err != nil {
		r.logger.Error(err, "A socket stays behind")
	}
}

func (r *registration) streaming() bool { return r.streams.Load() > 0 }

// pending says that kubelet may still be about to open its first stream.
func (r *registration) pending() bool {
	return !r.opened.Load() && time.Since(r.since) < openTimeout
}

func (r *registration) options() *pluginapi.DevicePluginOptions {
	_, prefers := r.server.o.Plugin.(Preferrer)
	return &pluginapi.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: prefers}
}

// GetDevicePluginOptions is kubelet's question right after a registration.
func (r *registration) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return r.options(), nil
}

// ListAndWatch sends the list, and again whenever it changed.
func (r *registration) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	o := &r.server.o
	r.streams.Add(1)
	r.opened.Store(true)
	o.Observe(Event{Kind: StreamOpened, Resource: o.Resource})
	defer func() {
		r.streams.Add(-1)
		o.Observe(Event{Kind: StreamClosed, Resource: o.Resource})
		select {
		case <-r.done:
		default:
			r.server.streamClosed()
		}
	}()
	var last []Device
	for first := true; ; first = false {
		list, changed := o.Devices.Get()
		// A list may change and change back while a slow kubelet takes the one before.
		if first || !slices.Equal(list, last) {
			if err := stream.Send(response(list)); err != nil {
				return err
			}
			last = list
			o.Observe(sent(o.Resource, list))
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		case <-r.done:
			return nil
		}
	}
}

func sent(resource string, list []Device) Event {
	e := Event{Kind: DevicesSent, Resource: resource, Total: len(list)}
	for _, d := range list {
		if d.Healthy {
			e.Healthy++
		}
	}
	return e
}

// Allocate answers for the containers of a request; kubelet sends one.
func (r *registration) Allocate(ctx context.Context, in *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	out := &pluginapi.AllocateResponse{}
	for _, c := range in.ContainerRequests {
		answer, err := r.server.o.Plugin.Allocate(klog.NewContext(ctx, r.logger), c.DevicesIds)
		if err != nil {
			r.logger.Error(err, "Allocation refused", "devices", len(c.DevicesIds))
			return nil, status.Error(codes.FailedPrecondition, err.Error())
		}
		out.ContainerResponses = append(out.ContainerResponses, answer)
	}
	return out, nil
}

// PreStartContainer asks the plugin to make the devices of a container ready.
func (r *registration) PreStartContainer(ctx context.Context, in *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	if err := r.server.o.Plugin.PreStart(klog.NewContext(ctx, r.logger), in.DevicesIds); err != nil {
		r.logger.Info("Container start refused", "err", err)
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &pluginapi.PreStartContainerResponse{}, nil
}

// GetPreferredAllocation passes on what the plugin prefers.
func (r *registration) GetPreferredAllocation(ctx context.Context, in *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	preferrer, ok := r.server.o.Plugin.(Preferrer)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "no preferences")
	}
	out := &pluginapi.PreferredAllocationResponse{}
	for _, c := range in.ContainerRequests {
		ids, err := preferrer.Prefer(klog.NewContext(ctx, r.logger), c.AvailableDeviceIDs, c.MustIncludeDeviceIDs, int(c.AllocationSize))
		if err != nil {
			// Kubelet takes an error here as a refusal of the pod, for good. No preference is the better answer.
			r.logger.Error(err, "No preferred allocation", "size", c.AllocationSize)
			ids = nil
		}
		out.ContainerResponses = append(out.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return out, nil
}
