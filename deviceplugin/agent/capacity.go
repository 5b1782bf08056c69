package agent

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// announced returns the node's card list as it is written to the annotation. Cards that are gone stay in it
// as unhealthy for as long as they are remembered, unless another card has their minor: a record that names
// a card which is nowhere would close the node.
func announced(r health.Report, u units) contract.NodeDevices {
	var devices []eflib.Device
	present := map[int]bool{}
	for i := range r.Cards {
		if c := &r.Cards[i]; c.Present {
			present[c.Minor] = true
		}
	}
	gone := map[int]bool{}
	for i := range r.Cards {
		c := &r.Cards[i]
		if !c.Present {
			if present[c.Minor] || gone[c.Minor] {
				continue
			}
			gone[c.Minor] = true
		}
		d := c.Device
		d.Minor, d.UUID = c.Minor, c.UUID
		d.Health = eflib.Health{State: eflib.Healthy}
		if !c.Usable {
			d.Health = eflib.Health{State: eflib.Unhealthy, Cause: c.Problem()}
		}
		devices = append(devices, d)
	}
	return eflib.NodeDevices(devices, u.UnitMiB, u.SliceCount)
}

// setCapacity tells the ledger what the node has, read from the same text that the scheduler reads.
func (a *Agent) setCapacity() {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, err := contract.EncodeDevices(announced(a.report, a.units))
	if err != nil {
		// What cannot be announced is not given out either.
		a.logger.Error(err, "The cards cannot be announced")
		text = "{}"
	}
	a.version++
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: a.o.Node, ResourceVersion: strconv.FormatUint(a.version, 10),
			Labels:      map[string]string{a.o.Names.SharingLabel: strconv.FormatBool(a.node.sharing)},
			Annotations: map[string]string{a.o.Names.DevicesKey: text, a.o.Names.CordonKey: a.node.cordon},
		},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{}},
	}
	for k := range share.Kind(share.Kinds) {
		if k.Resource(a.o.Names) == "" {
			continue
		}
		// What is allocatable follows from the account, so it must not bound it.
		node.Status.Allocatable[v1.ResourceName(k.Resource(a.o.Names))] = *resource.NewQuantity(1<<40, resource.DecimalSI)
	}
	a.ledger.ObserveNode(node)
}

// cardsOf returns what the ledger knows of this node. It is never nil once the cards were looked at.
func (a *Agent) cardsOf() *ledger.Node { return a.ledger.Node(a.o.Node) }

// podsOn returns the pods that hold something of a card, in the order of their UIDs.
func (a *Agent) podsOn(minor int, uuid string) []types.UID {
	node := a.cardsOf()
	if node == nil {
		return nil
	}
	var out []types.UID
	for _, h := range node.Holders() {
		if holds(h, minor, uuid) {
			out = append(out, h.UID)
		}
	}
	return out
}

func holds(h *ledger.Holder, minor int, uuid string) bool {
	for _, c := range h.Containers {
		for _, card := range c.Cards {
			if card.Minor == minor && contract.NormalUUID(card.UUID) == contract.NormalUUID(uuid) {
				return true
			}
		}
	}
	return false
}

// faulty says whether a card is known to be broken.
func faultyIn(r health.Report) func(minor int, uuid string) bool {
	return func(minor int, uuid string) bool {
		for i := range r.Cards {
			if c := &r.Cards[i]; c.Minor == minor && contract.NormalUUID(c.UUID) == contract.NormalUUID(uuid) {
				return c.Faulty
			}
		}
		return false
	}
}
