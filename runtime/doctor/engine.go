package doctor

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/topscloud/topscloud/runtime/engine"
	"github.com/topscloud/topscloud/runtime/engine/containerd"
	"github.com/topscloud/topscloud/runtime/engine/docker"
)

// engineDriver is the cgroup driver of an engine.
type engineDriver struct {
	name, driver, note string
	err                error
}

// engines returns the engines that have a configuration on the host.
func engines(root string) []engineDriver {
	var out []engineDriver
	if text, err := engine.Read(filepath.Join(root, containerd.ConfigPath)); text != nil || err != nil {
		e := engineDriver{name: "containerd", driver: Cgroupfs, err: err}
		if err == nil {
			systemd, known, err := containerd.SystemdCgroup(root)
			e.err = err
			if !known {
				e.note = ", since SystemdCgroup of the default runtime is not set"
			}
			if systemd {
				e.driver = Systemd
			}
		}
		out = append(out, e)
	}
	if text, err := engine.Read(filepath.Join(root, docker.ConfigPath)); text != nil || err != nil {
		e := engineDriver{name: "docker", err: err}
		if err == nil {
			e.driver, e.err = dockerDriver(text)
		}
		if e.driver == "" && e.err == nil {
			e.note = "no driver is set: Docker takes systemd on v2, cgroupfs on v1"
		}
		out = append(out, e)
	}
	return out
}

// dockerDriver returns the driver that daemon.json names, "" if none.
func dockerDriver(text []byte) (string, error) {
	var config struct {
		ExecOpts []string `json:"exec-opts"`
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("%s: %w", docker.ConfigPath, err)
	}
	driver := ""
	for _, option := range config.ExecOpts {
		if value, ok := strings.CutPrefix(option, "native.cgroupdriver="); ok {
			driver = value
		}
	}
	return driver, nil
}

// remedy says how the engine gets another driver.
func (e engineDriver) remedy(driver string) string {
	if e.name == "docker" {
		return fmt.Sprintf(`write "exec-opts": ["native.cgroupdriver=%s"] into %s and restart Docker on a drained node`, driver, docker.ConfigPath)
	}
	return fmt.Sprintf("set SystemdCgroup = %t in the options of the default runtime in %s, configure again, and restart containerd", driver == Systemd, containerd.ConfigPath)
}
