package source_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/source"
)

// List the cards of a host. Here it is a made-up one; leave the options empty for a real one.
func Example() {
	cards, err := source.Open(source.Options{Source: source.Sim, Machine: "mixed"})
	if err != nil {
		log.Fatal(err)
	}
	defer cards.Close()
	devices, err := cards.Devices(context.Background())
	if err != nil {
		log.Print(err) // some cards could not be read; the others are in devices
	}
	for _, d := range devices {
		fmt.Println(d.Node, d.Model, d.MemoryMiB, "MiB", d.PCIAddress)
	}
	// Output:
	// /dev/gcu0 S60 42976 MiB 0000:13:00.0
	// /dev/gcu1 S60 42976 MiB 0000:14:00.0
	// /dev/gcu2 T20 32768 MiB 0000:93:00.0
	// /dev/gcu3 T20 32768 MiB 0000:94:00.0
}

// Read all cards at the same time. A reading that a card does not have is left out, never 0.
func ExampleSource_Sample() {
	cards, err := source.Open(source.Options{Source: source.Sim, Machine: "t10x8"})
	if err != nil {
		log.Fatal(err)
	}
	defer cards.Close()
	ctx := context.Background()
	devices, err := cards.Devices(ctx)
	if err != nil {
		log.Print(err)
	}
	const want = eflib.FieldPower | eflib.FieldTemperature | eflib.FieldPGUsage
	samples, _ := eflib.SampleAll(ctx, cards, devices, want, 2*time.Second)
	for _, s := range samples[:2] {
		if watts, known := s.PowerWatts.Value(); known {
			fmt.Printf("card %d: %v W\n", s.Minor, watts)
		}
		if err := s.PGUsage.Err(); errors.Is(err, eflib.ErrNotSupported) {
			fmt.Println(err)
		}
	}
	// Output:
	// card 0: 90 W
	// device 0000:3d:00.0: processor group usage: not supported
	// card 1: 91 W
	// device 0000:3e:00.0: processor group usage: not supported
}

// Watch the cards while one gets too hot and recovers. A made-up machine reads its faults from a file.
func ExampleSource_Watch() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	control := filepath.Join(folder, "faults")
	cards, err := source.Open(source.Options{
		Source: source.Sim, Machine: "mixed", ControlFile: control, Interval: 10 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cards.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	states := cards.Watch(ctx)
	fmt.Printf("%q\n", (<-states).Devices[1].Health.Problem())
	if err := sim.WriteFaults(control, sim.Fault{Kind: "too-hot", Minor: 1}); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", (<-states).Devices[1].Health.Problem())
	if err := sim.WriteFaults(control); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", (<-states).Devices[1].Health.Problem())
	// Output:
	// ""
	// "too hot"
	// ""
}
