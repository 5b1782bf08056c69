package oci

import "testing"

// FuzzParse checks that no command line makes the parser fail, and that a command is one of the arguments.
func FuzzParse(f *testing.F) {
	f.Add("--root", "X", "create", "--bundle", "B")
	f.Add("--log", "", "--", "create", "-b")
	f.Add("-", "--", "create", "--", "--bundle=x")
	f.Fuzz(func(t *testing.T, a, b, c, d, e string) {
		args := []string{a, b, c, d, e}
		for n := range len(args) + 1 {
			got := parse(args[:n])
			found := got.command == ""
			for _, arg := range args[:n] {
				found = found || got.command == arg
			}
			if !found {
				t.Fatalf("%q gives %+v", args[:n], got)
			}
		}
	})
}
