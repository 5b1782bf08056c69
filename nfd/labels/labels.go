package labels

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topscloud/topscloud/internal/contract"
)

// Set are labels by their full keys.
type Set map[string]string

// Options say which labels are made.
type Options struct {
	// Names are the names to use; nil are the default ones.
	Names *contract.Names
	// Present adds gcu.present, for clusters where no rule of NFD sets it.
	Present bool
	// NoTimestamp leaves out both timestamps; Touch moves the latest one with each look.
	NoTimestamp, Touch bool
	// Domains get all labels in addition to the domain of Names.
	Domains []string
}

// Result is the set of labels of a node.
type Result struct {
	Labels Set
	// False lists keys that no label of this node can truly have, whoever writes it: the cards were asked and
	// differ. Sorted.
	False []string
}

// Of returns the labels of a node. Before is what was published until now; nothing is kept of it but what
// the package comment says. Facts without any card give no labels.
func Of(f Facts, before Set, now time.Time, o Options) Result {
	if o.Names == nil {
		o.Names = contract.Default()
	}
	if f.Count() == 0 {
		return Result{Labels: Set{}}
	}
	m := &maker{Options: o, facts: f, before: before, set: Set{}}
	m.count()
	m.texts()
	m.cards()
	m.models()
	m.virtual()
	if o.Present {
		m.set[o.Names.PresentLabel] = "true"
	}
	m.timestamps(now)
	m.mirror()
	slices.Sort(m.denied)
	return Result{Labels: m.set, False: m.denied}
}

// Count returns how many cards a published set says the node has, and whether it says so.
func Count(set Set, names *contract.Names) (int, bool) {
	n, err := strconv.Atoi(set[names.Label(contract.LabelCount)])
	return n, err == nil && n > 0
}

// Text returns the labels as sorted lines key=value.
func (s Set) Text() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s=%s\n", key, s[key])
	}
	return b.String()
}

type maker struct {
	Options
	facts  Facts
	before Set
	set    Set
	denied []string
}

// count keeps a number that was published and can still be true: a card that tells nothing is a card.
func (m *maker) count() {
	key := m.Names.Label(contract.LabelCount)
	n := m.facts.Count()
	if was, ok := Count(m.before, m.Names); ok && m.facts.Silent > 0 && was >= len(m.facts.Cards) && was <= n {
		n = was
	}
	m.set[key] = strconv.Itoa(n)
}

func (m *maker) texts() {
	for suffix, text := range map[string]Text{contract.LabelDriverVer: m.facts.Driver, contract.LabelMachine: m.facts.Machine} {
		m.put(m.Names.Label(suffix), []fact{{Value(text.Value), text.Unread}})
	}
}

func (m *maker) cards() {
	for suffix, of := range map[string]func(Card) string{
		contract.LabelModel:   func(c Card) string { return Value(c.Model) },
		contract.LabelProduct: func(c Card) string { return Value(c.Product) },
		contract.LabelFamily:  func(c Card) string { return Value(c.Family) },
	} {
		facts := m.each(func(c Card) fact {
			value := of(c)
			// What the PCI id tells is certain, and a model that is known has told all that its id can tell.
			return fact{value, c.Unread && c.Model == ""}
		})
		m.put(m.Names.Label(suffix), facts)
	}
	m.put(m.Names.Label(contract.LabelMemory), m.each(func(c Card) fact { return fact{memory(c.MemoryMiB), c.Unread} }))
	for _, suffix := range []string{contract.LabelProduct, contract.LabelModel} {
		m.copy(m.Names.Label(suffix), m.Names.AliasPrefix+suffix)
	}
}

// each returns the facts of all cards, those that tell nothing included.
func (m *maker) each(of func(Card) fact) []fact {
	facts := make([]fact, 0, m.facts.Count())
	for _, c := range m.facts.Cards {
		facts = append(facts, of(c))
	}
	for range m.facts.Silent {
		facts = append(facts, fact{unread: true})
	}
	return facts
}

// put sets a label by what all facts say.
func (m *maker) put(key string, facts []fact) {
	v, known := agree(facts)
	switch v {
	case same:
		if known != "" {
			m.set[key] = known
		}
	case differs:
		m.denied = append(m.denied, key)
	case pending:
		if was, ok := m.before[key]; ok && !m.grown() && (known == "" || known == was) {
			m.set[key] = was
		}
	case untold:
	}
}

// grown says whether there are more cards than were published: what was true of those need not be true of
// the new ones.
func (m *maker) grown() bool {
	was, ok := Count(m.before, m.Names)
	return ok && m.facts.Count() > was
}

// copy gives a key the value of another one.
func (m *maker) copy(from, to string) {
	if value, ok := m.set[from]; ok {
		m.set[to] = value
	}
	if slices.Contains(m.denied, from) {
		m.denied = append(m.denied, to)
	}
}

// models counts each model where there are several.
func (m *maker) models() {
	counts := map[string]int{}
	waiting := m.facts.Silent > 0
	for _, c := range m.facts.Cards {
		if c.Model != "" {
			counts[m.modelKey(c.Model)]++
		}
		waiting = waiting || c.Model == "" && c.Unread
	}
	if was := m.modelsBefore(); waiting && m.stillTrue(was, counts) {
		counts = was
	}
	if len(counts) < 2 {
		return
	}
	for key, n := range counts {
		m.set[key] = strconv.Itoa(n)
	}
}

const countSuffix = "." + contract.LabelCount

func (m *maker) modelKey(model string) string {
	_, prefix, _ := strings.Cut(m.Names.LabelPrefix, "/")
	return m.Names.LabelPrefix + legal(model, maxLabel-len(prefix)-len(countSuffix)) + countSuffix
}

func (m *maker) modelsBefore() map[string]int {
	counts := map[string]int{}
	for key, value := range m.before {
		n, err := strconv.Atoi(value)
		name, ours := strings.CutPrefix(key, m.Names.LabelPrefix)
		if err == nil && n > 0 && ours && strings.HasSuffix(name, countSuffix) {
			counts[key] = n
		}
	}
	return counts
}

// stillTrue says whether the counts that were published can be those of the node: of no model more cards
// answered than were counted, and the sum is that of the node.
func (m *maker) stillTrue(was, now map[string]int) bool {
	sum := 0
	for _, n := range was {
		sum += n
	}
	for key, n := range now {
		if n > was[key] {
			return false
		}
	}
	return len(was) > 1 && strconv.Itoa(sum) == m.set[m.Names.Label(contract.LabelCount)]
}

// virtual sets the labels of vGCUs, where there are any.
func (m *maker) virtual() {
	prefix := m.Names.VirtualPrefix
	var hosts []Card
	var memories []fact
	waiting := m.facts.Silent > 0
	for _, c := range m.facts.Cards {
		waiting = waiting || c.VirtualUnread
		if len(c.Virtual) == 0 {
			continue
		}
		hosts = append(hosts, c)
		for _, v := range c.Virtual {
			memories = append(memories, fact{memory(v.MemoryMiB), v.Unread})
		}
	}
	if waiting {
		was := false
		for key, value := range m.before {
			if strings.HasPrefix(key, prefix) {
				m.set[key], was = value, true
			}
		}
		if was {
			return
		}
	}
	if len(hosts) == 0 {
		return
	}
	m.set[prefix+contract.LabelPresent] = "true"
	m.set[prefix+contract.LabelCount] = strconv.Itoa(len(memories))
	m.copy(m.Names.Label(contract.LabelMachine), prefix+contract.LabelMachine)
	m.put(prefix+contract.LabelMemory, memories)
	var models, families []fact
	for _, c := range hosts {
		models = append(models, fact{Value(c.Model), c.Unread && c.Model == ""})
		families = append(families, fact{Value(c.Family), c.Unread && c.Model == ""})
	}
	m.put(prefix+contract.LabelModel, models)
	m.put(prefix+contract.LabelFamily, families)
}

// timestamps sets both, by comparing all other labels with those that were published.
func (m *maker) timestamps(now time.Time) {
	if m.NoTimestamp {
		return
	}
	first, latest := m.Names.DiscoveryPrefix+contract.LabelTimestamp, m.Names.DiscoveryPrefix+contract.LabelLatestTimestamp
	stamp := now.UTC().Format(contract.TimestampLayout)
	m.set[first], m.set[latest] = stamp, stamp
	was := m.own(m.before)
	if !isStamp(was[first]) || !isStamp(was[latest]) {
		return
	}
	delete(was, first)
	delete(was, latest)
	others := m.own(m.set)
	delete(others, first)
	delete(others, latest)
	if !maps.Equal(was, others) {
		return
	}
	m.set[first] = m.before[first]
	if !m.Touch {
		m.set[latest] = m.before[latest]
	}
}

func isStamp(text string) bool {
	_, err := time.Parse(contract.TimestampLayout, text)
	return err == nil
}

// own returns the labels of the domain of Names: those of other domains are copies.
func (m *maker) own(set Set) Set {
	out := Set{}
	for key, value := range set {
		if strings.HasPrefix(key, m.Names.Domain+"/") {
			out[key] = value
		}
	}
	return out
}

// mirror repeats all labels under the other domains.
func (m *maker) mirror() {
	denied := m.denied
	for _, domain := range m.Domains {
		if domain == m.Names.Domain {
			continue
		}
		other := func(key string) string { return domain + strings.TrimPrefix(key, m.Names.Domain) }
		for key, value := range m.own(m.set) {
			m.set[other(key)] = value
		}
		for _, key := range denied {
			m.denied = append(m.denied, other(key))
		}
	}
}

// memory returns the memory label of a size, "" for one that is not known.
func memory(mib int64) string {
	const gib = 1024
	if mib > gib {
		mib -= mib % gib
	}
	if mib < 1 {
		return ""
	}
	return strconv.FormatInt(mib, 10)
}
