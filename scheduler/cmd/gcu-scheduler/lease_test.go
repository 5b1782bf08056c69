package main

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/utils/clock"

	"github.com/topscloud/topscloud/scheduler/lease"
)

type lock struct{ resourcelock.Interface }

func (lock) Identity() string { return "me" }

func (lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// The elector's lock must be the one that tells the plugin, or the plugin takes itself for the leader always.
func TestWatchLease(t *testing.T) {
	t.Parallel()
	for _, elects := range []bool{true, false} {
		config := &schedulerconfig.Config{}
		if elects {
			config.LeaderElection = &leaderelection.LeaderElectionConfig{Lock: lock{}, RenewDeadline: 10 * time.Second}
		}
		completed := config.Complete()
		hold := lease.NewHold(clock.RealClock{})
		watchLease(&completed, hold)
		if _, err := hold.Term(); (err == nil) == elects {
			t.Errorf("with an election %t, before any renewal: %v", elects, err)
		}
		if !elects {
			continue
		}
		now := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}
		now.RenewTime.Time = time.Now()
		if err := completed.LeaderElection.Lock.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if _, err := hold.Term(); err != nil {
			t.Errorf("after a renewal: %v", err)
		}
	}
}
