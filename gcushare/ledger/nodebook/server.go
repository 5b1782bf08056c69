package nodebook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// pulse is how often a watch that has nothing to tell sends an empty line.
const pulse = 10 * time.Second

// Publisher serves the latest book to any number of readers. The zero value serves none yet.
type Publisher struct {
	mu      sync.Mutex
	text    []byte        // the latest book as a line, nil before the first
	changed chan struct{} // closed when text is replaced; nil while nobody waits
}

// Set makes a book the latest. It reports whether that changed anything.
func (p *Publisher) Set(b Book) (changed bool, err error) {
	b.Version = Version
	if b.Holdings == nil {
		b.Holdings = []Holding{}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	text = append(text, '\n')
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(text, p.text) {
		return false, nil
	}
	p.text = text
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true, nil
}

func (p *Publisher) latest() (text []byte, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.text, p.changed
}

// Handler returns the HTTP interface of the package comment.
func (p *Publisher) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/book", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			p.watch(w, r)
			return
		}
		text, _ := p.latest()
		if text == nil {
			http.Error(w, "the agent has not looked at its node yet; ask again", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // a reader that left is no concern of ours
	})
	return mux
}

func (p *Publisher) watch(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	text, changed := p.latest()
	for {
		if text != nil {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			text, changed = p.latest()
		case <-ticker.C:
			text = []byte("\n")
		}
	}
}
