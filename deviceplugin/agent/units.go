package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/topscloud/topscloud/gcushare/ledger"
	gcuplugin "github.com/topscloud/topscloud/gcushare/plugin"
	"github.com/topscloud/topscloud/internal/contract"
)

// units are what a unit and a slice are on this node. They are in force until the last share has gone, even if
// the agent is started with others: a record's MiB follow from them.
type units struct {
	Version    string `json:"version"`
	UnitMiB    int64  `json:"unitMiB"`
	SliceCount int64  `json:"sliceCount"`
}

const unitsVersion = "v1"

func (o *Options) units() units {
	return units{Version: unitsVersion, UnitMiB: o.UnitMiB, SliceCount: o.SliceCount}
}

// loadUnits takes the units that were in force before a restart.
func (a *Agent) loadUnits() {
	a.units = a.o.units()
	text, err := os.ReadFile(a.o.unitsPath())
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var u units
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if err == nil && (u.Version != unitsVersion || u.UnitMiB < 1 || u.SliceCount < 1) {
		err = fmt.Errorf("%+v makes no sense", u)
	}
	if err != nil {
		a.logger.Error(err, "The units that were in force cannot be read", "file", a.o.unitsPath())
		return
	}
	a.units = u
}

// changeUnits puts the wanted units in force if no share is held, and returns why not otherwise.
func (a *Agent) changeUnits(node *ledger.Node, book contract.Book) (waits string) {
	a.mu.Lock()
	now, wanted := a.units, a.o.units()
	a.mu.Unlock()
	if now == wanted {
		a.keepUnits(now)
		return ""
	}
	if left := sharers(node, book); len(left) > 0 {
		return fmt.Sprintf("memory unit %d MiB and %d slices stay until these pods have ended, then %d MiB and %d: %s",
			now.UnitMiB, now.SliceCount, wanted.UnitMiB, wanted.SliceCount, few(left))
	}
	if !a.keepUnits(wanted) {
		return "the new memory unit cannot be written to the node's disk"
	}
	a.mu.Lock()
	a.units = wanted
	a.mu.Unlock()
	a.logger.Info("Units changed", "unitMiB", wanted.UnitMiB, "sliceCount", wanted.SliceCount)
	a.setCapacity()
	a.trigger()
	return ""
}

// keepUnits writes the units in force, unless they are written already.
func (a *Agent) keepUnits(u units) bool {
	text, err := json.Marshal(u)
	if err == nil {
		if there, readErr := os.ReadFile(a.o.unitsPath()); readErr == nil && string(there) == string(text) {
			return true
		}
		err = gcuplugin.WriteFile(a.o.unitsPath(), text, 0o600)
	}
	if err != nil {
		a.logger.Error(err, "The units in force cannot be kept")
	}
	return err == nil
}

// few joins the first of some names.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
