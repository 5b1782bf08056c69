// Package docs_test holds the documents to what is in the tree.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// What GitHub drops from a heading on the way to its anchor.
	punctuation = regexp.MustCompile("[^\\p{L}\\p{N} _-]")
)

// TestLinks finds links to files and headings that do not exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, file := range markdown(t) {
		text := fence.ReplaceAllString(read(t, file), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), filepath.FromSlash(target))
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link to %s: no such file", file, target)
				continue
			}
			if anchor != "" && !anchors(read(t, path))[anchor] {
				t.Errorf("%s: link to %s#%s: no such heading", file, target, anchor)
			}
		}
	}
}

// TestMapIsThePicture keeps the picture in both READMEs the one that kubectl gcu draws.
func TestMapIsThePicture(t *testing.T) {
	t.Parallel()
	picture := strings.TrimRight(read(t, "pictures/map.txt"), "\n")
	for _, file := range []string{"../README.md", "../README.zh-CN.md"} {
		if !strings.Contains(read(t, file), "```\n"+picture+"\n```") {
			t.Errorf("%s: the block between map:begin and map:end is not docs/pictures/map.txt", file)
		}
	}
}

func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		words := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(words, " ", "-")] = true
	}
	return out
}

func markdown(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("%d documents: want all of them", len(files))
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
