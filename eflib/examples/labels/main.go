// Command labels prints a features file for node-feature-discovery with labels of your own: a start for a
// discovery that knows what yours needs. Try it without hardware: labels --device-source=sim --machine=mixed
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/source"
)

func main() {
	var o source.Options
	flag.StringVar(&o.Source, "device-source", source.Auto, strings.Join(source.Names(), ", "))
	flag.StringVar(&o.Machine, "machine", "", "made-up machine of source sim")
	domain := flag.String("domain", "example.com", "domain of the labels; not one of kubernetes.io")
	flag.Parse()
	cards, err := source.Open(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "labels:", err)
		os.Exit(1)
	}
	defer cards.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	devices, err := cards.Devices(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "labels:", err) // the cards that could be read are in devices
	}
	healthy, memory := 0, int64(0)
	for _, d := range devices {
		memory += d.MemoryMiB // 0 where nobody knows
		if d.Health.State == eflib.Healthy {
			healthy++
		}
	}
	if len(devices) > 0 {
		fmt.Printf("%[1]s/accelerators=%[2]d\n%[1]s/accelerators.healthy=%[3]d\n%[1]s/accelerators.memory-gib=%[4]d\n", *domain, len(devices), healthy, memory/1024)
	}
}
