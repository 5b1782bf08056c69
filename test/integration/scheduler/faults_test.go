package scheduler_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// faults stands between a scheduler and the API server and spoils the answers to Bindings.
type faults struct {
	next http.RoundTripper

	// mu guards plan: by pod name, what to do with each Binding of it in turn.
	mu   sync.Mutex
	plan map[string][]fault
	sent map[string]int

	letGo chan struct{}
}

type fault int

const (
	pass      fault = iota
	lost            // stored, then answered with 504
	cut             // stored, then the connection breaks
	serverErr       // not stored, answered with 500
	throttled       // not stored, answered with 429
	held            // sent on when let go
)

func newFaults(plan map[string][]fault) *faults {
	return &faults{plan: plan, sent: map[string]int{}, letGo: make(chan struct{})}
}

func (f *faults) wrap(next http.RoundTripper) http.RoundTripper {
	f.next = next
	return f
}

// bindings says how many Bindings of a pod were tried.
func (f *faults) bindings(pod string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[pod]
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	pod, isBinding := strings.CutSuffix(r.URL.Path, "/binding")
	if !isBinding || r.Method != http.MethodPost {
		return f.next.RoundTrip(r)
	}
	pod = pod[strings.LastIndex(pod, "/")+1:]
	f.mu.Lock()
	f.sent[pod]++
	what := pass
	if plan := f.plan[pod]; len(plan) > 0 {
		what, f.plan[pod] = plan[0], plan[1:]
	}
	f.mu.Unlock()
	switch what {
	case lost, cut:
		answer, err := f.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		if what == cut {
			return nil, errors.New("connection reset by peer")
		}
		return status(r, http.StatusGatewayTimeout, "Timeout"), nil
	case held:
		select {
		case <-f.letGo:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case serverErr:
		return status(r, http.StatusInternalServerError, "InternalError"), nil
	case throttled:
		return status(r, http.StatusTooManyRequests, "TooManyRequests"), nil
	}
	return f.next.RoundTrip(r)
}

func status(r *http.Request, code int, reason string) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"made up by the test","code":` + strconv.Itoa(code) + `}`
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
