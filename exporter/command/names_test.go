package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Another registered resource is another domain: what kubelet lists of ours is called otherwise, so the exporter ends
// without an error and is started anew. It looks at the file every ten seconds.
func TestEndsWhenTheNamesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "etc/topscloud/topscloud.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	register := func(resource string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(`{"registerResource":["`+resource+`"]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	register("enflame.com/gcu")
	cmd := New(noEnv)
	log := &started{line: make(chan struct{})}
	cmd.SetErr(log)
	cmd.SetArgs([]string{
		"--device-source=sim", "--machine=s60x8", "--node-name=n1", "--host-root=" + dir, "--web.listen-address=127.0.0.1:0",
		"--book-socket=" + filepath.Join(dir, "book"), "--pod-resources-socket=" + filepath.Join(dir, "kubelet"),
	})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(t.Context()) }()
	select {
	case <-log.line:
	case err := <-done:
		t.Fatalf("it ended at once: %v", err)
	}
	register("acme.com/npu")
	if err := <-done; err != nil {
		t.Errorf("it ended with %v, want without an error", err)
	}
	if text := log.String(); !strings.Contains(text, "registers acme.com/npu now, it was enflame.com/gcu") {
		t.Errorf("the log does not say why it ended:\n%s", text)
	}
}

// started is a log that says when the exporter has started.
type started struct {
	line chan struct{}

	mu   sync.Mutex // guards text
	text bytes.Buffer
	once sync.Once
}

func (s *started) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Contains(b, []byte("Starting")) {
		s.once.Do(func() { close(s.line) })
	}
	return s.text.Write(b)
}

func (s *started) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
