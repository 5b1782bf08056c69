package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Subject is the pod to explain, and what of its surroundings was looked up.
type Subject struct {
	Asked, Namespace string
	// Pod is nil when the object that was asked about has none.
	Pod *v1.Pod
	// Pods counts the pods of the object by state, in words; empty for a pod asked by its name.
	Pods string
	// Refusals are why pods were not made, the latest first.
	Refusals []string
	// Claims are findings about the pod's volume claims.
	Claims []Finding
	Unseen []string
}

// kinds are the kinds that Find takes, with their short names.
var kinds = map[string]string{
	"pod": "pod", "pods": "pod", "po": "pod",
	"deployment": "deployment", "deployments": "deployment", "deploy": "deployment",
	"replicaset": "replicaset", "replicasets": "replicaset", "rs": "replicaset",
	"statefulset": "statefulset", "statefulsets": "statefulset", "sts": "statefulset",
	"daemonset": "daemonset", "daemonsets": "daemonset", "ds": "daemonset",
	"job": "job", "jobs": "job",
}

// Parse splits "deploy/web" into kind and name; without a kind it is a pod.
func Parse(arg string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok {
		return "pod", arg, nil
	}
	full, known := kinds[strings.ToLower(strings.SplitN(kind, ".", 2)[0])]
	if !known || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q: want a pod's name, or pod, deploy, rs, sts, ds or job with a slash and a name", arg)
	}
	return full, name, nil
}

// Find looks up what was asked about.
func Find(ctx context.Context, client kubernetes.Interface, namespace, arg string) (*Subject, error) {
	kind, name, err := Parse(arg)
	if err != nil {
		return nil, err
	}
	s := &Subject{Asked: kind + "/" + name, Namespace: namespace}
	if kind == "pod" {
		s.Pod, err = client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	} else {
		err = s.findOwned(ctx, client, kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s in namespace %s: %w", s.Asked, namespace, err)
	}
	if s.Pod != nil {
		s.readClaims(ctx, client)
	}
	return s, nil
}

// owner is the object that makes the pods, and those between.
type owner struct {
	uids     []types.UID
	selector *metav1.LabelSelector
	refusals []string
	wanted   int32
}

func (s *Subject) findOwned(ctx context.Context, client kubernetes.Interface, kind, name string) error {
	o, err := s.readOwner(ctx, client, kind, name)
	if err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(o.selector)
	if err != nil {
		return err
	}
	list, err := client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return err
	}
	var pods []*v1.Pod
	for i := range list.Items {
		if ref := metav1.GetControllerOf(&list.Items[i]); ref != nil && slices.Contains(o.uids, ref.UID) {
			pods = append(pods, &list.Items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(rank(a)-rank(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if len(pods) > 0 {
		s.Pod = pods[0]
	}
	s.Pods = tally(pods, int(o.wanted))
	s.Refusals = o.refusals
	if len(pods) < int(o.wanted) {
		s.readRefusals(ctx, client, o.uids)
	}
	return nil
}

// rank puts pods that wait first, then those that are placed, then those that ended.
func rank(p *v1.Pod) int {
	switch {
	case p.Status.Phase == v1.PodSucceeded, p.Status.Phase == v1.PodFailed:
		return 3
	case p.Spec.NodeName == "":
		return 0
	case p.Status.Phase == v1.PodPending:
		return 1
	}
	return 2
}

func tally(pods []*v1.Pod, wanted int) string {
	var n [4]int
	for _, p := range pods {
		n[rank(p)]++
	}
	var parts []string
	for i, word := range []string{"waiting", "starting", "running", "ended"} {
		if n[i] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[i], word))
		}
	}
	if len(parts) == 0 {
		parts = []string{"none there"}
	}
	return fmt.Sprintf("%d wanted: %s", wanted, strings.Join(parts, ", "))
}

func (s *Subject) readOwner(ctx context.Context, client kubernetes.Interface, kind, name string) (owner, error) {
	apps, get := client.AppsV1(), metav1.GetOptions{}
	switch kind {
	case "deployment":
		return s.readDeployment(ctx, client, name)
	case "replicaset":
		o, err := apps.ReplicaSets(s.Namespace).Get(ctx, name, get)
		if err != nil {
			return owner{}, err
		}
		return owner{[]types.UID{o.UID}, o.Spec.Selector, replicaFailures(o), or(o.Spec.Replicas)}, nil
	case "statefulset":
		o, err := apps.StatefulSets(s.Namespace).Get(ctx, name, get)
		if err != nil {
			return owner{}, err
		}
		return owner{[]types.UID{o.UID}, o.Spec.Selector, nil, or(o.Spec.Replicas)}, nil
	case "daemonset":
		o, err := apps.DaemonSets(s.Namespace).Get(ctx, name, get)
		if err != nil {
			return owner{}, err
		}
		return owner{[]types.UID{o.UID}, o.Spec.Selector, nil, o.Status.DesiredNumberScheduled}, nil
	}
	o, err := client.BatchV1().Jobs(s.Namespace).Get(ctx, name, get)
	if err != nil {
		return owner{}, err
	}
	var refusals []string
	for _, c := range o.Status.Conditions {
		if c.Status == v1.ConditionTrue && (c.Type == batchv1.JobFailed || c.Type == batchv1.JobSuspended) {
			refusals = append(refusals, fmt.Sprintf("the job is %s: %s", strings.ToLower(string(c.Type)), c.Message))
		}
	}
	return owner{[]types.UID{o.UID}, o.Spec.Selector, refusals, or(o.Spec.Parallelism)}, nil
}

func or(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func (s *Subject) readDeployment(ctx context.Context, client kubernetes.Interface, name string) (owner, error) {
	d, err := client.AppsV1().Deployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return owner{}, err
	}
	out := owner{uids: []types.UID{d.UID}, selector: d.Spec.Selector, wanted: or(d.Spec.Replicas)}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return owner{}, err
	}
	sets, err := client.AppsV1().ReplicaSets(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return owner{}, err
	}
	for i := range sets.Items {
		rs := &sets.Items[i]
		if ref := metav1.GetControllerOf(rs); ref != nil && ref.UID == d.UID {
			out.uids = append(out.uids, rs.UID)
			if or(rs.Spec.Replicas) > 0 {
				out.refusals = append(out.refusals, replicaFailures(rs)...)
			}
		}
	}
	return out, nil
}

func replicaFailures(rs *appsv1.ReplicaSet) []string {
	var out []string
	for _, c := range rs.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == v1.ConditionTrue {
			out = append(out, c.Message)
		}
	}
	return out
}

// readRefusals looks for events of the owners that say why pods were not made: quota and admission.
func (s *Subject) readRefusals(ctx context.Context, client kubernetes.Interface, owners []types.UID) {
	if len(s.Refusals) > 0 {
		return
	}
	var found []v1.Event
	for _, uid := range owners {
		list, err := client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String(),
		})
		if err != nil {
			s.Unseen = append(s.Unseen, "Events may not be read (list events): why pods were not made is unknown.")
			return
		}
		for _, e := range list.Items {
			if e.Type == v1.EventTypeWarning && e.Reason == "FailedCreate" && e.InvolvedObject.UID == uid {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b v1.Event) int { return b.LastTimestamp.Compare(a.LastTimestamp.Time) })
	for _, e := range found {
		if !slices.Contains(s.Refusals, e.Message) && len(s.Refusals) < 3 {
			s.Refusals = append(s.Refusals, e.Message)
		}
	}
}

// readClaims looks at the volume claims of the pod.
func (s *Subject) readClaims(ctx context.Context, client kubernetes.Interface) {
	for _, v := range s.Pod.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = s.Pod.Name + "-" + v.Name
		default:
			continue
		}
		claim, err := client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			s.Claims = append(s.Claims, Finding{"ClaimMissing", fmt.Sprintf("Volume claim %s does not exist.", name), "create it, or correct the name in the pod"})
		case err != nil:
			s.Unseen = append(s.Unseen, fmt.Sprintf("Volume claim %s may not be read (get persistentvolumeclaims).", name))
		case claim.Status.Phase == v1.ClaimLost:
			s.Claims = append(s.Claims, Finding{"ClaimLost", fmt.Sprintf("Volume claim %s has lost its volume.", name), ""})
		case claim.Status.Phase == v1.ClaimPending && !s.bindsLater(ctx, client, claim):
			s.Claims = append(s.Claims, Finding{"ClaimUnbound", fmt.Sprintf("Volume claim %s is not bound.", name), fmt.Sprintf("kubectl describe pvc -n %s %s says why", s.Namespace, name)})
		}
	}
}

// bindsLater says whether a claim is bound only when a pod that uses it is placed.
func (s *Subject) bindsLater(ctx context.Context, client kubernetes.Interface, claim *v1.PersistentVolumeClaim) bool {
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
		return false
	}
	class, err := client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		s.Unseen = append(s.Unseen, fmt.Sprintf("Storage class %s may not be read (get storageclasses): whether claim %s is bound only with its pod is unknown.", *claim.Spec.StorageClassName, claim.Name))
		return true
	}
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
