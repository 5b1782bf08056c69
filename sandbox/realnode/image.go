package realnode

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/topscloud/topscloud/sandbox/binaries"
)

// ProbeImage is the image every node has: one static program, see package probe. Nothing can be pulled, so pods
// that use it say imagePullPolicy: Never.
const ProbeImage = "topscloud.local/probe:v1"

// ProbePath is where the program is in the image.
const ProbePath = "/probe"

// buildProbe builds the program for an image. Go's own cache makes that quick from the second time on.
func buildProbe(ctx context.Context, path string) error {
	source, ok := binaries.FindSource()
	if !ok {
		return errors.New("build the probe: the source tree is not above the working directory")
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", path, "./sandbox/realnode/probe")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the probe: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive collects an image layout: blobs by digest, and an index that names the image.
type archive struct {
	w   *tar.Writer
	err error
}

func (a *archive) file(name string, text []byte, mode int64) {
	if a.err == nil {
		a.err = a.w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(text))})
	}
	if a.err == nil {
		_, a.err = a.w.Write(text)
	}
}

func (a *archive) blob(mediaType string, text []byte) descriptor {
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	a.file("blobs/sha256/"+digest, text, 0o644)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(text)}
}

func (a *archive) json(mediaType string, value any) descriptor {
	text, err := json.Marshal(value)
	if err != nil && a.err == nil {
		a.err = err
	}
	return a.blob(mediaType, text)
}

// imageFile is a file of an image.
type imageFile struct {
	path string
	text []byte
}

// writeImage writes an OCI archive of an image that holds files and runs the first one with args.
func writeImage(w io.Writer, name string, files []imageFile, args ...string) error {
	var layer bytes.Buffer
	inner := &archive{w: tar.NewWriter(&layer)}
	for _, p := range files {
		inner.file(p.path[1:], p.text, 0o755)
	}
	if err := errors.Join(inner.err, inner.w.Close()); err != nil {
		return err
	}
	a := &archive{w: tar.NewWriter(w)}
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	content := a.blob("application/vnd.oci.image.layer.v1.tar", layer.Bytes())
	config := a.json("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{files[0].path}, "Cmd": args},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{content.Digest}},
	})
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest := a.json(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{content},
	})
	manifest.Annotations = map[string]string{"io.containerd.image.name": name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return err
	}
	a.file("index.json", index, 0o644)
	return errors.Join(a.err, a.w.Close())
}
