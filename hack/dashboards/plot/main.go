// Command plot draws what the panels of the dashboards show: go run ./plot FOLDER, which has the panels.json that
// test/monitoring writes. Each dashboard becomes one picture.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// picture is what a panel shows.
type picture struct {
	Board, Title, Type string
	Lines              []struct {
		Name   string
		Times  []int64
		Values []float64
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want the folder with panels.json")
	}
	text, err := os.ReadFile(filepath.Join(args[0], "panels.json"))
	if err != nil {
		return err
	}
	var all []picture
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	boards := map[string][]picture{}
	for _, p := range all {
		boards[p.Board] = append(boards[p.Board], p)
	}
	for name, list := range boards {
		file := strings.NewReplacer(" ", "-", "/", "-").Replace(strings.ToLower(name)) + ".png"
		if err := drawBoard(filepath.Join(args[0], file), list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

const columns = 3

// drawBoard draws the panels in rows.
func drawBoard(path string, list []picture) error {
	rows := (len(list) + columns - 1) / columns
	canvas := vgimg.New(columns*5*vg.Inch, vg.Length(rows)*3*vg.Inch)
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Millimeter * 4, PadY: vg.Millimeter * 4, PadTop: 4, PadBottom: 4, PadLeft: 4, PadRight: 4}
	for i, p := range list {
		one, err := p.plot()
		if err != nil {
			return fmt.Errorf("%s: %w", p.Title, err)
		}
		one.Draw(tiles.At(draw.New(canvas), i%columns, i/columns))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(f)
	return errors.Join(err, f.Close())
}

// plot draws lines over seconds before now; a single value is a point at 0.
func (p *picture) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = fmt.Sprintf("%s (%s)", p.Title, p.Type)
	out.X.Label.Text = "s"
	out.Legend.Top = true
	latest := int64(math.MinInt64)
	for _, l := range p.Lines {
		if len(l.Times) > 0 {
			latest = max(latest, slices.Max(l.Times))
		}
	}
	for i, l := range p.Lines {
		points := make(plotter.XYs, len(l.Times))
		for k, at := range l.Times {
			points[k] = plotter.XY{X: float64(at-latest) / 1000, Y: l.Values[k]}
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, marks.Color, marks.Radius = plotutil.Color(i), plotutil.Color(i), 1
		out.Add(line, marks)
		if i < 6 {
			name := l.Name
			if len(name) > 40 {
				name = name[:40] + "…"
			}
			out.Legend.Add(name, line)
		}
	}
	return out, nil
}
