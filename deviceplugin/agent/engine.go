package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
)

// EngineProbe tells whether a container engine resolves CDI names from a folder.
type EngineProbe interface {
	// Resolves returns why it does not, nil if it does. version is what kubelet says of the engine, for
	// example "containerd://2.4.2".
	Resolves(ctx context.Context, version, cdiDir string) error
}

// CRIProbe asks the engine itself, over the socket that kubelet uses; where the socket is not there, what is
// known of the engine's version decides.
type CRIProbe struct{ Socket string }

var _ EngineProbe = CRIProbe{}

// Resolves implements EngineProbe.
//
// Docker is refused whatever it can do: what its CRI shim passes on carries no pod, and it takes CDI names
// from no annotation. containerd has CDI always on since 2.0; before, enable_cdi decides and is off by
// default (containerd docs/cri/config.md). CRI-O has it since 1.23.
func (p CRIProbe) Resolves(ctx context.Context, version, cdiDir string) error {
	engine, number, ok := strings.Cut(version, "://")
	if !ok {
		return fmt.Errorf("the container engine %q is not known", version)
	}
	major, minor := numbers(number)
	switch engine {
	case "docker":
		return errors.New("docker carries no pod identity to cards; whole cards only (environment and enflame-container-runtime)")
	case "cri-o":
		if major < 1 || major == 1 && minor < 23 {
			return fmt.Errorf("cri-o %s resolves no CDI names; 1.23 does", number)
		}
		return nil
	case "containerd":
	default:
		return fmt.Errorf("the container engine %q is not known to resolve CDI names", engine)
	}
	config, err := p.config(ctx)
	if err != nil {
		if major >= 2 {
			return nil
		}
		return fmt.Errorf("containerd %s needs enable_cdi = true, and could not be asked (%w); run enflame-ctk configure --engine containerd", number, err)
	}
	if major < 2 && !config.EnableCDI {
		return fmt.Errorf("containerd %s has enable_cdi = false; run enflame-ctk configure --engine containerd and restart containerd", number)
	}
	if len(config.CDISpecDirs) > 0 && !slices.Contains(config.CDISpecDirs, filepath.Clean(cdiDir)) {
		return fmt.Errorf("containerd reads CDI files from %s and not from %s", strings.Join(config.CDISpecDirs, ", "), cdiDir)
	}
	return nil
}

// criConfig are the parts of containerd's configuration that matter here, by the names in its answer.
type criConfig struct {
	EnableCDI   bool     `json:"enableCDI"`
	CDISpecDirs []string `json:"cdiSpecDirs"`
}

func (p CRIProbe) config(ctx context.Context) (criConfig, error) {
	if p.Socket == "" {
		return criConfig{}, errors.New("no socket")
	}
	conn, err := kubelet.Dial(p.Socket)
	if err != nil {
		return criConfig{}, err
	}
	defer conn.Close()
	answer, err := cri.NewRuntimeServiceClient(conn).Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return criConfig{}, fmt.Errorf("ask the engine: %w", err)
	}
	text, ok := answer.Info["config"]
	if !ok {
		return criConfig{}, errors.New("the engine does not tell its configuration")
	}
	var c criConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return criConfig{}, fmt.Errorf("the engine's configuration: %w", err)
	}
	return c, nil
}

// numbers returns the first two parts of a version, 0 where there is none.
func numbers(version string) (major, minor int) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, minor
}
