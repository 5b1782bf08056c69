// Command list prints the cards of a host, once or whenever something changes: a start for programs of
// your own. Try it without hardware: list --device-source=sim --machine=s60x8 --watch
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/source"
)

func main() {
	var o source.Options
	flag.StringVar(&o.Source, "device-source", source.Auto, strings.Join(source.Names(), ", "))
	flag.StringVar(&o.Machine, "machine", "", "made-up machine of source sim")
	flag.StringVar(&o.ControlFile, "sim-control", "", "file with the faults of the made-up machine")
	watch := flag.Bool("watch", false, "print again when something changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cards, err := source.Open(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "list:", err)
		os.Exit(1)
	}
	defer cards.Close()
	for state := range cards.Watch(ctx) {
		const want = eflib.FieldMemory | eflib.FieldPower | eflib.FieldTemperature
		samples, _ := eflib.SampleAll(ctx, cards, state.Devices, want, 2*time.Second)
		for i, d := range state.Devices {
			memory, _ := samples[i].Memory.Value() // 0 where the card does not tell
			fmt.Printf("%3d %-20s %-5s %6d of %6d MiB  %s W  %s °C  %s\n", d.Minor, d.UUID, d.Model,
				memory.UsedBytes>>20, d.MemoryMiB, samples[i].PowerWatts, samples[i].ASICCelsius, d.Health.Problem())
		}
		if state.Err != nil {
			fmt.Fprintln(os.Stderr, "list:", state.Err)
		}
		if !*watch {
			return
		}
	}
}
