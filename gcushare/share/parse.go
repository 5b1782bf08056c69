package share

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/topscloud/topscloud/internal/contract"
)

// maxUnits is the most units or slices one container can hold: every unit of the smallest size on the
// largest host.
const maxUnits = contract.MaxCards * 1 << 20

// DefaultUnitMiB is the memory unit of a node that sets none: 1 GiB.
const DefaultUnitMiB = 1024

// Asks says whether any container of the pod has a GCU limit. It is the cheap test for pods that are
// none of our business.
func Asks(names *contract.Names, pod *v1.Pod) bool {
	for i := range pod.Spec.InitContainers {
		if asks(names, &pod.Spec.InitContainers[i]) {
			return true
		}
	}
	for i := range pod.Spec.Containers {
		if asks(names, &pod.Spec.Containers[i]) {
			return true
		}
	}
	return false
}

func asks(names *contract.Names, c *v1.Container) bool {
	for k := Kind(0); k < Kinds; k++ {
		if q, ok := c.Resources.Limits[v1.ResourceName(k.Resource(names))]; ok && !q.IsZero() {
			return true
		}
	}
	return false
}

// Defaults fill in what a pod leaves open.
type Defaults struct {
	// UnitMiB is the memory unit that most nodes use, for the message about a quantity written in
	// bytes; 0 means 1 GiB.
	UnitMiB int64
	Policy  Policy
}

// Parse reads a pod's request. It returns nil, nil for a pod that asks for no GCU and an
// *InvalidError for one that asks in a way no node can meet.
func Parse(names *contract.Names, pod *v1.Pod, d Defaults) (*Request, error) {
	if !Asks(names, pod) {
		return nil, nil
	}
	unitMiB := d.UnitMiB
	if unitMiB < 1 {
		unitMiB = DefaultUnitMiB
	}
	req := &Request{Policy: d.Policy}
	if err := req.parseAnnotations(names, pod.Annotations); err != nil {
		return nil, err
	}
	cards, err := parseCards(names, pod.Annotations)
	if err != nil {
		return nil, err
	}
	if req.Containers, err = limits(names, pod, unitMiB); err != nil {
		return nil, err
	}
	if cards > 0 {
		if err := req.spreadOver(names, cards); err != nil {
			return nil, err
		}
	}
	req.Totals = totals(req.Containers)
	return req, nil
}

// Limits reads what the pod's containers ask for, its annotations left out: a pod that runs holds what
// its limits say, whatever became of its annotations since. Cards of a fractional container is 1.
func Limits(names *contract.Names, pod *v1.Pod) ([]Container, Totals, error) {
	list, err := limits(names, pod, DefaultUnitMiB)
	if err != nil {
		return nil, Totals{}, err
	}
	return list, totals(list), nil
}

func limits(names *contract.Names, pod *v1.Pod, unitMiB int64) ([]Container, error) {
	var out []Container
	for i := range pod.Spec.InitContainers {
		c, err := parseContainer(names, &pod.Spec.InitContainers[i], unitMiB)
		if err != nil {
			return nil, err
		}
		if c != nil {
			c.Phase = initPhase(&pod.Spec.InitContainers[i])
			out = append(out, *c)
		}
	}
	for i := range pod.Spec.Containers {
		c, err := parseContainer(names, &pod.Spec.Containers[i], unitMiB)
		if err != nil {
			return nil, err
		}
		if c != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}

// spreadOver applies gcu-cards: each fractional container is spread evenly over that many cards.
func (r *Request) spreadOver(names *contract.Names, cards int) error {
	if !r.Fractional() {
		return &InvalidError{names.CardsKey, strconv.Itoa(cards), fmt.Sprintf("applies to %s and %s, which no container asks for", names.ResourceMemory, names.ResourceSlice)}
	}
	for i := range r.Containers {
		c := &r.Containers[i]
		if !c.Kind.Fractional() {
			continue
		}
		if c.Amount%int64(cards) != 0 {
			return &InvalidError{"limit " + c.Kind.Resource(names), strconv.FormatInt(c.Amount, 10), fmt.Sprintf("want a multiple of %s, which is %d", names.CardsKey, cards)}
		}
		c.Cards = cards
	}
	return nil
}

func initPhase(c *v1.Container) Phase {
	if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
		return Sidecar
	}
	return Init
}

func parseContainer(names *contract.Names, c *v1.Container, unitMiB int64) (*Container, error) {
	var out *Container
	for k := Kind(0); k < Kinds; k++ {
		name := k.Resource(names)
		q, ok := c.Resources.Limits[v1.ResourceName(name)]
		if !ok || q.IsZero() {
			continue
		}
		if out != nil {
			return nil, &InvalidError{"limit " + name, q.String(), fmt.Sprintf("one container may ask for one kind only, and it also asks for %s", out.Kind.Resource(names))}
		}
		amount, err := parseAmount(k, name, q, unitMiB)
		if err != nil {
			return nil, err
		}
		out = &Container{Name: c.Name, Kind: k, Amount: amount, Cards: 1}
		if !k.Fractional() {
			out.Cards = int(amount)
		}
	}
	return out, nil
}

// parseAmount reads a limit. A quantity with a byte suffix is the common mistake: the API server
// takes 8Gi for 8,589,934,592 units, which no card has.
func parseAmount(k Kind, name string, q resource.Quantity, unitMiB int64) (int64, error) {
	amount, exact := q.AsInt64()
	limit := int64(maxUnits)
	if !k.Fractional() {
		limit = contract.MaxCards
	}
	inBytes := k == Memory && exact && (amount > limit || q.Format == resource.BinarySI && amount >= 1<<20)
	if exact && amount >= 1 && amount <= limit && !inBytes {
		return amount, nil
	}
	if inBytes {
		unit := Mul(unitMiB, 1<<20)
		return 0, &InvalidError{"limit " + name, q.String(), fmt.Sprintf("%s is %d units of %s; write %d", q.String(), amount, unitName(unitMiB), (amount-1)/unit+1)}
	}
	return 0, &InvalidError{"limit " + name, q.String(), fmt.Sprintf("want a whole number of %s from 1 to %d", k, limit)}
}

func unitName(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%d GiB", mib/1024)
	}
	return fmt.Sprintf("%d MiB", mib)
}

func (r *Request) parseAnnotations(names *contract.Names, a map[string]string) error {
	switch v, ok := a[names.PolicyKey]; {
	case !ok:
	case v == contract.PolicyBinpack:
		r.Policy = Binpack
	case v == contract.PolicySpread:
		r.Policy = Spread
	default:
		return &InvalidError{names.PolicyKey, v, oneOf(contract.PolicyBinpack, contract.PolicySpread)}
	}
	switch v, ok := a[names.TopologyKey]; {
	case !ok || v == contract.TopologyBestEffort:
	case v == contract.TopologySameSwitch:
		r.Topology = SameSwitch
	case v == contract.TopologySameNUMA:
		r.Topology = SameNUMA
	case v == contract.TopologyNone:
		r.Topology = AnyTopology
	default:
		return &InvalidError{names.TopologyKey, v, oneOf(contract.TopologyBestEffort, contract.TopologySameSwitch, contract.TopologySameNUMA, contract.TopologyNone)}
	}
	var err error
	if r.Use, err = parseUUIDs(names.UseUUIDKey, a); err != nil {
		return err
	}
	r.NoUse, err = parseUUIDs(names.NoUseUUIDKey, a)
	return err
}

func oneOf(values ...string) string { return "want " + strings.Join(values, ", ") }

func parseCards(names *contract.Names, a map[string]string) (int, error) {
	v, ok := a[names.CardsKey]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > contract.MaxCards {
		return 0, &InvalidError{names.CardsKey, v, fmt.Sprintf("want a number of cards from 1 to %d", contract.MaxCards)}
	}
	return n, nil
}

func parseUUIDs(key string, a map[string]string) ([]string, error) {
	v, ok := a[key]
	if !ok {
		return nil, nil
	}
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		uuid := contract.NormalUUID(part)
		if uuid == "" || uuid == contract.UUIDPrefix {
			return nil, &InvalidError{key, v, "want card uuids separated by commas"}
		}
		out = append(out, uuid)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
