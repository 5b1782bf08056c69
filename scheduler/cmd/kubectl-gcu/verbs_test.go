package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/scheduler/surveytest"
)

// execute runs the plugin, with an answer to its question if it asks one.
func execute(t *testing.T, client kubernetes.Interface, answer string, env map[string]string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{
		in: strings.NewReader(answer), out: &out, now: func() time.Time { return surveytest.Now }, getenv: func(key string) string { return env[key] },
		connect: func() (kubernetes.Interface, string, error) { return client, "default", nil },
	}
	root := a.command()
	root.SetArgs(args)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// verb runs the plugin against a small cluster.
func verb(t *testing.T, answer string, args ...string) (string, error) {
	t.Helper()
	h := surveytest.NewHost("t20x4", "n1")
	broken := h.Bare("default", "broken", surveytest.Memory("main", 4))
	broken.Annotations[surveytest.Names.AllocationKey] = `{"containers":[{"name":"main","cards":[{"minor":"2"}]}]}`
	client := fake.NewClientset(h.Object(), broken, surveytest.Waiting("default", "waits", surveytest.Memory("main", 4)))
	client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authv1.SelfSubjectAccessReview{Status: authv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	return execute(t, client, answer, nil, args...)
}

func TestVerbs(t *testing.T) {
	tests := map[string]struct {
		args        []string
		answer, has string
		err         string
		no          bool // exit code 3
	}{
		"why of a pod that waits":            {args: []string{"why", "waits"}, has: "takes no new GCU pod because of pod default/broken", no: true},
		"why with a kind":                    {args: []string{"why", "po/waits"}, has: "Pod waits has waited for 5m.", no: true},
		"why of another kind":                {args: []string{"why", "svc/web"}, err: `"svc/web": want a pod's name, or pod, deploy, rs, sts, ds or job`},
		"why of nothing":                     {args: []string{"why"}, err: "accepts 1 arg"},
		"why in colour":                      {args: []string{"why", "waits", "--color", "always"}, has: "\x1b[1m", no: true},
		"fit of nothing":                     {args: []string{"fit"}, err: "at least one of the flags in the group [memory slices gcu] is required"},
		"fit of two kinds":                   {args: []string{"fit", "--memory", "1", "--gcu", "1"}, err: "none of the others can be"},
		"fit of no replicas":                 {args: []string{"fit", "--memory", "1", "--replicas", "0"}, err: "--replicas 0: want 1 to 1000"},
		"fit where the node is closed":       {args: []string{"fit", "--memory", "1"}, has: "closed by pod default/broken", no: true},
		"top by another word":                {args: []string{"top", "--by", "card"}, err: `--by "card": want namespace, pod or node`},
		"top":                                {args: []string{"top"}, has: "default       1  0+?  0.00+?       0.0+?"},
		"cordon of no card":                  {args: []string{"cordon", "n1"}, err: `"n1": want <node>/<card>`},
		"cordon until yesterday":             {args: []string{"cordon", "n1/0", "--until", "2026-02-28T12:00:00Z"}, err: "that is past"},
		"cordon until never":                 {args: []string{"cordon", "n1/0", "--until", "never"}, err: "want a span such as 2h"},
		"cordon":                             {args: []string{"cordon", "n1/0", "--until", "2h"}, has: "Until 2026-03-01T14:00:00Z"},
		"cordon as data":                     {args: []string{"cordon", "n1/0", "-o", "yaml"}, has: "kind: CordonedCards"},
		"uncordon":                           {args: []string{"uncordon", "n1/0"}, has: "card 0 of n1 was not cordoned."},
		"repair that is confirmed":           {args: []string{"repair", "broken"}, answer: "y\n", has: "Written."},
		"repair that is not":                 {args: []string{"repair", "broken"}, answer: "\n", err: "not confirmed, so nothing was written"},
		"repair without an answer":           {args: []string{"repair", "broken"}, err: "not confirmed"},
		"repair as data without --yes":       {args: []string{"repair", "broken", "-o", "json"}, err: "want --yes or --dry-run too"},
		"repair as data":                     {args: []string{"repair", "broken", "-o", "json", "--yes"}, has: `"written": true`},
		"repair to be seen":                  {args: []string{"repair", "broken", "--dry-run"}, has: "Nothing was written (--dry-run)."},
		"repair by a word that is no card":   {args: []string{"repair", "broken", "--set", "main"}, err: `--set "main": want container=card`},
		"repair and clear":                   {args: []string{"repair", "broken", "--set", "main=0", "--clear"}, err: "none of the others can be"},
		"clear":                              {args: []string{"repair", "broken", "--clear", "--yes"}, has: "counts as unrecorded"},
		"completion of pods with GCU":        {args: []string{cobra.ShellCompRequestCmd, "why", "w"}, has: "waits\n"},
		"completion of cards":                {args: []string{cobra.ShellCompRequestCmd, "cordon", "n1/"}, has: "n1/0\nn1/1\nn1/2\nn1/3\n"},
		"completion of nodes":                {args: []string{cobra.ShellCompRequestCmd, "map", ""}, has: "n1\n"},
		"completion of --by":                 {args: []string{cobra.ShellCompRequestCmd, "top", "--by", ""}, has: "namespace\npod\nnode\n"},
		"completion scripts for four shells": {args: []string{"completion", "--help"}, has: "Available Commands"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := verb(t, tt.answer, tt.args...)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			case tt.no != errors.Is(err, errAnswerNo), err != nil && !tt.no:
				t.Errorf("got error %v", err)
			}
			if !strings.Contains(out, tt.has) {
				t.Errorf("no %q in\n%s", tt.has, out)
			}
		})
	}
}

// Each verb says which rights it needs and fits into 80 columns; those with data have one versioned form.
func TestHelpAndFormats(t *testing.T) {
	a := &app{}
	for _, c := range a.command().Commands() {
		if !strings.Contains(c.Long, "Rights needed:") || c.Example == "" {
			t.Errorf("%s: the help has no rights or no examples", c.Name())
		}
		for line := range strings.Lines(c.Long) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
				t.Errorf("%s: %q is longer than 80 columns", c.Name(), line)
			}
		}
	}
	for _, args := range [][]string{{"why", "waits"}, {"fit", "--memory", "1"}, {"top"}, {"cordon", "n1/0"}, {"repair", "broken", "--yes"}} {
		var head struct{ APIVersion, Kind string }
		for _, format := range []string{"json", "yaml"} {
			out, err := verb(t, "", append(args, "-o", format)...)
			if err != nil && !errors.Is(err, errAnswerNo) {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(out), &head); err != nil || head.APIVersion != "gcu.topscloud.dev/v1" || head.Kind == "" {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
	}
}

func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{nil: 0, errAnswerNo: 3, errors.New("x"): 1} {
		if code, tell := exitCode(err); code != want || tell != (want == 1) {
			t.Errorf("%v: %d, %t", err, code, tell)
		}
	}
}
