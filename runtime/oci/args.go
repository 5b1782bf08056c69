package oci

import "strings"

// call is what has to be known of a command line.
type call struct {
	command    string
	bundle     string // empty: the working directory
	log, style string // --log and --log-format
	id         string
}

// Options with a value in the next argument, of runc and crun, before the command and behind it.
var (
	globalValues  = words("log log-format log-level root criu rootless cgroup-manager")
	commandValues = words("bundle b console-socket pid-file preserve-fds pidfd-socket config f")
)

func words(text string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		out[word] = true
	}
	return out
}

// parse reads the arguments behind the program's name. One dash or two make no difference, and a value may
// stand behind "=" or in the next argument. The last of several counts.
func parse(args []string) call {
	var c call
	values := globalValues
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if name == arg || arg == "-" || arg == "--" {
			if arg == "--" {
				if i++; i >= len(args) {
					break
				}
				arg = args[i]
			}
			if c.command == "" {
				c.command, values = arg, commandValues
				continue
			}
			c.id = arg
			break // what follows are arguments of the command, not options
		}
		name, value, inline := strings.Cut(name, "=")
		if !inline && values[name] && i+1 < len(args) {
			i++
			value = args[i]
		}
		switch {
		case c.command == "" && name == "log":
			c.log = value
		case c.command == "" && name == "log-format":
			c.style = value
		case c.command != "" && (name == "bundle" || name == "b"):
			c.bundle = value
		}
	}
	return c
}
