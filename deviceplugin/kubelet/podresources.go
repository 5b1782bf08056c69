package kubelet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// maxListBytes is what kubelet itself allows for an answer.
const maxListBytes = 16 << 20

// listAgain is the time between tries while kubelet says that it is asked too often. It allows 100 a
// second, after a burst of 10, for all who ask.
const listAgain = 50 * time.Millisecond

// PodResources asks kubelet's pod-resources service. One is shared by all who ask on a node, so that
// they do not use up what kubelet allows. It is safe for concurrent use.
type PodResources struct {
	conn *grpc.ClientConn
	api  podresourcesapi.PodResourcesListerClient

	// turn is held (by a value in it) by the one caller that asks; the others wait for its answer.
	turn chan struct{}
	// mu guards the last answer.
	mu   sync.Mutex
	last []*podresourcesapi.PodResources
	at   time.Time // when the question for it was sent
}

// NewPodResources returns a client for the socket at path. It connects when it is first used, and again
// after kubelet was away.
func NewPodResources(path string) (*PodResources, error) {
	conn, err := Dial(path)
	if err != nil {
		return nil, err
	}
	return &PodResources{
		conn: conn, api: podresourcesapi.NewPodResourcesListerClient(conn), turn: make(chan struct{}, 1),
	}, nil
}

// Close ends the connection.
func (p *PodResources) Close() error { return p.conn.Close() }

// List returns what kubelet says of its pods, asked at since or later. It asks only when no such answer
// is there, and goes on asking until ctx ends while kubelet refuses for being asked too often. The answer
// is shared and must not be changed.
func (p *PodResources) List(ctx context.Context, since time.Time) ([]*podresourcesapi.PodResources, error) {
	if out, ok := p.recent(since); ok {
		return out, nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("list pod resources: %w", ctx.Err())
	}
	if out, ok := p.recent(since); ok {
		return out, nil
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at := time.Now()
		answer, err := p.api.List(ctx, &podresourcesapi.ListPodResourcesRequest{}, grpc.MaxCallRecvMsgSize(maxListBytes))
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.last, p.at = answer.PodResources, at
			return p.last, nil
		}
		if status.Code(err) != codes.ResourceExhausted {
			return nil, fmt.Errorf("list pod resources: %w", err)
		}
		timer.Reset(listAgain)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("list pod resources: %w", err)
		case <-timer.C:
		}
	}
}

func (p *PodResources) recent(since time.Time) ([]*podresourcesapi.PodResources, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, !p.at.IsZero() && !p.at.Before(since)
}

// idsOf returns a container's device IDs of a resource, sorted.
func idsOf(c *podresourcesapi.ContainerResources, resource string) []string {
	var out []string
	for _, d := range c.Devices {
		if d.ResourceName == resource {
			out = append(out, d.DeviceIds...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
