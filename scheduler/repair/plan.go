package repair

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/repair/source"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// The version and kind of a Proposal in JSON and YAML.
const (
	APIVersion = "gcu.topscloud.dev/v1"
	Kind       = "RecordRepair"
)

// Proposal is a record as it is and as it should be.
type Proposal struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Pod        string `json:"pod"`
	Node       string `json:"node"`
	// Problem is what is wrong with the record as it is, empty when nothing is.
	Problem string `json:"problem,omitempty"`
	// Old and New are the records' texts; an empty Old is none, an empty New takes the record away.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Containers say where the new record is from.
	Containers []Container `json:"containers,omitempty"`
	// Remains are what else keeps the node closed after this.
	Remains []string `json:"remains,omitempty"`
	// Written says that it was stored.
	Written bool `json:"written"`

	pod *v1.Pod
}

// Container is one container's part in a proposal.
type Container struct {
	Name   string `json:"name"`
	Cards  []Card `json:"cards"`
	Source string `json:"source"`
}

// Card is a card and how much of it.
type Card struct {
	Minor int    `json:"minor"`
	UUID  string `json:"uuid"`
	MiB   int64  `json:"mib"`
	Whole bool   `json:"whole,omitempty"`
}

// Source knows the cards of some containers of a pod. The sources are asked in order, and the first that
// knows a container is believed. The book of a node's agent is one more of them.
type Source interface {
	// Name says where the knowledge is from, for the administrator who has to believe it.
	Name() string
	// Cards returns the cards of the containers it knows, by name.
	Cards(c *source.Case) (map[string][]source.Pick, error)
}

var (
	_ Source = source.Given(nil)
	_ Source = source.Record{}
	_ Source = source.Rest{}
)

// ErrNothingToDo says that the record is readable and agrees with the node.
var ErrNothingToDo = errors.New("nothing to repair")

// Options of Plan and Clear.
type Options struct {
	Names         *contract.Names
	Now           time.Time
	RecordTimeout time.Duration
}

// prepare looks at the pod as it is.
func prepare(s *survey.Survey, pod *v1.Pod, o Options) (*Proposal, *ledger.Node, *ledger.Holder, error) {
	switch {
	case !share.Asks(o.Names, pod):
		return nil, nil, nil, fmt.Errorf("pod %s asks for no GCU and has no record", pod.Name)
	case pod.Spec.NodeName == "":
		return nil, nil, nil, fmt.Errorf("pod %s is on no node yet; its record comes with its binding", pod.Name)
	case ledger.Ended(pod):
		return nil, nil, nil, fmt.Errorf("pod %s has ended and holds nothing", pod.Name)
	}
	l := s.Ledger(o.Now, o.RecordTimeout)
	n, h := l.Node(pod.Spec.NodeName), l.Holder(pod.UID)
	if n == nil || h == nil {
		return nil, nil, nil, fmt.Errorf("pod %s changed while it was read; try again", pod.Name)
	}
	p := &Proposal{
		APIVersion: APIVersion, Kind: Kind, Namespace: pod.Namespace, Pod: pod.Name, Node: n.Name,
		Old: pod.Annotations[o.Names.AllocationKey], Problem: h.Problem, pod: pod,
	}
	if h.State == ledger.Unrecorded {
		p.Problem = "the pod has no record"
	}
	for _, problem := range n.Problems {
		if p.Problem == "" && problem.Holder != nil && problem.Holder.UID == h.UID {
			p.Problem = problem.Text
		}
	}
	return p, n, h, nil
}

// Plan proposes a record. s is a complete survey with the pod in it.
func Plan(s *survey.Survey, pod *v1.Pod, sources []Source, given bool, o Options) (*Proposal, error) {
	p, n, h, err := prepare(s, pod, o)
	if err != nil {
		return nil, err
	}
	if p.Problem == "" && !given {
		return nil, fmt.Errorf("the record of pod %s can be read and agrees with node %s: %w", pod.Name, n.Name, ErrNothingToDo)
	}
	if n.Capacity().Closed == placement.NoGCU || n.Capacity().Closed == placement.BadDevices {
		return nil, fmt.Errorf("node %s does not say which cards it has (annotation %s); its agent has to, first", n.Name, o.Names.DevicesKey)
	}
	limits, err := containersOf(o.Names, pod)
	if err != nil {
		return nil, err
	}
	c := &source.Case{Names: o.Names, Pod: pod, Limits: limits, Node: n.Without(h.UID)}
	if err := p.fill(c, sources); err != nil {
		return nil, err
	}
	return p, p.try(s, o)
}

// containersOf reads the limits with the number of cards, if the annotations still tell it.
func containersOf(names *contract.Names, pod *v1.Pod) ([]share.Container, error) {
	if req, err := share.Parse(names, pod, share.Defaults{}); err == nil {
		return req.Containers, nil
	}
	limits, _, err := share.Limits(names, pod)
	return limits, err
}

// fill asks the sources for each container.
func (p *Proposal) fill(c *source.Case, sources []Source) error {
	known := make([]map[string][]source.Pick, len(sources))
	for i, s := range sources {
		var err error
		if known[i], err = s.Cards(c); err != nil {
			return err
		}
	}
	var unknown []error
	for i := range c.Limits {
		cont := c.Limits[i]
		at := slices.IndexFunc(known, func(m map[string][]source.Pick) bool { return len(m[cont.Name]) > 0 })
		if at < 0 {
			unknown = append(unknown, ask(c, &cont))
			continue
		}
		cards, err := cardsOf(c, cont, known[at][cont.Name])
		if err != nil {
			return fmt.Errorf("container %s, by %s: %w", cont.Name, sources[at].Name(), err)
		}
		p.Containers = append(p.Containers, Container{cont.Name, cards, sources[at].Name()})
	}
	return errors.Join(unknown...)
}

// ask says what the administrator has to find out.
func ask(c *source.Case, cont *share.Container) error {
	var cards []string
	for _, minor := range source.Room(c, cont) {
		cards = append(cards, fmt.Sprint(minor))
	}
	text := fmt.Sprintf("the cards of container %s are not known: ", cont.Name)
	switch len(cards) {
	case 0:
		text += "no card has room for it beside the other records, so one of those is wrong too"
	default:
		text += fmt.Sprintf("cards %s have room for it. Look on the node which it uses, and say so: --set %s=%s", strings.Join(cards, ", "), cont.Name, cards[0])
	}
	if h := source.Hint(c); h != "" {
		text += " (" + h + ")"
	}
	return errors.New(text)
}

// cardsOf completes picks to cards and holds them against the container's limits.
func cardsOf(c *source.Case, cont share.Container, picks []source.Pick) ([]Card, error) {
	if cont.Kind.Fractional() {
		cont.Cards = len(picks)
		if cont.Amount%int64(len(picks)) != 0 {
			return nil, fmt.Errorf("%d %s cannot be spread evenly over %d cards", cont.Amount, cont.Kind, len(picks))
		}
	} else if len(picks) != cont.Cards {
		return nil, fmt.Errorf("%d cards are named, the limit says %d", len(picks), cont.Cards)
	}
	var out []Card
	for _, pick := range picks {
		i := c.Node.Index(pick.Minor)
		if i < 0 {
			return nil, fmt.Errorf("node %s has no card %d", c.Node.Name, pick.Minor)
		}
		at := &c.Node.Cards[i]
		mib := cont.PerCardMiB(at.TotalMiB, c.Node.UnitMiB, c.Node.SliceCount)
		if pick.MiB > 0 && pick.MiB != mib {
			return nil, fmt.Errorf("card %d: %d MiB are given, the limit makes %d of each card", pick.Minor, pick.MiB, mib)
		}
		out = append(out, Card{Minor: pick.Minor, UUID: at.UUID, MiB: mib, Whole: !cont.Kind.Fractional()})
	}
	return out, nil
}

// try encodes the record and puts it into a copy of the account.
func (p *Proposal) try(s *survey.Survey, o Options) error {
	record := contract.Allocation{Node: p.Node}
	for _, c := range p.Containers {
		a := contract.ContainerAllocation{Name: c.Name}
		for _, card := range c.Cards {
			a.Cards = append(a.Cards, contract.CardAllocation{Minor: card.Minor, UUID: card.UUID, MemoryMiB: card.MiB, Whole: card.Whole})
		}
		record.Containers = append(record.Containers, a)
	}
	var err error
	if p.New, err = contract.EncodeAllocation(record); err != nil {
		return err
	}
	if p.New == p.Old {
		return fmt.Errorf("that is what the record of pod %s says already: %w", p.Pod, ErrNothingToDo)
	}
	l := p.changed(s, o).Ledger(o.Now, o.RecordTimeout)
	n, h := l.Node(p.Node), l.Holder(p.pod.UID)
	if h.State != ledger.Bound {
		return fmt.Errorf("the proposed record cannot be used: %s", h.Problem)
	}
	for _, charge := range n.ChargesOf(h) {
		card := &n.Cards[n.Index(charge.Minor)]
		if card.UsedMiB > card.TotalMiB || card.Whole && card.Holders > 1 {
			return fmt.Errorf("card %d of %s would be promised twice: %s", charge.Minor, p.Node, others(n, h, charge.Minor))
		}
	}
	for _, problem := range n.Problems {
		text := problem.Text
		if problem.Holder != nil {
			text = fmt.Sprintf("pod %s/%s: %s", problem.Holder.Namespace, problem.Holder.Name, text)
		}
		p.Remains = append(p.Remains, text)
	}
	return nil
}

// changed returns the survey with the pod as it would be.
func (p *Proposal) changed(s *survey.Survey, o Options) *survey.Survey {
	out := *s
	out.Pods = slices.Clone(s.Pods)
	for i, pod := range out.Pods {
		if pod.UID == p.pod.UID {
			out.Pods[i] = pod.DeepCopy()
			metav1.SetMetaDataAnnotation(&out.Pods[i].ObjectMeta, o.Names.AllocationKey, p.New)
		}
	}
	return &out
}

func others(n *ledger.Node, self *ledger.Holder, minor int) string {
	var list []string
	for _, h := range n.Holders() {
		for _, c := range n.ChargesOf(h) {
			if c.Minor == minor && h.UID != self.UID {
				list = append(list, fmt.Sprintf("%s/%s has %d MiB", h.Namespace, h.Name, c.MiB))
			}
		}
	}
	return fmt.Sprintf("of %d MiB %s", n.Cards[n.Index(minor)].TotalMiB, strings.Join(list, ", "))
}

// Clear proposes to take an unusable record away, so that the pod counts as unrecorded. A record that
// can be used is left alone.
func Clear(s *survey.Survey, pod *v1.Pod, o Options) (*Proposal, error) {
	p, _, _, err := prepare(s, pod, o)
	switch {
	case err != nil:
		return nil, err
	case p.Old == "":
		return nil, fmt.Errorf("pod %s has no record: %w", pod.Name, ErrNothingToDo)
	case p.Problem == "":
		return nil, fmt.Errorf("the record of pod %s can be read and agrees with node %s; it is not taken away: %w", pod.Name, p.Node, ErrNothingToDo)
	}
	return p, nil
}
