// Command gcu-scheduler is kube-scheduler with the GCUFit plugin.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
)

func main() {
	os.Exit(cli.Run(newCommand()))
}
