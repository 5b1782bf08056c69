package oci_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

// BenchmarkStart measures the processor time that the wrapper takes before a container that asks for no card, beyond
// that of a program which does nothing but become the same runtime; both become true, which does nothing. Wall time
// is no measure on a machine that does other things, and BenchmarkRun tells it.
//
//	CGO_ENABLED=0 go build -o /tmp/wrapper ./runtime/cmd/enflame-container-runtime
//	TOPSCLOUD_WRAPPER=/tmp/wrapper CGO_ENABLED=0 go test -run '^$' -bench Start$ -benchtime 200x ./runtime/oci
func BenchmarkStart(b *testing.B) {
	wrapper := os.Getenv("TOPSCLOUD_WRAPPER")
	if wrapper == "" {
		wrapper = os.Args[0]
	}
	runtime, err := exec.LookPath("true")
	if err != nil {
		b.Skip("needs the program true:", err)
	}
	host := newBench(b, "OTHER=1")
	hosttest.Write(b, host.root, contract.RuntimeConfigPath, "[enflame-container-runtime]\nruntimes = ['"+runtime+"']\n")
	programs := []string{wrapper, buildBare(b, runtime)}
	took := map[string][]time.Duration{}
	start := func(program string) {
		cmd := exec.Command(program, "create", "--bundle", host.bundle, "c")
		cmd.Env = append(os.Environ(), "TEST_IS_WRAPPER=real", "GCU_HOST_ROOT="+host.root)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v: %s", program, err, out)
		}
		took[program] = append(took[program], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	for _, p := range programs { // fills caches
		start(p)
	}
	clear(took)
	for n := 0; b.Loop(); n++ {
		for i := range programs {
			start(programs[(n+i)%len(programs)])
		}
	}
	var medians []float64
	for _, p := range programs {
		slices.Sort(took[p])
		medians = append(medians, float64(took[p][len(took[p])/2].Microseconds()))
	}
	b.ReportMetric(medians[0], "wrapper-cpu-us")
	b.ReportMetric(medians[1], "bare-cpu-us")
	b.ReportMetric(medians[0]-medians[1], "own-cpu-us")
}

// buildBare builds a program that does nothing but become the runtime.
func buildBare(b *testing.B, runtime string) string {
	b.Helper()
	dir := b.TempDir()
	main := fmt.Sprintf("package main\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\nfunc main() { panic(syscall.Exec(%q, os.Args, os.Environ())) }\n", runtime)
	for name, text := range map[string]string{"main.go": main, "go.mod": "module bare\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-o", "bare", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "bare")
}
