package sampler

import (
	"cmp"
	"slices"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Count is how many records of a class the driver's error log had.
type Count struct {
	// Type is the driver's reset type.
	Type    uint32
	Records uint64
}

// tally is what is added up about a card over its looks. It outlives the card's leaving and coming back, so that no
// counter goes down while the exporter runs.
type tally struct {
	joules float64
	// watts is the power at the time at; metered says whether there was one ever.
	watts   float64
	at      time.Time
	metered bool

	seen    map[record]struct{}
	records map[uint32]uint64
	counts  []Count // records, sorted by type; never changed in place
}

// record is what a record of the error log is known by. A log that was cleared may number anew, so the time belongs
// to it.
type record struct{ id, timestamp uint64 }

// resetTypes is how many reset types the driver's interface has. They are told from the start, with 0: a counter that
// begins with its first record hides that record from whoever asks for an increase.
const resetTypes = 5

// maxSeen bounds the records that are remembered. Beyond it, those that the log has no longer are forgotten.
const maxSeen = 1 << 14

// take adds a look that began at some time. Nothing is credited for a time of which nothing is known: between two
// powers that are more than gap apart.
func (t *tally) take(s *eflib.Sample, at time.Time, gap time.Duration) {
	if watts, known := s.PowerWatts.Value(); known {
		if since := at.Sub(t.at); t.metered && since > 0 && since <= gap {
			t.joules += (t.watts + watts) / 2 * since.Seconds()
		}
		t.watts, t.at, t.metered = watts, at, true
	}
	list, known := s.ErrorRecords.Value()
	if !known {
		return
	}
	fresh := t.seen == nil
	if fresh {
		t.seen, t.records = map[record]struct{}{}, map[uint32]uint64{}
		for kind := range uint32(resetTypes) {
			t.records[kind] = 0
		}
	}
	for _, r := range list {
		key := record{r.ID, r.Timestamp}
		if _, old := t.seen[key]; !old {
			t.seen[key] = struct{}{}
			t.records[r.ResetType]++
			fresh = true
		}
	}
	if fresh {
		t.counts = make([]Count, 0, len(t.records))
		for kind, n := range t.records {
			t.counts = append(t.counts, Count{kind, n})
		}
		slices.SortFunc(t.counts, func(a, b Count) int { return cmp.Compare(a.Type, b.Type) })
	}
	if len(t.seen) > maxSeen {
		clear(t.seen)
		for _, r := range list {
			t.seen[record{r.ID, r.Timestamp}] = struct{}{}
		}
	}
}
