package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// board is a dashboard. Its own name stays English: Grafana fills no variables into it.
type board struct {
	uid, title, about string
	variables         []variable
	panels            []panel
}

// variable is what a reader narrows a dashboard with: the values of a label.
type variable struct {
	name  string
	title words
	query string
	all   bool // the reader may choose several, and all is the start
}

// kind is how a panel shows its queries.
type kind int

const (
	line  kind = iota // over the time range
	value             // the last value, large
	list              // a table of what is now, a row for each series
)

// panel is a picture of one or more queries.
type panel struct {
	kind    kind
	title   words
	about   string
	unit    string // Grafana's name of a unit
	width   uint32 // of 24
	height  uint32
	min     *float64
	max     *float64
	queries []query
	// hidden are labels that a table leaves out.
	hidden []string
}

type query struct{ expr, legend string }

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{"gcu", "topscloud"}).
		Time("now-1h", "now").Refresh("30s").Timezone("browser").Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair)
	d.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus"))
	d.WithVariable(dashboard.NewCustomVariableBuilder("lang").Label("Language 语言").
		Values(dashboard.StringOrMap{String: cog.ToPtr(langVariable)}).Current(option("English", "0")))
	for i, v := range b.variables {
		title := fmt.Sprintf("v%d", i+1)
		d.WithVariable(text(title, v.title))
		q := dashboard.NewQueryVariableBuilder(v.name).Label("${" + title + "}").Datasource(source).
			Query(dashboard.StringOrMap{String: cog.ToPtr(v.query)}).Definition(v.query).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc)
		if v.all {
			q.Multi(true).IncludeAll(true).AllValue(".*").Current(option("All", "$__all"))
		}
		d.WithVariable(q)
	}
	for i, p := range b.panels {
		title := fmt.Sprintf("t%d", i+1)
		d.WithVariable(text(title, p.title))
		d.WithPanel(p.builder("${" + title + "}"))
	}
	return d.Build()
}

// text is the hidden variable of a title.
func text(name string, w words) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Hide(dashboard.VariableHideHideVariable).Datasource(source).
		Query(dashboard.StringOrMap{String: cog.ToPtr(w.query())}).Definition(w.query()).Regex(textPattern).
		Refresh(dashboard.VariableRefreshOnDashboardLoad).Current(option(w.en, w.en))
}

func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{
		Selected: cog.ToPtr(true),
		Text:     dashboard.StringOrArrayOfString{String: cog.ToPtr(text)},
		Value:    dashboard.StringOrArrayOfString{String: cog.ToPtr(value)},
	}
}

func (p panel) builder(title string) cog.Builder[dashboard.Panel] {
	switch p.kind {
	case value:
		b := stat.NewPanelBuilder().Title(title).Description(p.about).Unit(p.unit).Span(p.width).Height(p.height).Datasource(source).
			GraphMode(common.BigValueGraphModeArea)
		p.bounds(func(v float64) { b.Min(v) }, func(v float64) { b.Max(v) })
		for i, q := range p.queries {
			b.WithTarget(q.builder(i))
		}
		return b
	case list:
		hide := map[string]any{"Time": true}
		for _, label := range p.hidden {
			hide[label] = true
		}
		b := table.NewPanelBuilder().Title(title).Description(p.about).Unit(p.unit).Span(p.width).Height(p.height).Datasource(source).
			WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": hide}})
		for i, q := range p.queries {
			b.WithTarget(q.builder(i).Instant().Format(prometheus.PromQueryFormatTable))
		}
		return b
	}
	b := timeseries.NewPanelBuilder().Title(title).Description(p.about).Unit(p.unit).Span(p.width).Height(p.height).Datasource(source).
		FillOpacity(8).ShowPoints(common.VisibilityModeNever)
	p.bounds(func(v float64) { b.Min(v) }, func(v float64) { b.Max(v) })
	for i, q := range p.queries {
		b.WithTarget(q.builder(i))
	}
	return b
}

func (p panel) bounds(lower, upper func(float64)) {
	if p.min != nil {
		lower(*p.min)
	}
	if p.max != nil {
		upper(*p.max)
	}
}

func (q query) builder(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Datasource(source).Expr(q.expr).LegendFormat(q.legend)
}
