package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox/apply"
)

// Options of Run. Only Config and Out are required.
type Options struct {
	// Config reaches the cluster with the rights of an administrator.
	Config *rest.Config
	// Examples are submitted in order, each when the one before is where it should be.
	Examples []manifests.Example
	// Patience is how long one example may take; 0 means 20 s.
	Patience time.Duration
	// Agents says that the nodes run the real agent, so that it is known what each container sees.
	Agents bool
	// Exporters are the addresses of the nodes' metrics, by node.
	Exporters map[string]string
	Out       io.Writer
}

type demo struct {
	Options
	client  kubernetes.Interface
	applier *apply.Applier
	names   *contract.Names
	// pods are the examples' pods with what is wrong with each, in order.
	pods []result
}

type result struct {
	pod   *corev1.Pod
	wrong string
}

// Run submits the examples and prints where their pods went, then what discovery and exporters say of the nodes.
func Run(ctx context.Context, o Options) error {
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return err
	}
	applier, err := apply.New(o.Config)
	if err != nil {
		return err
	}
	d := &demo{Options: o, client: client, applier: applier, names: contract.Default()}
	var errs []error
	for _, e := range o.Examples {
		if err := d.example(ctx, e); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			errs = append(errs, fmt.Errorf("%s: %w", e.Name, err))
		}
	}
	d.print()
	errs = append(errs, d.see(ctx)...)
	for _, r := range d.pods {
		if r.wrong != "" {
			errs = append(errs, fmt.Errorf("%s: %s", podName(r.pod), r.wrong))
		}
	}
	return errors.Join(errs...)
}

// example submits one file and waits until each of its pods is where it should be, or patience ends.
func (d *demo) example(ctx context.Context, e manifests.Example) error {
	objects, err := d.submit(ctx, e.YAML)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var pods []*corev1.Pod
	want := -1
	for {
		found, n, err := d.find(ctx, objects)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			pods, want = found, n
		}
		if len(pods) == want && allSettled(pods) {
			break
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, p := range pods {
		wrong, err := d.judge(context.WithoutCancel(ctx), p)
		if err != nil {
			return err
		}
		d.pods = append(d.pods, result{p, wrong})
	}
	if len(pods) != want {
		return fmt.Errorf("%d pods came of it: want %d", len(pods), want)
	}
	return nil
}

// submit applies a file. A pod in a namespace that is a moment old is refused until the controller
// manager has made the namespace's service account.
func (d *demo) submit(ctx context.Context, text []byte) ([]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		objects, err := d.applier.Apply(ctx, text)
		if !apierrors.IsForbidden(err) {
			return objects, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// find returns the pods that belong to the objects, and how many there should be.
func (d *demo) find(ctx context.Context, objects []*unstructured.Unstructured) ([]*corev1.Pod, int, error) {
	var out []*corev1.Pod
	want := 0
	for _, o := range objects {
		replicas := 1
		switch o.GetKind() {
		case "Pod":
		case "Deployment", "StatefulSet":
			replicas = count(o, "replicas")
		case "Job":
			replicas = count(o, "parallelism")
		default:
			continue
		}
		want += replicas
		list, err := d.client.CoreV1().Pods(o.GetNamespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, 0, err
		}
		for i := range list.Items {
			if d.owned(ctx, &list.Items[i], o) {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out, want, nil
}

func count(o *unstructured.Unstructured, field string) int {
	n, found, err := unstructured.NestedInt64(o.Object, "spec", field)
	if err != nil || !found {
		return 1
	}
	return int(n)
}

// owned reports whether a pod is the object or comes of it, for a Deployment through its ReplicaSet.
func (d *demo) owned(ctx context.Context, p *corev1.Pod, o *unstructured.Unstructured) bool {
	if o.GetKind() == "Pod" {
		return p.Name == o.GetName()
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return false
	}
	if owner.Kind == "ReplicaSet" {
		rs, err := d.client.AppsV1().ReplicaSets(p.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		if owner = metav1.GetControllerOf(rs); owner == nil {
			return false
		}
	}
	return owner.UID == o.GetUID()
}

func allSettled(pods []*corev1.Pod) bool {
	for _, p := range pods {
		if !settled(p) {
			return false
		}
	}
	return true
}

func (d *demo) judge(ctx context.Context, p *corev1.Pod) (string, error) {
	node := &corev1.Node{}
	if p.Spec.NodeName != "" {
		var err error
		if node, err = d.client.CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{}); err != nil {
			return "", err
		}
	}
	wrong := judge(p, node, d.names)
	if wrong == "" && d.Agents {
		wrong = judgeSeen(p, d.names)
	}
	return wrong, nil
}
