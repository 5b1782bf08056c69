package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
)

// Source is a host to read. source.Reader is one.
type Source interface {
	eflib.Watcher
	fmt.Stringer
	Read(ctx context.Context) (facts labels.Facts, problems, err error)
}

// Events takes events of the node.
type Events interface {
	Event(ctx context.Context, kind, reason, message string)
}

// Options of Run. Source, Output and Node are required.
type Options struct {
	Source Source
	Output publish.Output
	Node   string
	// Labels say which labels are made.
	Labels labels.Options
	// Client reads the Node, for the administrator's opt-out; nil where there is no API server to ask.
	Client kubernetes.Interface
	// Events may be nil.
	Events Events
	// Refresh is how often everything is looked at, a minute when 0.
	Refresh time.Duration
	// RemovalDelay is how long cards have to be gone before labels say so, 30 s when 0.
	RemovalDelay time.Duration
	// Metrics count; nil for none.
	Metrics *Metrics
}

const (
	defaultRefresh      = time.Minute
	defaultRemovalDelay = 30 * time.Second
	// apiTimeout bounds what is asked of the API server in one look.
	apiTimeout = 20 * time.Second
)

// Discovery keeps the labels of one node.
type Discovery struct {
	o Options

	mu    sync.Mutex // guards ready
	ready error

	// The rest belongs to the goroutine of Run.

	// fewerSince is when fewer cards than are published were seen first; zero while there are not.
	fewerSince time.Time
	// opted is whether the Node's labels are the administrator's, as read last; known says that it was.
	opted, known bool
	// said are problems that were logged and hold on; foreign are other values seen in the last look, by key.
	said    string
	foreign map[string]foreign
}

// New returns a discovery that has done nothing yet.
func New(o Options) (*Discovery, error) {
	switch {
	case o.Source == nil || o.Output == nil:
		return nil, errors.New("discovery: want a source and an output")
	case o.Node == "":
		return nil, errors.New("discovery: want the name of the node")
	case o.Refresh < 0 || o.RemovalDelay < 0:
		return nil, fmt.Errorf("discovery: refresh %s, removal delay %s: want 0 or more", o.Refresh, o.RemovalDelay)
	}
	if o.Labels.Names == nil {
		o.Labels.Names = contract.Default()
	}
	if o.Refresh == 0 {
		o.Refresh = defaultRefresh
	}
	if o.RemovalDelay == 0 {
		o.RemovalDelay = defaultRemovalDelay
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	d := &Discovery{o: o, ready: errors.New("nothing was published yet")}
	if direct, ok := o.Output.(*publish.NodeLabels); ok && direct.Told == nil {
		direct.Told = d.tellOverride
	}
	return d, nil
}

// Run keeps the labels until ctx ends.
func Run(ctx context.Context, o Options) error {
	d, err := New(o)
	if err != nil {
		return err
	}
	d.Run(ctx)
	return nil
}

// Ready returns why the labels may not be what the cards are; nil when the last look succeeded.
func (d *Discovery) Ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready
}

func (d *Discovery) setReady(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = err
}

// Run keeps the labels until ctx ends.
func (d *Discovery) Run(ctx context.Context) {
	changed := d.o.Source.Watch(ctx)
	for {
		wait := d.step(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case _, open := <-changed:
			if !open {
				changed = nil // it ends with ctx
			}
		}
		timer.Stop()
	}
}

// step looks once, logs, and returns how long to wait for the next look.
func (d *Discovery) step(ctx context.Context) time.Duration {
	err := d.Once(ctx)
	if ctx.Err() != nil {
		return 0
	}
	d.setReady(err)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Labels are left as they are")
	}
	wait := d.o.Refresh
	if !d.fewerSince.IsZero() {
		wait = min(wait, max(0, d.o.RemovalDelay-time.Since(d.fewerSince)))
	}
	// What failed for a moment need not stay so for a minute.
	if err != nil {
		wait = min(wait, 10*time.Second)
	}
	return wait
}

// Once looks once and publishes what is to be published. An error leaves what is published as it is.
func (d *Discovery) Once(ctx context.Context) error {
	node := d.readNode(ctx)
	switch {
	case d.o.Client != nil && !d.known:
		return fmt.Errorf("node %s cannot be read, and it may say that it is labelled by hand", d.o.Node)
	case d.opted:
		return d.handOver(ctx)
	}
	facts, problems, err := d.o.Source.Read(ctx)
	d.tellProblems(ctx, problems)
	if err != nil {
		d.o.Metrics.readErrors.Inc()
		return fmt.Errorf("the cards cannot be read: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	before, err := d.o.Output.Read(ctx)
	if err != nil {
		d.o.Metrics.publishErrors.Inc()
		return fmt.Errorf("what was published cannot be read: %w", err)
	}
	if d.holds(ctx, facts, before) {
		d.o.Metrics.looked(len(before))
		return nil
	}
	result := labels.Of(facts, before, time.Now(), d.o.Labels)
	return d.publish(ctx, node, before, result)
}

// holds says whether fewer cards than are published are seen, and not for long enough.
func (d *Discovery) holds(ctx context.Context, facts labels.Facts, before labels.Set) bool {
	was, published := labels.Count(before, d.o.Labels.Names)
	if !published || facts.Count() >= was {
		d.fewerSince = time.Time{}
		return false
	}
	if d.fewerSince.IsZero() {
		d.fewerSince = time.Now()
		klog.FromContext(ctx).Info("Cards are missing; labels stay for now", "published", was, "seen", facts.Count(), "delay", d.o.RemovalDelay)
	}
	if time.Since(d.fewerSince) < d.o.RemovalDelay {
		return true
	}
	d.fewerSince = time.Time{}
	return false
}

func (d *Discovery) publish(ctx context.Context, node *v1.Node, before labels.Set, r labels.Result) error {
	changed, err := d.o.Output.Publish(ctx, r)
	if err != nil {
		d.o.Metrics.publishErrors.Inc()
		return fmt.Errorf("publish %s: %w", d.o.Output, err)
	}
	d.o.Metrics.looked(len(r.Labels))
	if changed {
		d.o.Metrics.publishes.Inc()
		klog.FromContext(ctx).V(2).Info("Labels published", "output", d.o.Output.String(), "labels", len(r.Labels), "before", len(before))
		return nil
	}
	if _, direct := d.o.Output.(*publish.NodeLabels); !direct && node != nil {
		d.tellForeign(ctx, node.Labels, r.Labels)
	}
	return nil
}

// Withdraw removes what was published, whatever the cards are.
func (d *Discovery) Withdraw(ctx context.Context) error {
	_, err := d.o.Output.Publish(ctx, labels.Result{})
	if err != nil {
		return fmt.Errorf("withdraw %s: %w", d.o.Output, err)
	}
	return nil
}

// handOver leaves the node's labels to its administrator.
func (d *Discovery) handOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	d.o.Metrics.looked(0)
	d.fewerSince = time.Time{}
	var changed bool
	var err error
	if direct, ok := d.o.Output.(*publish.NodeLabels); ok {
		changed, err = direct.Disown(ctx)
	} else {
		changed, err = d.o.Output.Publish(ctx, labels.Result{})
	}
	if err != nil {
		return fmt.Errorf("hand over %s: %w", d.o.Output, err)
	}
	if changed {
		d.event(ctx, "LabelsHandedOver", fmt.Sprintf("label %s=false: the labels of the cards are the administrator's", d.optOut()))
	}
	return nil
}

func (d *Discovery) optOut() string { return d.o.Labels.Names.DeployPrefix + contract.ComponentGFD }

// readNode reads the Node, from the API server's cache. It returns nil where it cannot.
func (d *Discovery) readNode(ctx context.Context) *v1.Node {
	if d.o.Client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	node, err := d.o.Client.CoreV1().Nodes().Get(ctx, d.o.Node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The Node object cannot be read", "node", d.o.Node, "err", err)
		return nil
	}
	d.opted, d.known = node.Labels[d.optOut()] == "false", true
	return node
}
