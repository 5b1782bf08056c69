package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Plugin answers what kubelet asks about one resource. Its methods may be called at the same time.
type Plugin interface {
	// Allocate answers for one container. An error makes the pod fail for good.
	Allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error)
	// PreStart is called before each creation of a container, with the IDs it was given. Kubelet retries
	// after an error and shows it.
	PreStart(ctx context.Context, ids []string) error
}

// Preferrer is a Plugin that cares which IDs are given out.
type Preferrer interface {
	// Prefer returns size of the available IDs, those that must be included among them.
	Prefer(ctx context.Context, available, include []string, size int) ([]string, error)
}

// Times of a Server. The settling time is longer than the 200 ms within which a starting kubelet was
// seen to make its socket twice.
const (
	DefaultSettle = 300 * time.Millisecond
	openTimeout   = 5 * time.Second  // from registration to the stream
	lookAgain     = 10 * time.Second // in case the file system tells nothing
	callTimeout   = 15 * time.Second // for a registration; kubelet itself waits 10 s for our socket
	firstBackoff  = 200 * time.Millisecond
	lastBackoff   = 5 * time.Second
	drainTimeout  = 5 * time.Second // for calls that run when serving ends
)

// Options of a Server.
type Options struct {
	// Resource is the resource's name, for example "enflame.com/gcu-memory".
	Resource string
	// Dir is kubelet's device-plugins folder.
	Dir string
	// Prefix and Instance name the socket: <prefix>-<instance>.sock, and <prefix>-<instance>-<n>.sock from
	// the second registration on. Instances that run at the same time need different names.
	Prefix, Instance string
	Plugin           Plugin
	Devices          *Devices
	// Settle is how long kubelet's socket must stay as it is before it is used; 0 means DefaultSettle.
	Settle time.Duration
	// Observe, if set, is told what happens, for metrics. It must not block.
	Observe func(Event)
}

// EventKind says what happened.
type EventKind uint8

// The kinds of events.
const (
	Registered EventKind = iota
	RegisterFailed
	StreamOpened
	StreamClosed
	DevicesSent
)

// Event is one thing that happened between a Server and kubelet.
type Event struct {
	Kind     EventKind
	Resource string
	// Err is set with RegisterFailed.
	Err error
	// Healthy and Total count the devices of DevicesSent.
	Healthy, Total int
}

// Server serves one resource to kubelet.
type Server struct {
	o       Options
	settle  time.Duration
	changed chan struct{} // a stream was closed

	// mu guards the fields below.
	mu       sync.Mutex
	present  *registration // the last successful one, nil before and after
	problem  error         // why there is none
	attempts int
}

// New returns a Server. It does nothing until Serve.
func New(o Options) (*Server, error) {
	switch {
	case o.Resource == "" || o.Prefix == "" || o.Instance == "" || o.Plugin == nil || o.Devices == nil:
		return nil, errors.New("resource, prefix, instance, plugin and devices must be set")
	case !filepath.IsAbs(o.Dir):
		return nil, fmt.Errorf("folder %q: want an absolute path", o.Dir)
	case strings.ContainsRune(o.Prefix+o.Instance, filepath.Separator):
		return nil, fmt.Errorf("socket %s-%s: want a file name", o.Prefix, o.Instance)
	}
	settle := o.Settle
	if settle == 0 {
		settle = DefaultSettle
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	return &Server{o: o, settle: settle, changed: make(chan struct{}, 1), problem: errors.New("not yet registered")}, nil
}

// Ready says why kubelet does not know this resource's devices, nil when it is registered and the
// stream is open.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.present == nil:
		return fmt.Errorf("resource %s: %w", s.o.Resource, s.problem)
	case !s.present.streaming():
		return fmt.Errorf("resource %s: registered, kubelet does not listen", s.o.Resource)
	}
	return nil
}

// Serve registers with kubelet and answers it until ctx ends. Calls that run then are finished first,
// since an interrupted Allocate makes a pod fail for good.
func (s *Server) Serve(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", s.o.Dir, err)
	}
	defer watcher.Close()
	logger := klog.FromContext(ctx).WithValues("resource", s.o.Resource)
	ctx = klog.NewContext(ctx, logger)
	defer func() { s.replace(nil, errors.New("stopped")) }()

	kubelet := filepath.Join(s.o.Dir, filepath.Base(pluginapi.KubeletSocket))
	backoff := firstBackoff
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if event.Name == kubelet {
				timer.Reset(s.settle)
			}
		case err := <-watcher.Errors:
			logger.V(2).Info("Watching kubelet's folder is interrupted", "err", err)
			timer.Reset(s.settle)
		case <-s.changed:
			timer.Reset(s.settle)
		case <-timer.C:
			// Added each time: a folder that was made anew is watched again, the same one is not twice.
			watchErr := watcher.Add(s.o.Dir)
			again, err := s.reconcile(ctx, kubelet)
			if err = errors.Join(err, watchErr); err != nil {
				logger.V(2).Info("Not registered with kubelet", "err", err, "again", backoff)
				again = backoff
				backoff = min(2*backoff, lastBackoff)
			} else {
				backoff = firstBackoff
			}
			timer.Reset(again)
		}
	}
}

// reconcile registers if the kubelet that is there now does not listen to this server. It returns when
// to look again.
func (s *Server) reconcile(ctx context.Context, kubelet string) (time.Duration, error) {
	id, ok := identify(kubelet)
	if !ok {
		// The old streams stay: a kubelet that lost only its socket still counts the devices.
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.present == nil {
			s.problem = errors.New("kubelet's socket is not there")
		}
		return lookAgain, nil
	}
	s.mu.Lock()
	current := s.present
	s.mu.Unlock()
	if current != nil && current.kubelet == id {
		switch {
		case current.streaming():
			return lookAgain, nil
		case current.pending():
			return openTimeout, nil
		}
	}
	s.replace(nil, errors.New("registering"))
	next, err := s.register(ctx, kubelet, id)
	if err != nil {
		s.replace(nil, err)
		s.o.Observe(Event{Kind: RegisterFailed, Resource: s.o.Resource, Err: err})
		return 0, err
	}
	s.replace(next, nil)
	s.o.Observe(Event{Kind: Registered, Resource: s.o.Resource})
	klog.FromContext(ctx).V(2).Info("Registered with kubelet", "socket", next.socket.path)
	return openTimeout, nil
}

// replace sets the present registration and ends the one before.
func (s *Server) replace(next *registration, problem error) {
	s.mu.Lock()
	before := s.present
	s.present, s.problem = next, problem
	s.mu.Unlock()
	if before != nil {
		before.stop()
	}
}

// streamClosed is called by registrations.
func (s *Server) streamClosed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// nextPath returns a path that this server has not used.
func (s *Server) nextPath() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	name := s.o.Prefix + "-" + s.o.Instance
	if s.attempts > 1 {
		name = fmt.Sprintf("%s-%d", name, s.attempts)
	}
	return filepath.Join(s.o.Dir, name+".sock")
}
