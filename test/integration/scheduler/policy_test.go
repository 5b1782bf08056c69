package scheduler_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The policy on records: who may not write them is refused on every way in, and everybody's other
// writes pass. A presence rule would block every status update of a recorded pod; this one compares.
func TestWhoMayWriteRecords(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	tenant := e.as("tenant", "edit")
	binder := e.as("binder", "binder")
	operator := e.as("operator", "gcu-operator")
	gcuAdmin := e.as("gcu-admin", "gcu-admin")
	pods := func(c kubernetes.Interface) typed { return c.CoreV1().Pods(e.namespace) }
	forged := `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":0,"uuid":"GCU-n1-0","memoryMiB":1}]}]}`

	// Case 11: forged keys on a new pod, with our scheduler and with another.
	for _, scheduler := range []string{"gcu-scheduler", "default-scheduler"} {
		for _, key := range []string{names.AllocationKey, names.AssignedMinorKey, "assigned-containers"} {
			_, err := pods(tenant).Create(t.Context(), pod("forger", sharedGCU, "1", annotated(key, forged), scheduledBy(scheduler)), metav1.CreateOptions{})
			refused(t, "a new pod with "+key, err, "annotation "+key+" is written by the GCU scheduler and node agent only", "leave it out")
		}
	}
	// Whoever owns a namespace does not own the capacity that a record spends.
	owner := e.as("owner", "cluster-admin")
	_, err := pods(owner).Create(t.Context(), pod("forger", sharedGCU, "1", annotated(names.AllocationKey, forged)), metav1.CreateOptions{})
	refused(t, "a record by the owner of the namespace", err, names.AllocationKey)
	_, err = pods(tenant).Create(t.Context(), pod("p", gcuMemory, "8"), metav1.CreateOptions{})
	passed(t, "a clean pod", err)
	record(t, e.bound("p"))
	// Kubelet's status updates of a recorded pod pass, or it would never run.
	e.until("p runs", func(context.Context) bool { return e.get("p").Status.Phase == v1.PodRunning })

	patch := func(c kubernetes.Interface, text string, sub ...string) error {
		_, err := pods(c).Patch(t.Context(), "p", types.MergePatchType, []byte(text), metav1.PatchOptions{}, sub...)
		return err
	}
	passed(t, "a label edit", patch(tenant, `{"metadata":{"labels":{"a":"b"}}}`))
	passed(t, "another annotation", patch(tenant, `{"metadata":{"annotations":{"a":"b"}}}`))
	refused(t, "a changed record", patch(tenant, `{"metadata":{"annotations":{"enflame.com/gcu-allocation":"x"}}}`), "enflame.com/gcu-allocation")
	refused(t, "a removed record", patch(tenant, `{"metadata":{"annotations":{"enflame.com/gcu-allocation":null}}}`), "enflame.com/gcu-allocation")
	refused(t, "a record by way of the status", patch(binder, `{"metadata":{"annotations":{"enflame.com/gcu-allocation":"x"}}}`, "status"), "enflame.com/gcu-allocation")
	refused(t, "an operator without the right", patch(e.as("patcher", "binder"), `{"metadata":{"annotations":{"enflame.com/gcu-assigned":"x"}}}`), "enflame.com/gcu-assigned")
	passed(t, "an administrator's repair", patch(gcuAdmin, `{"metadata":{"annotations":{"enflame.com/gcu-assigned":"true"}}}`))

	// Both ways to bind, by someone who may bind.
	e.create(pod("other", "", "", scheduledBy("nobody")))
	other := e.get("other")
	binding := func() *v1.Binding {
		return &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "other", UID: other.UID, Annotations: map[string]string{names.AllocationKey: forged}},
			Target:     v1.ObjectReference{Kind: "Node", Name: "n1"},
		}
	}
	refused(t, "a Binding with a record", pods(binder).Bind(t.Context(), binding(), metav1.CreateOptions{}), "enflame.com/gcu-allocation")
	refused(t, "the older bindings resource", binder.CoreV1().RESTClient().Post().Namespace(e.namespace).Resource("bindings").Body(binding()).Do(t.Context()).Error(), "enflame.com/gcu-allocation")
	clean := binding()
	clean.Annotations = nil
	passed(t, "a Binding without one", pods(binder).Bind(t.Context(), clean, metav1.CreateOptions{}))

	// Pods made by controllers from clean templates pass; eviction and deletion too.
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "rs"},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "rs"}},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "rs"}}, Spec: pod("x", gcuMemory, "2").Spec},
		},
	}
	_, err = tenant.AppsV1().ReplicaSets(e.namespace).Create(t.Context(), set, metav1.CreateOptions{})
	passed(t, "a ReplicaSet", err)
	e.until("its pod runs", func(ctx context.Context) bool {
		rs, err := admin.AppsV1().ReplicaSets(e.namespace).Get(ctx, "rs", metav1.GetOptions{})
		return err == nil && rs.Status.ReadyReplicas == 1
	})
	passed(t, "deletion of the ReplicaSet", tenant.AppsV1().ReplicaSets(e.namespace).Delete(t.Context(), "rs", metav1.DeleteOptions{}))
	passed(t, "an eviction", admin.CoreV1().Pods(e.namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "p"}}))

	// The device list of a node is its agent's, whatever else an operator may write there.
	node := func(text string) error {
		_, err := operator.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	passed(t, "a cordoned card", node(`{"metadata":{"annotations":{"enflame.com/gcu-cordon":"{\"version\":\"v1\",\"cards\":[{\"minor\":0}]}"}}}`))
	refused(t, "a made-up device list", node(`{"metadata":{"annotations":{"enflame.com/gcu-devices":"{}"}}}`), "written by the GCU node agent")
}

// A cordoned card takes no new holder, its holders stay, and uncordoning wakes who waits.
func TestCordonedCard(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	e.create(pod("a", gcuMemory, "4"))
	e.bound("a")
	operator := e.as("cordoner", "gcu-operator")
	patch := func(text string) {
		if _, err := operator.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"annotations":{"enflame.com/gcu-cordon":"{\"version\":\"v1\",\"cards\":[{\"minor\":0,\"reason\":\"fan\"}]}"}}}`)
	e.create(pod("b", gcuMemory, "4"))
	want(t, e.pending("b"), "1 GCU cards cordoned")
	if p := e.get("a"); p.DeletionTimestamp != nil {
		t.Error("a was deleted")
	}
	patch(`{"metadata":{"annotations":{"enflame.com/gcu-cordon":null}}}`)
	e.bound("b")
}

type typed = interface {
	Create(context.Context, *v1.Pod, metav1.CreateOptions) (*v1.Pod, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*v1.Pod, error)
	Bind(context.Context, *v1.Binding, metav1.CreateOptions) error
}

// as returns a client of a user of its own that has a ClusterRole: within the namespace for "edit" and
// "cluster-admin", and cluster-wide else. "binder" is a role of this test that may patch and bind pods.
func (e *env) as(user, role string) kubernetes.Interface {
	e.t.Helper()
	ctx, name := context.Background(), e.namespace+"-"+user
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var err error
	if role == "binder" {
		rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/binding", "bindings"}, Verbs: []string{"create", "patch"}}}
		_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			e.t.Fatal(err)
		}
	}
	if role == "edit" || role == "cluster-admin" {
		_, err = admin.RbacV1().RoleBindings(e.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		e.t.Cleanup(func() { _ = admin.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}) })
	}
	if err != nil {
		e.t.Fatal(err)
	}
	config, err := cluster.ConfigFor(name)
	if err != nil {
		e.t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

func refused(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v, want forbidden", what, err)
		return
	}
	want(t, err.Error(), parts...)
}

func passed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
