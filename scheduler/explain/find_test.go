package explain_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/topscloud/topscloud/scheduler/explain"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

func meta(name string, owner string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Labels: selector.MatchLabels}
	if owner != "" {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{UID: types.UID("uid-" + owner), Controller: &yes}}
	}
	return m
}

func owned(name, owner string, phase v1.PodPhase, node string, age time.Duration) *v1.Pod {
	p := surveytest.Waiting("team", name, surveytest.Memory("main", 8))
	p.ObjectMeta = meta(name, owner)
	p.CreationTimestamp = metav1.NewTime(now.Add(-age))
	p.Status.Phase, p.Spec.NodeName = phase, node
	return p
}

func deployment(replicas int32) []runtime.Object {
	return []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta("web", ""), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector}},
		&appsv1.ReplicaSet{ObjectMeta: meta("web-1", "web"), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector}},
	}
}

func TestFind(t *testing.T) {
	one := int32(1)
	waiting := owned("web-1-a", "web-1", v1.PodPending, "", time.Minute)
	older := owned("web-1-b", "web-1", v1.PodPending, "", time.Hour)
	running := owned("web-1-c", "web-1", v1.PodRunning, "n1", time.Hour)
	stranger := owned("web-x", "other", v1.PodPending, "", 2*time.Hour)
	refused := &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "e"}, Type: v1.EventTypeWarning, Reason: "FailedCreate",
		InvolvedObject: v1.ObjectReference{UID: "uid-train"}, Message: "exceeded quota: gcu",
	}
	job := &batchv1.Job{ObjectMeta: meta("train", ""), Spec: batchv1.JobSpec{Parallelism: &one, Selector: selector}}
	tests := map[string]struct {
		objects  []runtime.Object
		ask      string
		pod      string
		pods     string
		refusals string
		err      string
	}{
		"the longest wait of a deployment": {objects: append(deployment(3), waiting, older, running, stranger), ask: "deploy/web", pod: "web-1-b", pods: "3 wanted: 2 waiting, 1 running"},
		"a replica set":                    {objects: append(deployment(1), running), ask: "rs/web-1", pod: "web-1-c", pods: "1 wanted: 1 running"},
		"with the group's name":            {objects: append(deployment(1), running), ask: "deployments.apps/web", pod: "web-1-c", pods: "1 wanted: 1 running"},
		"a job whose pods are refused":     {objects: []runtime.Object{job, refused}, ask: "job/train", pods: "1 wanted: none there", refusals: "exceeded quota: gcu"},
		"a stateful set without pods":      {objects: []runtime.Object{&appsv1.StatefulSet{ObjectMeta: meta("db", ""), Spec: appsv1.StatefulSetSpec{Replicas: &one, Selector: selector}}}, ask: "sts/db", pods: "1 wanted: none there"},
		"a daemon set":                     {objects: []runtime.Object{&appsv1.DaemonSet{ObjectMeta: meta("agent", ""), Spec: appsv1.DaemonSetSpec{Selector: selector}}, owned("agent-x", "agent", v1.PodRunning, "n1", 0)}, ask: "ds/agent", pod: "agent-x", pods: "0 wanted: 1 running"},
		"a pod":                            {objects: []runtime.Object{waiting}, ask: "web-1-a", pod: "web-1-a"},
		"nothing of that name":             {ask: "deploy/web", err: `get deployment/web in namespace team: deployments.apps "web" not found`},
		"a kind that makes no pods":        {ask: "svc/web", err: "want a pod's name"},
		"too many slashes":                 {ask: "team/deploy/web", err: "want a pod's name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := explain.Find(t.Context(), fake.NewClientset(tt.objects...), "team", tt.ask)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if s.Pod != nil {
				got = s.Pod.Name
			}
			if got != tt.pod || s.Pods != tt.pods || strings.Join(s.Refusals, ";") != tt.refusals {
				t.Errorf("got pod %q, pods %q, refusals %q", got, s.Pods, s.Refusals)
			}
		})
	}
}

func TestClaims(t *testing.T) {
	class, later := "local", storagev1.VolumeBindingWaitForFirstConsumer
	claim := func(name string, phase v1.PersistentVolumeClaimPhase, class *string) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: v1.PersistentVolumeClaimSpec{StorageClassName: class}, Status: v1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	pod := surveytest.Waiting("team", "p", surveytest.Memory("main", 8))
	for _, name := range []string{"bound", "later", "pending", "lost", "missing"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	client := fake.NewClientset(pod, claim("bound", v1.ClaimBound, nil), claim("later", v1.ClaimPending, &class), claim("pending", v1.ClaimPending, nil), claim("lost", v1.ClaimLost, nil),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, VolumeBindingMode: &later})
	s, err := explain.Find(t.Context(), client, "team", "p")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Claims {
		got = append(got, f.Text)
	}
	if want := "Volume claim pending is not bound.|Volume claim lost has lost its volume.|Volume claim missing does not exist."; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "x", nil)
	})
	if s, err = explain.Find(t.Context(), client, "team", "p"); err != nil || len(s.Claims) != 0 || len(s.Unseen) != 5 {
		t.Errorf("%+v, %v: want five claims unseen", s, err)
	}
}
