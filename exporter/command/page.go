package command

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/sampler"
)

// Cards are looked at every few seconds, and what a scrape tells of them changes only then. Writing a thousand series
// and compressing them takes longer than all else a scrape does; so it is done once after each change, in the
// background, and a scrape adds the exporter's own metrics to what is there.

const (
	// refresh is how often is looked whether something has changed.
	refresh = 500 * time.Millisecond
	// pageAge is how old a page may get without a change: what is known gets too old to be told by time alone.
	pageAge = 5 * time.Second
	// staleAge is from when on a page is not served any more, however it came about.
	staleAge = 2 * pageAge
)

// textFormat is the format that a page is in.
var textFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

// page is the text about all cards, as it is and compressed. It is immutable.
type page struct {
	made time.Time
	// complete says whether all cards had been looked at by then.
	complete bool
	plain    []byte
	// deflated is plain without an end, so that more can follow; sum is plain's CRC-32.
	deflated []byte
	sum      uint32
}

// pager keeps a page.
type pager struct {
	cards  prometheus.Gatherer
	latest atomic.Pointer[page]
}

// compressors are large and used for a moment, so that many exporters in one process share a few.
var compressors = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is one that there is
	}
	return w
}}

// run renders whenever what is told may have changed, until ctx ends. looked says whether all cards were looked at.
func (p *pager) run(ctx context.Context, s *sampler.Sampler, owners *attribution.Attributor, looked func() bool) {
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	var version uint64
	var snapshot *attribution.Snapshot
	for {
		last := p.latest.Load()
		changed := s.Version() != version || owners != nil && owners.Latest() != snapshot
		if changed || last == nil || time.Since(last.made) >= pageAge {
			// Both are read before the cards are, so that a change meanwhile is seen the next time.
			version = s.Version()
			if owners != nil {
				snapshot = owners.Latest()
			}
			complete := looked()
			if now, err := p.render(); err == nil {
				now.complete = complete
				p.latest.Store(now)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// ready says whether there is a page with all cards.
func (p *pager) ready() bool {
	now := p.latest.Load()
	return now != nil && now.complete
}

// render writes a page.
func (p *pager) render() (*page, error) {
	families, err := p.cards.Gather()
	if err != nil {
		return nil, err
	}
	out := &page{made: time.Now()}
	if out.plain, err = encode(families); err != nil {
		return nil, err
	}
	out.sum = crc32.ChecksumIEEE(out.plain)
	var b bytes.Buffer
	writer := compressors.Get().(*flate.Writer)
	defer compressors.Put(writer)
	writer.Reset(&b)
	if _, err := writer.Write(out.plain); err != nil {
		return nil, err
	}
	err = writer.Flush() // ends at a byte, and not the stream
	out.deflated = bytes.Clone(b.Bytes())
	return out, err
}

func encode(families []*dto.MetricFamily) ([]byte, error) {
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, textFormat)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// serve answers a scrape with the page and what own gathers, and says whether it did: it does not where there is no
// page or another format is asked for.
func (p *pager) serve(w http.ResponseWriter, r *http.Request, own prometheus.Gatherer) bool {
	now := p.latest.Load()
	if now == nil || time.Since(now.made) > staleAge || expfmt.Negotiate(r.Header).FormatType() != expfmt.TypeTextPlain {
		return false
	}
	families, err := own.Gather()
	if err != nil {
		return false
	}
	tail, err := encode(families)
	if err != nil {
		return false
	}
	w.Header().Set("Content-Type", string(textFormat))
	w.Header().Set("Vary", "Accept-Encoding")
	if !acceptsGzip(r) {
		_, _ = w.Write(now.plain) // who hangs up is not told of an error
		_, _ = w.Write(tail)
		return true
	}
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	_, _ = w.Write(now.deflated)
	_, _ = w.Write(now.end(tail))
	return true
}

// end is the rest of a gzip stream behind deflated: tail as it is, in stored blocks, and the trailer.
func (p *page) end(tail []byte) []byte {
	const most = 1<<16 - 1
	sum, size := crc32.Update(p.sum, crc32.IEEETable, tail), uint32(len(p.plain)+len(tail))
	out := make([]byte, 0, len(tail)+64)
	for first := true; first || len(tail) > 0; first = false {
		n := min(len(tail), most)
		last := byte(0)
		if n == len(tail) {
			last = 1
		}
		out = append(out, last)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(n))
		out = append(out, tail[:n]...)
		tail = tail[n:]
	}
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, size)
}

// acceptsGzip says whether who asks takes gzip; one who says so with a weight other than 0 does.
func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" && strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" {
			return true
		} else if strings.TrimSpace(name) == "gzip" && weight == "" {
			return true
		}
	}
	return false
}
