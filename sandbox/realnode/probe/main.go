// Command probe is the only program in the images of the tests' real node: it is the sandbox's pause program, and
// in a container it tells which cards the container has.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = "usage: probe pause | sleep [--for d] | report [flags] | serve [flags] | crash [--after d] [flags] | end"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	try := flags.String("try", "", "character devices to make and open: <major>:<first minor>-<last minor>")
	after := flags.Duration("after", 0, "time until crash ends")
	long := flags.Duration("for", 0, "time until sleep ends")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	tell := func() error {
		r, err := look("/dev", *try)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	switch args[0] {
	case "pause":
		return pause(end)
	case "sleep":
		wait(end, *long)
		return nil
	case "end": // started in a container, ends its first process
		return syscall.Kill(1, syscall.SIGTERM)
	case "report":
		return tell()
	case "serve":
		if err := tell(); err != nil {
			return err
		}
		<-end
		return nil
	case "crash":
		if err := tell(); err != nil {
			return err
		}
		wait(end, *after)
		os.Exit(1)
	}
	return errors.New(usage)
}

func wait(end <-chan os.Signal, long time.Duration) {
	select {
	case <-end:
	case <-time.After(long):
	}
}

// pause holds a pod's namespaces and, as their first process, collects what is left to it.
func pause(end <-chan os.Signal) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return nil
		case <-children:
			for {
				pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
				if errors.Is(err, syscall.EINTR) {
					continue
				}
				if err != nil || pid <= 0 {
					break
				}
			}
		}
	}
}
