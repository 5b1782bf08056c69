package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/sandbox"
)

// readyFD is the descriptor on which a supervisor reports to the command that started it; readyLine
// is what it says last.
const (
	readyFD   = 3
	readyLine = "[ready]"
)

// detach starts this program again as a supervisor in a session of its own, prints its progress and
// returns when it is ready or has failed.
func detach(cmd *cobra.Command, g *global, f *upFlags) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	layout := sandbox.Layout{Dir: g.dataDir}
	log, err := layout.OpenSupervisorLog()
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	child := exec.Command(exe, append([]string{"up", "--supervise"}, supervisorArgs(g, f)...)...)
	child.Stdout, child.Stderr = log, log
	child.ExtraFiles = []*os.File{w}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		w.Close()
		return fmt.Errorf("start the supervisor: %w", err)
	}
	w.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-cmd.Context().Done(): // Ctrl-C before it is ready ends it too
			_ = child.Process.Signal(syscall.SIGTERM)
		case <-stop:
		}
	}()
	ready, export, err := follow(r, cmd.OutOrStdout())
	if err != nil {
		return err
	}
	if !ready {
		_ = child.Wait()
		return errors.New("the sandbox did not start; see gcu-sandbox logs supervisor")
	}
	fmt.Fprintln(cmd.OutOrStdout(), export)
	return child.Process.Release()
}

// follow copies progress lines until the supervisor is ready or closes the pipe. The export line is
// held back, since it has to be the last one.
func follow(r io.Reader, out io.Writer) (ready bool, export string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == readyLine:
			return true, export, nil
		case strings.HasPrefix(line, "export KUBECONFIG="):
			export = line
		default:
			fmt.Fprintln(out, line)
		}
	}
	return false, "", lines.Err()
}

func supervisorArgs(g *global, f *upFlags) []string {
	args := []string{"--data-dir=" + g.dataDir}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	add("source", g.source)
	add("scheduler-binary", f.scheduler)
	add("scheduler-config", f.config)
	add("feature-gates", f.featureGates)
	add("runtime-config", f.runtimeConfig)
	for _, m := range f.machines {
		add("machine", m)
	}
	if f.noScheduler {
		args = append(args, "--no-gcu-scheduler")
	}
	if f.prometheus {
		args = append(args, "--with-prometheus")
	}
	add("prometheus-binary", f.prometheusBin)
	if !f.agents {
		args = append(args, "--agents=false")
	}
	if !f.exporters {
		args = append(args, "--exporters=false")
	}
	if f.nodeGrace > 0 {
		add("node-monitor-grace-period", f.nodeGrace.String())
	}
	return args
}
