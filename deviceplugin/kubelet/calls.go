package kubelet

import (
	"context"

	"google.golang.org/grpc/stats"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// callCounter holds a registration's read lock during each call, until its answer is on the way. The
// handlers cannot do that: their answer is sent after they return.
type callCounter struct{ r *registration }

var _ stats.Handler = callCounter{}

type methodKey struct{}

// TagRPC notes the method.
func (callCounter) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, methodKey{}, info.FullMethodName)
}

// HandleRPC locks when a call begins and unlocks when it has ended.
func (c callCounter) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if ctx.Value(methodKey{}) == pluginapi.DevicePlugin_ListAndWatch_FullMethodName {
		return
	}
	switch s.(type) {
	case *stats.Begin:
		c.r.calls.RLock()
	case *stats.End:
		c.r.calls.RUnlock()
	}
}

// TagConn does nothing.
func (callCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (callCounter) HandleConn(context.Context, stats.ConnStats) {}
