package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/manifests"
)

const exporterImage = "topscloud.local/gcu-exporter:v1"

// exporterObjects returns what the manifest without privilege holds, with the image that this node has and the folders
// in which its made-up host lies. Nothing else is changed.
func exporterObjects(t *testing.T) (*v1.ServiceAccount, *appsv1.DaemonSet) {
	t.Helper()
	text, err := manifests.Exporter(manifests.ExporterNonPrivileged)
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(text), "\n---\n")
	account, ds := &v1.ServiceAccount{}, &appsv1.DaemonSet{}
	for kind, into := range map[string]any{"ServiceAccount": account, "DaemonSet": ds} {
		for _, doc := range docs {
			if strings.Contains(doc, "\nkind: "+kind+"\n") || strings.HasPrefix(doc, "kind: "+kind+"\n") {
				if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	spec := &ds.Spec.Template.Spec
	spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = exporterImage, v1.PullNever
	here := map[string]string{
		"/sys":                           filepath.Join(machine.HostRoot(), "sys"),
		"/etc/topscloud":                 filepath.Join(machine.HostRoot(), "etc", "topscloud"),
		"/run/enflame-gcu":               bookDir(),
		"/var/lib/kubelet/pod-resources": filepath.Dir(machine.PodResourcesSocket()),
	}
	for _, v := range spec.Volumes {
		if here[v.HostPath.Path] == "" {
			t.Fatalf("volume %s: %s is not made up here", v.Name, v.HostPath.Path)
		}
		v.HostPath.Path = here[v.HostPath.Path]
	}
	return account, ds
}

// bookDir is a folder of the book's socket alone, as on a host.
func bookDir() string { return filepath.Join(machine.Scratch(), "enflame-gcu") }

// importExporter builds the program and gives the node an image of it.
func importExporter(t *testing.T) {
	t.Helper()
	path := filepath.Join(machine.Scratch(), "gcu-exporter")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", path, "../../../exporter/cmd/gcu-exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gcu-exporter: %v\n%s", err, out)
	}
	if err := machine.ImportProgram(t.Context(), exporterImage, path); err != nil {
		t.Fatal(err)
	}
}

// The exporter without privilege, as its manifest has it, tells whose the cards are.
func TestExporterWithoutPrivilege(t *testing.T) {
	e := newEnv(t)
	importExporter(t)
	// The agent sees cards as the exporter does: by sysfs alone, which knows nothing of health.
	startProgram(t, "--device-source=sysfs", "--machine=", "--control-file=", "--health-check=false", "--book-socket="+filepath.Join(bookDir(), "book.sock"))
	present := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, names.PresentLabel)
	if _, err := admin.CoreV1().Nodes().Patch(t.Context(), machine.Name(), types.MergePatchType, []byte(present), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	account, ds := exporterObjects(t)
	if _, err := admin.CoreV1().ServiceAccounts(account.Namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AppsV1().DaemonSets(ds.Namespace).Create(t.Context(), ds, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.removeExporter(account, ds) })
	e.create(pod("seen", memory, 8))
	e.running("seen")
	e.seesItsOwn("seen", "main")
	card := recorded(t, e.get("seen"), "main")[0]

	var address string
	e.until("the exporter is ready", func(ctx context.Context) error {
		list, err := admin.CoreV1().Pods(ds.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)})
		if err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d pods, %w", len(list.Items), err)
		}
		p := list.Items[0]
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
				address = p.Status.PodIP
				return nil
			}
		}
		_, err = scrape(ctx, p.Status.PodIP)
		return fmt.Errorf("pod %s: phase %s, not ready; asked itself: %v", p.Name, p.Status.Phase, err)
	})
	pod := fmt.Sprintf(`pod_name="seen",pod_namespace=%q`, e.namespace)
	minor := fmt.Sprintf(`minor_number="%d"`, card.Minor)
	holder := []string{minor, pod, `container_name="main"`}
	e.until("the exporter names the pod", func(ctx context.Context) error {
		text, err := scrape(ctx, address)
		if err != nil {
			return err
		}
		if len(lines(text, "enflame_gcu_up", `host="`+machine.Name()+`"`)) != 8 {
			return fmt.Errorf("not eight cards of this node:\n%s", text)
		}
		held := lines(text, "enflame_gcu_allocation_bytes", append(holder, `resource="`+memory+`"`)...)
		if len(held) != 1 || !strings.HasSuffix(held[0], fmt.Sprintf(" %g", float64(8<<30))) {
			return fmt.Errorf("allocation %v of card %d", held, card.Minor)
		}
		if own := lines(text, "enflame_gcu_pcie_link_width", holder...); len(own) != 1 {
			return fmt.Errorf("the card's own series do not name the pod: %v", lines(text, "enflame_gcu_pcie_link_width"))
		}
		return nil
	})
	if err := e.deleteAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.until("the exporter forgets the pod", func(ctx context.Context) error {
		text, err := scrape(ctx, address)
		if err == nil && strings.Contains(text, pod) {
			err = fmt.Errorf("it names it still")
		}
		return err
	})
}

func (e *env) removeExporter(account *v1.ServiceAccount, ds *appsv1.DaemonSet) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if e.t.Failed() {
		list, err := admin.CoreV1().Pods(ds.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)})
		for i := range list.Items {
			text, logErr := admin.CoreV1().Pods(ds.Namespace).GetLogs(list.Items[i].Name, &v1.PodLogOptions{}).DoRaw(ctx)
			e.t.Logf("pod %s:\n%s%v", list.Items[i].Name, text, errors.Join(err, logErr))
		}
		e.t.Log(e.kubectl("get", "events", "-n", ds.Namespace, "--field-selector", "reason!=Scheduled"))
	}
	if err := admin.AppsV1().DaemonSets(ds.Namespace).Delete(ctx, ds.Name, metav1.DeleteOptions{}); err != nil {
		e.t.Error(err)
	}
	err := poll(ctx, func(ctx context.Context) error {
		list, err := admin.CoreV1().Pods(ds.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("pod %s is there", list.Items[0].Name)
		}
		return err
	})
	if err != nil {
		e.t.Error(err)
	}
	if err := admin.CoreV1().ServiceAccounts(account.Namespace).Delete(ctx, account.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		e.t.Error(err)
	}
}

// direct asks pods of this node, which no proxy knows the way to.
var direct = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func scrape(ctx context.Context, ip string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ip+":9400/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := direct.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// lines returns the series of a metric that have all the labels, as written.
func lines(text, name string, labels ...string) []string {
	var out []string
series:
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue series
			}
		}
		out = append(out, line)
	}
	return out
}
