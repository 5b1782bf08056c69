package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
)

// Errors of Identifier. Branch on them with errors.Is.
var (
	ErrNoHolder  = errors.New("no container holds these devices")
	ErrAmbiguous = errors.New("containers of more than one pod could be meant")
)

// Holder is a container that holds a set of device IDs.
type Holder struct {
	// PodUID is set when the checkpoint told, Namespace and Name when pod-resources did.
	PodUID          types.UID
	Namespace, Name string
	Container       string
	// CDIDevices are the qualified names in the plugin's answer to Allocate; only the checkpoint has them.
	CDIDevices []string
}

// Checkpoints is what an Identifier reads first.
type Checkpoints interface {
	Read() (*checkpoint.Checkpoint, error)
}

var _ Checkpoints = (*checkpoint.Reader)(nil)

// PodLister is what an Identifier asks when the checkpoint does not tell.
type PodLister interface {
	List(ctx context.Context, since time.Time) ([]*podresourcesapi.PodResources, error)
}

var _ PodLister = (*PodResources)(nil)

// Source says who named a holder.
type Source uint8

// The sources.
const (
	FromCheckpoint Source = iota
	FromPodResources
)

// Identifier tells whose container a set of device IDs belongs to. It keeps nothing.
type Identifier struct {
	Checkpoints Checkpoints
	Pods        PodLister
	// Observe, if set, is told which source answered.
	Observe func(Source)
}

// Holders returns the containers that hold exactly these IDs of a resource, all of one pod, sorted by
// name. An init container and a later one may hold the same IDs, so there may be several.
func (i *Identifier) Holders(ctx context.Context, resource string, ids []string) ([]Holder, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil, fmt.Errorf("resource %s: no devices: %w", resource, ErrNoHolder)
	}
	since := time.Now()
	file, err := i.Checkpoints.Read()
	if err == nil {
		var out []Holder
		out, err = inCheckpoint(file, resource, ids)
		if err == nil || errors.Is(err, ErrAmbiguous) {
			i.observe(FromCheckpoint)
			return out, err
		}
	}
	pods, listErr := i.Pods.List(ctx, since)
	if listErr != nil {
		return nil, errors.Join(err, listErr)
	}
	out, listErr := inPodResources(pods, resource, ids)
	if listErr != nil {
		return nil, errors.Join(err, listErr)
	}
	i.observe(FromPodResources)
	return out, nil
}

func (i *Identifier) observe(s Source) {
	if i.Observe != nil {
		i.Observe(s)
	}
}

func inCheckpoint(file *checkpoint.Checkpoint, resource string, ids []string) ([]Holder, error) {
	var out []Holder
	pods := map[string]bool{}
	for k := range file.Entries {
		e := &file.Entries[k]
		if e.Resource != resource || !overlap(e.IDs, ids) {
			continue
		}
		pods[e.PodUID] = true
		if !slices.Equal(e.IDs, ids) {
			continue // an init container with more or fewer of them
		}
		if e.Err != nil {
			return nil, e.Err
		}
		out = append(out, Holder{PodUID: types.UID(e.PodUID), Container: e.Container, CDIDevices: e.CDIDevices()})
	}
	switch {
	case len(pods) > 1:
		return nil, fmt.Errorf("resource %s, %d devices: %d pods: %w", resource, len(ids), len(pods), ErrAmbiguous)
	case len(out) == 0:
		return nil, fmt.Errorf("resource %s, %d devices, in the checkpoint: %w", resource, len(ids), ErrNoHolder)
	}
	return out, nil
}

func inPodResources(pods []*podresourcesapi.PodResources, resource string, ids []string) ([]Holder, error) {
	var out []Holder
	touched := map[string]bool{}
	for _, p := range pods {
		for _, c := range p.Containers {
			has := idsOf(c, resource)
			if !overlap(has, ids) {
				continue
			}
			touched[p.Namespace+"/"+p.Name] = true
			if slices.Equal(has, ids) {
				out = append(out, Holder{Namespace: p.Namespace, Name: p.Name, Container: c.Name})
			}
		}
	}
	switch {
	case len(touched) > 1:
		return nil, fmt.Errorf("resource %s, %d devices: %d pods: %w", resource, len(ids), len(touched), ErrAmbiguous)
	case len(out) == 0:
		return nil, fmt.Errorf("resource %s, %d devices, in pod-resources: %w", resource, len(ids), ErrNoHolder)
	}
	slices.SortFunc(out, func(a, b Holder) int { return strings.Compare(a.Container, b.Container) })
	return out, nil
}

// overlap says whether two sorted lists have an element in common.
func overlap(a, b []string) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch c := strings.Compare(a[i], b[j]); {
		case c == 0:
			return true
		case c < 0:
			i++
		default:
			j++
		}
	}
	return false
}
