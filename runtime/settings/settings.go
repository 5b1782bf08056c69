package settings

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host"
)

// Settings are what the file says, with the defaults of what it does not.
type Settings struct {
	CLI     CLI     `toml:"enflame-container-cli"`
	Runtime Runtime `toml:"enflame-container-runtime"`
}

// CLI is the section of older files. Debug counts where Runtime.Debug is empty; the others have no effect.
type CLI struct {
	Debug       string   `toml:"debug"`
	Environment []string `toml:"environment"`
	Ldconfig    string   `toml:"ldconfig"`
}

// Runtime is the section of enflame-container-runtime.
type Runtime struct {
	// Debug is a file to which is written what was decided about each container; empty is none.
	Debug string `toml:"debug"`
	// Runtimes are the real runtimes, the first that is there is used: names or absolute paths.
	Runtimes []string `toml:"runtimes"`
	// AcceptEnvvar says whether the environment of an unprivileged container decides about cards. Unset:
	// yes, except for containers of Kubernetes.
	AcceptEnvvar *bool `toml:"accept-visible-devices-envvar-when-unprivileged"`
	// TrustedNamespaces are the namespaces of Kubernetes in which the environment decides, under containerd.
	TrustedNamespaces []string `toml:"trusted-namespaces"`
	// LibraryPath and ToolPath are the folders of a container that get the vendor's libraries and tools.
	LibraryPath string `toml:"library-path"`
	ToolPath    string `toml:"tool-path"`
}

// Default returns the settings of a host without a file.
func Default() Settings {
	return Settings{Runtime: Runtime{
		Runtimes:          []string{"runc", "crun"},
		TrustedNamespaces: []string{"kube-system"},
		LibraryPath:       "/usr/lib/enflame",
		ToolPath:          "/usr/bin",
	}}
}

// Read reads the file below a host's root.
func Read(root string) (Settings, error) {
	return host.ReadConfig(root, contract.RuntimeConfigPath, Default, Parse)
}

// Parse reads the text of a file.
func Parse(text []byte) (Settings, error) {
	s := Default()
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		var unknown *toml.StrictMissingError
		if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
			return Settings{}, fmt.Errorf("unknown key %s", strings.Join(unknown.Errors[0].Key(), "."))
		}
		return Settings{}, err
	}
	return s, s.validate()
}

func (s Settings) validate() error {
	r := s.Runtime
	if len(r.Runtimes) == 0 {
		return errors.New("runtimes: want at least one")
	}
	for _, name := range r.Runtimes {
		if name == "" || strings.Contains(name, "/") && !filepath.IsAbs(name) {
			return fmt.Errorf("runtimes: %q: want a name or an absolute path", name)
		}
	}
	for _, folder := range [][2]string{{"library-path", r.LibraryPath}, {"tool-path", r.ToolPath}} {
		path := folder[1]
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.Contains(path, ":") {
			return fmt.Errorf("%s: %q: want the absolute path of a folder", folder[0], path)
		}
	}
	for _, namespace := range r.TrustedNamespaces {
		if namespace == "" {
			return errors.New("trusted-namespaces: a name is empty")
		}
	}
	if path := s.DebugFile(); path != "" && !filepath.IsAbs(path) {
		return fmt.Errorf("debug: %q: want an absolute path", path)
	}
	return nil
}

// DebugFile returns the file for what was decided about each container; empty is none.
func (s Settings) DebugFile() string {
	if s.Runtime.Debug != "" {
		return s.Runtime.Debug
	}
	return s.CLI.Debug
}
