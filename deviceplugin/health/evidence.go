package health

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

const (
	newErrors  = "double-bit (uncorrectable) memory errors; what was computed on the card since may be wrong; reset it, and have it replaced if more come"
	oldErrors  = "double-bit memory errors were counted earlier; the card says that it is well"
	newRecords = "the driver's error log has new records; look at dmesg and efsmi"
)

// counter is the counter of double-bit errors of a card.
type counter struct {
	known bool
	value uint32
	// restored says that value is that of an earlier run, and the counter may have been reset meanwhile.
	restored bool
	// until is how long a rise is remembered.
	until time.Time
}

// count takes in a value and reports whether it has risen. A counter that is lower than before and not 0
// was reset and rose since; after a restart nobody knows when that was, so it is old.
func (e *counter) count(value uint32) bool {
	rose := e.known && (value > e.value || value < e.value && value > 0 && !e.restored)
	e.known, e.value, e.restored = true, value, false
	return rose
}

// judgeECC states double-bit errors: a fault for a while after the counter rose and for as long as the
// driver calls the card unhealthy, else a warning.
func (t *Tracker) judgeECC(c *track, now time.Time, s *eflib.Sample) {
	fresh, absent := false, false
	if s != nil {
		ecc, err := s.ECC.Get()
		fresh, absent = err == nil, unsupported(err)
		if fresh && c.ecc.count(ecc.DoubleBit) {
			c.ecc.until = now.Add(t.limits.Probation)
		}
	}
	counted := c.ecc.known && c.ecc.value > 0
	verdict := c.verdict.state
	switch {
	case now.Before(c.ecc.until), counted && verdict == eflib.Unhealthy:
		c.found.raise(now, ECCDoubleBit, proof, newErrors)
	case fresh && !counted, absent && verdict == eflib.Healthy:
		c.found.clear(ECCDoubleBit)
	case c.found.weightOf(ECCDoubleBit) == proof && (!fresh || verdict != eflib.Healthy):
		// Only a card that counts no more and says that it is well is believed.
	case fresh:
		c.found.raise(now, ECCDoubleBit, warning, oldErrors)
	}
}

// maxRecords is how many error records, the newest, are told apart.
const maxRecords = 128

// records are the error records of a card that were seen at the last look, as hashes, sorted.
type records struct {
	known bool
	seen  []uint64
	// until is how long a new record is remembered.
	until time.Time
}

// note takes in the log and reports whether it has records that it had not before.
func (r *records) note(log []eflib.ErrorRecord) bool {
	if len(log) > maxRecords {
		log = slices.Clone(log)
		slices.SortFunc(log, func(a, b eflib.ErrorRecord) int {
			return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(b.ID, a.ID))
		})
		log = log[:maxRecords]
	}
	var keys []uint64
	for _, e := range log {
		keys = append(keys, keyOf(e))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	fresh := r.known && slices.ContainsFunc(keys, func(k uint64) bool {
		_, found := slices.BinarySearch(r.seen, k)
		return !found
	})
	r.known, r.seen = true, keys
	return fresh
}

func keyOf(e eflib.ErrorRecord) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.BigEndian, e) // a hash takes everything
	return h.Sum64()
}

// judgeRecords states new error records: a warning for a while, and part of the fault where the driver
// calls the card unhealthy at the same time.
func (t *Tracker) judgeRecords(c *track, now time.Time, s *eflib.Sample) {
	if s != nil {
		if log, err := s.ErrorRecords.Get(); err == nil && c.log.note(log) {
			c.log.until = now.Add(t.limits.Probation)
		}
	}
	switch recent := now.Before(c.log.until); {
	case recent && c.verdict.state == eflib.Unhealthy:
		c.found.raise(now, ErrorEvent, proof, newRecords)
	case recent:
		c.found.raise(now, ErrorEvent, warning, newRecords)
	default:
		c.found.clear(ErrorEvent)
	}
}
