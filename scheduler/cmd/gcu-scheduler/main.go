// Command gcu-scheduler is kube-scheduler with the GCUFit plugin.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "github.com/google/go-cmp/cmp"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sys/unix"
	_ "k8s.io/kubectl/pkg/util/term"
	_ "k8s.io/kubernetes/pkg/scheduler/testing"
	_ "sigs.k8s.io/yaml"
)

func main() { os.Exit(cli.Run(app.NewSchedulerCommand())) }
