package doctor_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/cdi"
	"github.com/topscloud/topscloud/runtime/doctor"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

var update = flag.Bool("update", false, "write the golden files")

// unpack writes the files of a txtar archive below a root. Links and empty parts are as written: a part
// without text is an empty file, and the zero bytes of a command line are blanks.
func unpack(t testing.TB, root, archive string) {
	t.Helper()
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		name, body, found := strings.Cut(part, " --\n")
		if !found {
			name = strings.TrimSuffix(strings.TrimSuffix(part, "\n"), " --")
		}
		if strings.HasSuffix(name, "cmdline") {
			body = strings.ReplaceAll(strings.TrimSuffix(body, "\n"), " ", "\x00") + "\x00"
		}
		hosttest.Write(t, root, name, body)
	}
}

func examine(h *host.Host) []doctor.Finding {
	return doctor.Examine(context.Background(), h, sysfs.New(os.DirFS(h.Root)).Host)
}

// TestHosts examines hosts with the cards of a machine and without, as fixtures describe the rest.
func TestHosts(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 6 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".txtar"), func(t *testing.T) {
			var h *host.Host
			if strings.Contains(archive, "bare") {
				h = &host.Host{Root: t.TempDir(), Files: host.DefaultFiles(), Stat: hosttest.Stat}
				h.Cards = sysfs.New(os.DirFS(h.Root))
			} else {
				h = hosttest.New(t, "t20x4")
				if _, err := cdi.Generate(context.Background(), h, contract.CDIStaticDir, false); err != nil {
					t.Fatal(err)
				}
			}
			unpack(t, h.Root, archive)
			if strings.Contains(archive, "v2-systemd") {
				cards, err := h.List(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				control, err := h.Control()
				if err != nil {
					t.Fatal(err)
				}
				for _, card := range cards {
					control = append(control, card.Node)
				}
				for _, node := range control {
					if err := h.MakeCharLink(node); err != nil {
						t.Fatal(err)
					}
				}
			}
			findings := examine(h)
			for i := range findings { // before lines are broken: the folder's name is of another length each time
				findings[i].Text = strings.ReplaceAll(findings[i].Text, h.Root, "")
			}
			var out strings.Builder
			if err := doctor.Print(&out, findings); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			for _, f := range findings {
				if (f.Level == doctor.OK) != (f.Remedy == "") {
					t.Errorf("%+v: a remedy goes with what is not well, and only with that", f)
				}
			}
			golden := strings.TrimSuffix(archive, ".txtar") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPrintFits80Columns; only a word that is longer than a line may stand out, to be copied whole.
func TestPrintFits80Columns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := doctor.Print(&out, []doctor.Finding{{Level: doctor.Error, Topic: "containerd",
		Text: strings.Repeat("ä word ", 30), Remedy: strings.Repeat("another wörd ", 30)}})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestParseMounts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want doctor.Version
	}{
		"v2":                      {"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", doctor.V2},
		"v1":                      {"tmpfs /sys/fs/cgroup tmpfs ro 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n", doctor.V1},
		"both":                    {"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n", doctor.Hybrid},
		"Calico's does not count": {"cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\nnone /run/calico/cgroup cgroup2 rw 0 0\n", doctor.V1},
		"nor does a look-alike":   {"cgroup2 /sys/fs/cgroup-x cgroup2 rw 0 0\n", doctor.Unknown},
		"nothing":                 {"", doctor.Unknown},
	}
	for name, tt := range tests {
		if got := doctor.ParseMounts(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestFindKubelet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  doctor.Kubelet
		fails bool
	}{
		"none":                            {},
		"only its file":                   {files: map[string]string{"/var/lib/kubelet/config.yaml": "cgroupDriver: systemd\n"}, want: doctor.Kubelet{Present: true, Driver: "systemd", From: "/var/lib/kubelet/config.yaml"}},
		"the flag counts before the file": {files: map[string]string{"/proc/9/comm": "kubelet\n", "/proc/9/cmdline": "kubelet\x00--cgroup-driver=cgroupfs\x00", "/var/lib/kubelet/config.yaml": "cgroupDriver: systemd\n"}, want: doctor.Kubelet{Present: true, Driver: "cgroupfs", From: "its flag --cgroup-driver"}},
		"the last flag counts":            {files: map[string]string{"/proc/9/comm": "kubelet\n", "/proc/9/cmdline": "kubelet\x00--cgroup-driver=cgroupfs\x00--cgroup-driver\x00systemd\x00"}, want: doctor.Kubelet{Present: true, Driver: "systemd", From: "its flag --cgroup-driver"}},
		"a file of its own":               {files: map[string]string{"/proc/9/comm": "kubelet\n", "/proc/9/cmdline": "kubelet\x00--config\x00/etc/k.yaml\x00", "/etc/k.yaml": "cgroupDriver: cgroupfs\n"}, want: doctor.Kubelet{Present: true, Driver: "cgroupfs", From: "/etc/k.yaml"}},
		"a file that is missing":          {files: map[string]string{"/proc/9/comm": "kubelet\n", "/proc/9/cmdline": "kubelet\x00--config=/etc/k.yaml\x00"}, want: doctor.Kubelet{Present: true}, fails: true},
		"a file that is no YAML":          {files: map[string]string{"/var/lib/kubelet/config.yaml": "{"}, want: doctor.Kubelet{Present: true}, fails: true},
		"it says nothing":                 {files: map[string]string{"/proc/9/comm": "kubelet\n", "/proc/9/cmdline": "kubelet\x00"}, want: doctor.Kubelet{Present: true}},
		"another program":                 {files: map[string]string{"/proc/9/comm": "kubeletd\n", "/proc/9/cmdline": "kubeletd\x00--cgroup-driver=x\x00"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, text := range tt.files {
				hosttest.Write(t, root, path, text)
			}
			got, err := doctor.FindKubelet(root)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if doctor.ParseMounts(text) != doctor.Unknown && !strings.Contains(text, "/sys/fs/cgroup") {
			t.Fatalf("%q", text)
		}
	})
}
