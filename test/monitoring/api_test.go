package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// api is Prometheus' HTTP API.
type api struct{ address string }

// series is one series of an answer: its labels, and its samples by time.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
	Values []point           `json:"values"`
}

// point is a time and a value, which the API writes as a text.
type point struct {
	at    time.Time
	value float64
}

func (p *point) UnmarshalJSON(text []byte) error {
	var pair [2]any
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	seconds, _ := pair[0].(float64)
	written, _ := pair[1].(string)
	value, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return err
	}
	p.at, p.value = time.UnixMilli(int64(seconds*1000)), value
	return nil
}

// now evaluates an expression at this moment.
func (a api) now(ctx context.Context, expr string) ([]series, error) {
	var out struct {
		Result []series `json:"result"`
	}
	return out.Result, a.get(ctx, "query", url.Values{"query": {expr}}, &out)
}

// over evaluates an expression over the time until now.
func (a api) over(ctx context.Context, expr string, span time.Duration) ([]series, error) {
	var out struct {
		Result []series `json:"result"`
	}
	end := time.Now()
	return out.Result, a.get(ctx, "query_range", url.Values{
		"query": {expr}, "step": {"5"}, "start": {stamp(end.Add(-span))}, "end": {stamp(end)},
	}, &out)
}

// labels returns the values of a label of what a selector names, sorted.
func (a api) labels(ctx context.Context, selector, label string) ([]string, error) {
	var out []string
	err := a.get(ctx, "label/"+label+"/values", url.Values{"match[]": {selector}}, &out)
	slices.Sort(out)
	return out, err
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func (a api) get(ctx context.Context, path string, values url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.address+"/api/v1/"+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return fmt.Errorf("%s: %s: %w", path, answer.Status, err)
	}
	if body.Status != "success" {
		return fmt.Errorf("%s of %v: %s", path, values, body.Error)
	}
	return json.Unmarshal(body.Data, into)
}

// some makes no series an error.
func some(list []series, err error) ([]series, error) {
	if err == nil && len(list) == 0 {
		err = errors.New("no series")
	}
	return list, err
}
