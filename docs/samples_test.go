package docs_test

import (
	"strings"
	"testing"
)

// TestSamplesAreWhatIsPrinted keeps the samples of kubectl gcu in the documents those that its tests print.
func TestSamplesAreWhatIsPrinted(t *testing.T) {
	t.Parallel()
	samples := map[string][]string{
		"kubectl-gcu.md": {
			"pictures/why.txt", "../scheduler/explain/testdata/label-misspelled.txt", "../scheduler/explain/testdata/tenant.txt",
			"../scheduler/fit/testdata/pairs.txt", "../scheduler/usage/testdata/namespace.txt",
		},
		"../README.md":       {"pictures/why.txt"},
		"../README.zh-CN.md": {"pictures/why.txt"},
	}
	for document, files := range samples {
		text := read(t, document)
		for _, file := range files {
			if !strings.Contains(text, "\n"+strings.TrimRight(read(t, file), "\n")+"\n```") {
				t.Errorf("%s does not have %s", document, file)
			}
		}
	}
}
