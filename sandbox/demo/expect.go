package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Annotations of the examples. They mean nothing to the product.
const (
	ExpectAnnotation      = "gcu.sandbox/expect"
	ExpectCardsAnnotation = "gcu.sandbox/expect-cards"
)

const (
	expectRunning = "running"
	expectPending = "pending"
)

// settled reports whether the pod shows what it is expected to show.
func settled(p *corev1.Pod) bool {
	if p.Annotations[ExpectAnnotation] == expectPending {
		_, waits := waitingReason(p)
		return waits
	}
	return p.Status.Phase == corev1.PodRunning
}

// judge returns what is wrong with a pod, or "".
func judge(p *corev1.Pod, node *corev1.Node, names *contract.Names) string {
	switch want := p.Annotations[ExpectAnnotation]; want {
	case expectPending:
		if p.Spec.NodeName != "" {
			return fmt.Sprintf("should wait and is on %s", p.Spec.NodeName)
		}
		if !settled(p) {
			return "should wait with a reason and has none"
		}
		return ""
	case expectRunning:
		if p.Status.Phase != corev1.PodRunning {
			reason, _ := waitingReason(p)
			return strings.TrimSpace(fmt.Sprintf("should run and is %s %s %s", p.Status.Phase, p.Status.Message, reason))
		}
	default:
		return fmt.Sprintf("annotation %s is %q: want running or pending", ExpectAnnotation, want)
	}
	want, ok := p.Annotations[ExpectCardsAnnotation]
	if !ok {
		return ""
	}
	return judgeCards(p, node, names, want)
}

func judgeCards(p *corev1.Pod, node *corev1.Node, names *contract.Names, want string) string {
	countText, level, _ := strings.Cut(want, " ")
	count, err := strconv.Atoi(countText)
	if err != nil || level != "" && level != contract.TopologySameSwitch {
		return fmt.Sprintf("annotation %s is %q: want a number, or a number and same-switch", ExpectCardsAnnotation, want)
	}
	record, err := recordOf(p, names)
	if err != nil {
		return err.Error()
	}
	minors := record.minors()
	if len(minors) != count {
		return fmt.Sprintf("should hold %d cards and holds %d", count, len(minors))
	}
	if level == "" {
		return ""
	}
	together, err := sameSwitch(node, minors, names)
	if err != nil {
		return err.Error()
	}
	if !together {
		return fmt.Sprintf("cards %v should sit below one switch", minors)
	}
	return ""
}

func sameSwitch(node *corev1.Node, minors []int, names *contract.Names) (bool, error) {
	devices, err := contract.DecodeDevices(node.Annotations[names.DevicesKey])
	if err != nil {
		return false, fmt.Errorf("node %s: %w", node.Name, err)
	}
	cards := make([]topology.Card, 0, len(devices.Devices))
	for _, d := range devices.Devices {
		cards = append(cards, topology.Card{Minor: d.Minor, Bridges: d.Bridges, NUMA: d.NUMA})
	}
	tree, err := topology.New(cards)
	if err != nil {
		return false, fmt.Errorf("node %s: %w", node.Name, err)
	}
	for _, m := range minors[1:] {
		if tree.Level(minors[0], m) > topology.SameSwitch {
			return false, nil
		}
	}
	return true, nil
}

// waitingReason returns why the scheduler has not placed a pod.
func waitingReason(p *corev1.Pod) (string, bool) {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
	if i < 0 {
		return "", false
	}
	return p.Status.Conditions[i].Message, true
}
