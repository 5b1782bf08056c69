package simnode

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is what kubelet does next about an admitted pod.
type step struct {
	// status is to be written; nil means no change.
	status *corev1.PodStatus
	// remove says that the pod object goes now.
	remove bool
	// after is when to look again; 0 means at the next event.
	after time.Duration
}

// address is what the node gives a pod.
type address struct{ host, pod string }

// start returns the status of a pod that kubelet has just admitted.
func start(pod *corev1.Pod, addr address, now time.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.Phase = corev1.PodPending
	t := metav1.NewTime(now)
	s.StartTime = &t
	s.HostIP, s.HostIPs = addr.host, []corev1.HostIP{{IP: addr.host}}
	s.PodIP = addr.pod
	if pod.Spec.HostNetwork {
		s.PodIP = addr.host
	}
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	s.InitContainerStatuses = waiting(pod.Spec.InitContainers, "PodInitializing")
	reason := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	s.ContainerStatuses = waiting(pod.Spec.Containers, reason)
	setCondition(s, corev1.PodReadyToStartContainers, true, "", now)
	setCondition(s, corev1.PodInitialized, false, "ContainersNotInitialized", now)
	setCondition(s, corev1.PodReady, false, "ContainersNotReady", now)
	setCondition(s, corev1.ContainersReady, false, "ContainersNotReady", now)
	return s
}

func waiting(containers []corev1.Container, reason string) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range containers {
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		})
	}
	return out
}

// refused returns the status of a pod that kubelet does not take.
func refused(pod *corev1.Pod, why *refusal, now time.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.Phase, s.Reason, s.Message = corev1.PodFailed, why.reason, why.message
	if s.StartTime == nil {
		t := metav1.NewTime(now)
		s.StartTime = &t
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].State.Terminated == nil {
				end(&list[i], killed, now)
			}
		}
	}
	setCondition(s, corev1.PodReady, false, "PodFailed", now)
	setCondition(s, corev1.ContainersReady, false, "PodFailed", now)
	return s
}

// killed is the exit code of a container that got SIGKILL.
const killed = 137

// next decides from the pod alone what kubelet does about a pod it has admitted.
func next(pod *corev1.Pod, now time.Time) step {
	if pod.DeletionTimestamp != nil {
		return stopping(pod, now)
	}
	if finished(pod) {
		return step{}
	}
	s := pod.Status.DeepCopy()
	for i, c := range pod.Spec.InitContainers {
		cs := containerStatus(&s.InitContainerStatuses, c)
		switch {
		case cs.State.Terminated != nil && !isSidecar(c):
			continue
		case cs.State.Running == nil:
			run(cs, now)
			if isSidecar(c) {
				continue
			}
			return step{status: s, after: duration(pod, InitForAnnotation)}
		case isSidecar(c):
			continue
		default:
			left := cs.State.Running.StartedAt.Add(duration(pod, InitForAnnotation)).Sub(now)
			if left > 0 {
				return step{after: left}
			}
			end(cs, 0, now)
			if moreInit(pod, i) {
				return step{status: s, after: time.Nanosecond}
			}
		}
	}
	if s.Phase != corev1.PodRunning {
		for _, c := range pod.Spec.Containers {
			run(containerStatus(&s.ContainerStatuses, c), now)
		}
		s.Phase = corev1.PodRunning
		setCondition(s, corev1.PodInitialized, true, "", now)
		setCondition(s, corev1.ContainersReady, true, "", now)
		setCondition(s, corev1.PodReady, true, "", now)
		return step{status: s, after: duration(pod, RunForAnnotation)}
	}
	return running(pod, s, now)
}

// moreInit reports whether an ordinary init container stands behind the i-th.
func moreInit(pod *corev1.Pod, i int) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers[i+1:], func(c corev1.Container) bool { return !isSidecar(c) })
}

// running ends the pod when its time is over.
func running(pod *corev1.Pod, s *corev1.PodStatus, now time.Time) step {
	runFor := duration(pod, RunForAnnotation)
	if runFor == 0 {
		return step{}
	}
	var began time.Time
	for _, cs := range s.ContainerStatuses {
		if r := cs.State.Running; r != nil && r.StartedAt.After(began) {
			began = r.StartedAt.Time
		}
	}
	if left := began.Add(runFor).Sub(now); left > 0 {
		return step{after: left}
	}
	code, _ := strconv.Atoi(pod.Annotations[ExitCodeAnnotation])
	endAll(pod, s, int32(code), now)
	return step{status: s}
}

// stopping ends the containers of a deleted pod and then removes it. The time they take is the pod's
// wish, at most its grace period.
func stopping(pod *corev1.Pod, now time.Time) step {
	grace := time.Duration(0)
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	asked := pod.DeletionTimestamp.Add(-grace)
	if left := asked.Add(min(duration(pod, StopForAnnotation), grace)).Sub(now); left > 0 {
		return step{after: left}
	}
	if finished(pod) || pod.Status.StartTime == nil {
		return step{remove: true}
	}
	s := pod.Status.DeepCopy()
	endAll(pod, s, 0, now)
	return step{status: s, remove: true}
}

// endAll terminates every container that has not ended and sets the pod's final phase.
func endAll(pod *corev1.Pod, s *corev1.PodStatus, code int32, now time.Time) {
	for i := range s.InitContainerStatuses {
		if s.InitContainerStatuses[i].State.Terminated == nil {
			end(&s.InitContainerStatuses[i], 0, now)
		}
	}
	for _, c := range pod.Spec.Containers {
		if cs := containerStatus(&s.ContainerStatuses, c); cs.State.Terminated == nil {
			end(cs, code, now)
		}
	}
	reason := "PodCompleted"
	s.Phase = corev1.PodSucceeded
	if code != 0 {
		s.Phase, reason = corev1.PodFailed, "PodFailed"
	}
	setCondition(s, corev1.PodReady, false, reason, now)
	setCondition(s, corev1.ContainersReady, false, reason, now)
}

func containerStatus(list *[]corev1.ContainerStatus, c corev1.Container) *corev1.ContainerStatus {
	i := slices.IndexFunc(*list, func(cs corev1.ContainerStatus) bool { return cs.Name == c.Name })
	if i < 0 {
		*list = append(*list, corev1.ContainerStatus{Name: c.Name, Image: c.Image})
		i = len(*list) - 1
	}
	return &(*list)[i]
}

func run(cs *corev1.ContainerStatus, now time.Time) {
	started := true
	cs.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	cs.Ready, cs.Started = true, &started
	cs.ContainerID, cs.ImageID = "sandbox://"+cs.Name, cs.Image
}

func end(cs *corev1.ContainerStatus, code int32, now time.Time) {
	t := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", FinishedAt: metav1.NewTime(now), ContainerID: cs.ContainerID}
	if code != 0 {
		t.Reason = "Error"
	}
	if r := cs.State.Running; r != nil {
		t.StartedAt = r.StartedAt
	}
	started := false
	cs.State = corev1.ContainerState{Terminated: t}
	cs.Ready, cs.Started = false, &started
}

// restarted returns the status after a reboot: every container that ran was started again.
func restarted(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if r := list[i].State.Running; r != nil {
				end(&list[i], killed, now)
				list[i].LastTerminationState = list[i].State
				run(&list[i], now)
				list[i].RestartCount++
			}
		}
	}
	return s
}

func setCondition(s *corev1.PodStatus, kind corev1.PodConditionType, is bool, reason string, now time.Time) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	c := corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now)}
	i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if s.Conditions[i].Status == status {
		c.LastTransitionTime = s.Conditions[i].LastTransitionTime
	}
	s.Conditions[i] = c
}

// duration reads an annotation of the sandbox; text that is no duration counts as none.
func duration(pod *corev1.Pod, key string) time.Duration {
	d, err := time.ParseDuration(pod.Annotations[key])
	if err != nil || d < 0 {
		return 0
	}
	return d
}
