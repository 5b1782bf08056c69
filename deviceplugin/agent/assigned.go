package agent

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/internal/contract"
)

// assigned notes on a pod for older tools that its containers have their cards. It is no truth, so it is
// done beside and once.
func (a *Agent) assigned(ctx context.Context, pod *v1.Pod) {
	a.forgive(pod.UID)
	keys := map[string]string{}
	a.markAssigned(keys, pod.Annotations)
	if len(keys) == 0 {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": keys}})
	if err != nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if _, err := a.o.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			a.logger.V(2).Info("A pod could not be marked as assigned", "pod", klog.KObj(pod), "err", err)
		}
	}()
}

// markAssigned sets the older keys of a pod whose containers have their cards, if it has those keys.
func (a *Agent) markAssigned(keys, has map[string]string) {
	if has[a.o.Names.AssignedKey] != "false" {
		return
	}
	keys[a.o.Names.AssignedKey] = "true"
	keys[a.o.Names.AssignedTimeKey] = strconv.FormatInt(time.Now().UnixNano(), 10)
	if text, ok := allocated(has[contract.AssignedContainersKey]); ok {
		keys[contract.AssignedContainersKey] = text
	}
}

// allocated sets allocated in every entry of the older annotation; other fields stay as they are.
func allocated(text string) (string, bool) {
	var entries map[string]map[string]any
	if err := json.Unmarshal([]byte(text), &entries); err != nil || len(entries) == 0 {
		return "", false
	}
	for _, entry := range entries {
		if entry == nil {
			return "", false
		}
		entry["allocated"] = true
	}
	out, err := json.Marshal(entries)
	return string(out), err == nil
}
