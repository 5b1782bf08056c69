package contract_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/internal/contract"
)

func published() contract.PublishedLabels {
	return contract.PublishedLabels{Version: contract.PublishedLabelsVersion, Labels: map[string]string{
		"enflame.com/gcu.model": "S60", "enflame.com/gcu.count": "8", "enflame.com/gfd.timestamp": "2024-05-20-06-40-27",
	}}
}

func TestPublishedLabelsGolden(t *testing.T) {
	text := must[string](t)(contract.EncodePublishedLabels(published())) + "\n"
	path := filepath.Join("testdata", "published-v1.json")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != text {
		t.Errorf("%s is\n%s\nthis release writes\n%s", path, b, text)
	}
	want := published()
	if diff := cmp.Diff(&want, must[*contract.PublishedLabels](t)(contract.DecodePublishedLabels(string(b)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPublishedLabelsRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":         "",
		"no labels":     `{"version":"v1","labels":{}}`,
		"an empty key":  `{"version":"v1","labels":{"":"x"}}`,
		"newer version": `{"version":"v2","labels":{"a":"b"}}`,
		"unknown field": `{"version":"v1","labels":{"a":"b"},"by":"me"}`,
		"a number":      `{"version":"v1","labels":{"a":8}}`,
		"text behind":   `{"version":"v1","labels":{"a":"b"}}x`,
	} {
		if p, err := contract.DecodePublishedLabels(text); err == nil {
			t.Errorf("%s: read as %+v", name, p)
		}
	}
	if _, err := contract.EncodePublishedLabels(contract.PublishedLabels{}); err == nil {
		t.Error("an empty set was written")
	}
}

func FuzzDecodePublishedLabels(f *testing.F) {
	f.Add(must[string](f)(contract.EncodePublishedLabels(published())))
	f.Add(`{"version":"v1","labels":{"a":""}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := contract.DecodePublishedLabels(text)
		if err != nil {
			return
		}
		canonical, err := contract.EncodePublishedLabels(*p)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		if diff := cmp.Diff(p, must[*contract.PublishedLabels](t)(contract.DecodePublishedLabels(canonical))); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
