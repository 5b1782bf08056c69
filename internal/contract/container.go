package contract

// EnvVisibleDevices names the cards a container asks for: "0,1" or "GCU-0,GCU-1", "all", "none"; "void",
// empty or absent leaves the container alone.
const EnvVisibleDevices = "ENFLAME_VISIBLE_DEVICES"

// EnvHostRoot is the root below which a program of ours finds /sys, /dev, /etc, /proc and /run of the
// host it is about; absent means /.
const EnvHostRoot = "GCU_HOST_ROOT"

// Files of the container toolkit on a host.
const (
	TopsCloudConfigPath = "/etc/topscloud/topscloud.json"
	RuntimeConfigPath   = "/etc/enflame-container-runtime/config.toml"
	RuntimePath         = "/usr/bin/enflame-container-runtime"
	RuntimeName         = "enflame" // the runtime's name in an engine's configuration
)

// CDI specs: static ones survive a reboot, dynamic ones do not.
const (
	CDIStaticDir  = "/etc/cdi"
	CDIDynamicDir = "/var/run/cdi"
)

// CDIKind returns the CDI kind of whole cards, "enflame.com/gcu".
func (n *Names) CDIKind() string { return n.Domain + "/" + n.Type }

// CDIFile returns the file name of the static CDI spec of whole cards, "enflame.com-gcu.yaml".
func (n *Names) CDIFile() string { return n.Domain + "-" + n.Type + ".yaml" }
