// Command dashboards writes the Grafana dashboards into a folder: go run . ../../manifests/dashboards
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

var boards = map[string]board{"gcu-cluster.json": cluster, "gcu-card.json": card, "gcu-tenant.json": tenant}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "want one folder to write the dashboards into")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for name, b := range boards {
		text, err := b.text()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// text is the dashboard as JSON.
func (b board) text() ([]byte, error) {
	d, err := b.build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}
