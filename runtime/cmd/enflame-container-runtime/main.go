// Command enflame-container-runtime is an OCI runtime that gives containers GCU cards: it edits the spec of
// a container and becomes runc or crun. All its arguments are those of the runtime; what it says of its
// version is the runtime's, since engines ask for that.
package main

import (
	"context"
	"os"

	"github.com/topscloud/topscloud/runtime/oci"
)

func main() {
	w := oci.Wrapper{Args: os.Args, Env: os.Environ(), Stderr: os.Stderr}
	os.Exit(w.Run(context.Background()))
}
