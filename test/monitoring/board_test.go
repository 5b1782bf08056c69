package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
)

// board is a dashboard, as far as the tests look at it.
type board struct {
	Title  string `json:"title"`
	Panels []struct {
		Title   string `json:"title"`
		Type    string `json:"type"`
		Targets []struct {
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
			Instant      bool   `json:"instant"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Query      json.RawMessage `json:"query"`
	Regex      string          `json:"regex"`
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.+), *([a-z_]+)\)$`)
	queryResult = regexp.MustCompile(`^query_result\((.+)\)$`)
)

// fill puts values in the place of variables, as Grafana does.
func fill(text string, values map[string]string) string {
	for name, value := range values {
		text = strings.NewReplacer("${"+name+"}", value, "$"+name, value).Replace(text)
	}
	return text
}

// values asks for the value of each variable, in order; lang is the reader's choice, and choose picks one of several.
func (b *board) values(ctx context.Context, a api, lang string, choose map[string]string) (map[string]string, error) {
	// Grafana's own: four scrapes.
	out := map[string]string{"__rate_interval": "20s", "lang": lang, "datasource": "prometheus"}
	for _, v := range b.Templating.List {
		if _, known := out[v.Name]; known {
			continue
		}
		var query string
		if err := json.Unmarshal(v.Query, &query); err != nil || v.Type != "query" {
			return nil, fmt.Errorf("variable %s: type %s: %w", v.Name, v.Type, err)
		}
		query = fill(query, out)
		var found []string
		if m := labelValues.FindStringSubmatch(query); m != nil {
			list, err := a.labels(ctx, m[1], m[2])
			if err != nil {
				return nil, fmt.Errorf("variable %s: %w", v.Name, err)
			}
			found = list
		} else if m := queryResult.FindStringSubmatch(query); m != nil {
			list, err := a.now(ctx, m[1])
			if err != nil {
				return nil, fmt.Errorf("variable %s: %w", v.Name, err)
			}
			pattern, err := regexp.Compile(strings.Trim(v.Regex, "/"))
			if err != nil {
				return nil, fmt.Errorf("variable %s: %w", v.Name, err)
			}
			for _, s := range list { // Grafana applies the pattern to the series as it is written
				if m := pattern.FindStringSubmatch(fmt.Sprintf("{text=%q} %g", s.Metric["text"], s.Value.value)); m != nil {
					found = append(found, m[1])
				}
			}
		} else {
			return nil, fmt.Errorf("variable %s: %s: want label_values or query_result", v.Name, query)
		}
		wanted, some := choose[v.Name]
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("variable %s: %s gives no value", v.Name, query)
		case v.IncludeAll:
			out[v.Name] = v.AllValue
		case some:
			out[v.Name] = wanted
		default:
			out[v.Name] = found[0]
		}
	}
	return out, nil
}

// picture is what a panel shows.
type picture struct {
	Board, Title, Type string
	Lines              []drawn
}

type drawn struct {
	Name   string
	Times  []int64 // milliseconds since 1970
	Values []float64
}

// pictures evaluates all queries. A query without data is an error that names it.
func (b *board) pictures(ctx context.Context, a api, values map[string]string, span time.Duration) ([]picture, error) {
	var out []picture
	for _, p := range b.Panels {
		title := fill(p.Title, values)
		if strings.ContainsAny(title, "${}") || title == "" {
			return nil, fmt.Errorf("%s: title %q is not filled in", b.Title, title)
		}
		shown := picture{Board: b.Title, Title: title, Type: p.Type}
		for _, t := range p.Targets {
			expr := fill(t.Expr, values)
			list, err := a.over(ctx, expr, span)
			if t.Instant {
				list, err = a.now(ctx, expr)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", b.Title, title, err)
			}
			found := false
			for _, s := range list {
				line := drawn{Name: legend(t.LegendFormat, s.Metric)}
				for _, v := range append(s.Values, s.Value) {
					// A quantile of no observations is not a number: no data either.
					if !v.at.IsZero() && !math.IsNaN(v.value) {
						found = true
						line.Times, line.Values = append(line.Times, v.at.UnixMilli()), append(line.Values, v.value)
					}
				}
				shown.Lines = append(shown.Lines, line)
			}
			if !found {
				return nil, fmt.Errorf("%s: %s: no data: %s", b.Title, title, expr)
			}
		}
		out = append(out, shown)
	}
	return out, nil
}

var legendLabel = regexp.MustCompile(`\{\{ *([a-z_]+) *\}\}`)

func legend(format string, labels map[string]string) string {
	if format == "" {
		return fmt.Sprint(labels)
	}
	return legendLabel.ReplaceAllStringFunc(format, func(m string) string { return labels[legendLabel.FindStringSubmatch(m)[1]] })
}
