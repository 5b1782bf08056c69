package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// client is a connection to a plugin.
type client struct {
	resource, socket string
	conn             *grpc.ClientConn
	cancel           context.CancelFunc // of the stream
}

// endpoint is a plugin as the device manager sees it.
type endpoint struct {
	api     pluginapi.DevicePluginClient
	options *pluginapi.DevicePluginOptions
	stopped bool
}

var errStopped = errors.New("endpoint has been stopped")

// registrar is the registration service.
type registrar struct {
	pluginapi.UnimplementedRegistrationServer
	kubelet *Kubelet
}

// Register connects to the plugin before it answers.
func (r *registrar) Register(ctx context.Context, in *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	if in.Version != pluginapi.Version {
		return nil, fmt.Errorf("version %q is not supported", in.Version)
	}
	if domain, name, ok := strings.Cut(in.ResourceName, "/"); !ok || domain == "" || name == "" || strings.Contains(domain, "kubernetes.io") {
		return nil, fmt.Errorf("%q is not the name of an extended resource", in.ResourceName)
	}
	if err := r.kubelet.connect(ctx, in.ResourceName, filepath.Join(r.kubelet.PluginDir(), in.Endpoint)); err != nil {
		return nil, err
	}
	return &pluginapi.Empty{}, nil
}

func (k *Kubelet) connect(ctx context.Context, resource, path string) error {
	c := &client{resource: resource, socket: path}
	k.mu.Lock()
	k.clients[resource] = append(k.clients[resource], c)
	k.mu.Unlock()
	streamContext, err := k.open(ctx, c)
	if err != nil {
		// By path, so that a client connected there before is forgotten as well: its end of stream will find
		// nobody, and the path stays taken.
		k.forget(resource, path)
		if c.conn != nil {
			err = errors.Join(err, c.conn.Close())
		}
		return err
	}
	k.running.Go(func() {
		k.receive(streamContext, c)
		if known := k.find(resource, path); known != nil {
			k.disconnect(known)
		}
	})
	return nil
}

// open dials, asks for options and puts the endpoint in charge of its resource.
func (k *Kubelet) open(ctx context.Context, c *client) (context.Context, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	probe, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, fmt.Errorf("dial device plugin: %w", err)
	}
	probe.Close()
	c.conn, err = grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		}))
	if err != nil {
		return nil, err
	}
	api := pluginapi.NewDevicePluginClient(c.conn)
	options, err := api.GetDevicePluginOptions(ctx, &pluginapi.Empty{})
	if err != nil {
		return nil, fmt.Errorf("get device plugin options: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.registry == nil {
		return nil, errors.New("kubelet is going down")
	}
	if k.store[c.resource][c.socket] != nil {
		return nil, fmt.Errorf("device plugin already connected: %s", c.socket)
	}
	e := &endpoint{api: api, options: options}
	if k.store[c.resource] == nil {
		k.store[c.resource] = map[string]*endpoint{}
	}
	k.store[c.resource][c.socket] = e
	k.endpoints[c.resource] = e
	k.registered[c.resource]++
	streamContext, stop := context.WithCancel(context.Background())
	c.cancel = stop
	return streamContext, nil
}

func (k *Kubelet) receive(ctx context.Context, c *client) {
	stream, err := pluginapi.NewDevicePluginClient(c.conn).ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return
		}
		k.mu.Lock()
		k.sent[c.resource]++
		k.devices[c.resource] = map[string]*pluginapi.Device{}
		k.healthy[c.resource] = sets.New[string]()
		for _, d := range list.Devices {
			k.devices[c.resource][d.ID] = d
			if d.Health == pluginapi.Healthy {
				k.healthy[c.resource].Insert(d.ID)
			}
		}
		k.mu.Unlock()
		_ = k.writeCheckpoint() // kubelet logs the error; the next write tries again
	}
}

func (k *Kubelet) find(resource, path string) *client {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.clients[resource] {
		if c.socket == path {
			return c
		}
	}
	return nil
}

func (k *Kubelet) forget(resource, path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var rest []*client
	for _, c := range k.clients[resource] {
		if c.socket != path {
			rest = append(rest, c)
		}
	}
	k.clients[resource] = rest
}

// disconnect ends a client. When it was the last of its resource, all devices turn unhealthy.
func (k *Kubelet) disconnect(c *client) {
	k.forget(c.resource, c.socket)
	if c.cancel != nil {
		c.cancel()
	}
	if c.conn != nil {
		_ = c.conn.Close() // closed already when both ends give up
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.store[c.resource][c.socket]
	if e == nil {
		return
	}
	e.stopped = true
	delete(k.store[c.resource], c.socket)
	if len(k.store[c.resource]) == 0 {
		k.healthy[c.resource] = sets.New[string]()
		return
	}
	for _, other := range k.store[c.resource] {
		k.endpoints[c.resource] = other
		break
	}
}

// poll repeats a check until it passes.
func poll(ctx context.Context, check func() error) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}
