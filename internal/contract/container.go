package contract

// Environment of a container that has cards.
const (
	// EnvVisibleDevices names the cards a container asks for or has: "0,1" or "GCU-0,GCU-1", "all", "none";
	// "void", empty or absent leaves the container alone.
	EnvVisibleDevices = "ENFLAME_VISIBLE_DEVICES"
	// EnvUsableMemory is the MiB that the container may use on each of them, in the same order: "8192,8192".
	EnvUsableMemory = "ENFLAME_CONTAINER_USABLE_GLOBAL_MEM"
)

// ControlDevice is the device node that every container with a card gets beside its cards.
const ControlDevice = "/dev/gcuctl"

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

// BookSocket is where the node agent tells the node's other programs who holds what.
const BookSocket = "/run/enflame-gcu/book.sock"

// CDI specs: static ones survive a reboot, dynamic ones do not.
const (
	CDIStaticDir  = "/etc/cdi"
	CDIDynamicDir = "/var/run/cdi"
)

// CDIKind returns the CDI kind of whole cards, "enflame.com/gcu".
func (n *Names) CDIKind() string { return n.Domain + "/" + n.Type }

// CDIFile returns the file name of the static CDI spec of whole cards, "enflame.com-gcu.yaml".
func (n *Names) CDIFile() string { return n.Domain + "-" + n.Type + ".yaml" }

// CDIClass is the class of the CDI names that stand for what a container was given; the vendor is the
// domain. For enflame.com/gcu the kind is enflame.com/gcushare.
func (n *Names) CDIClass() string { return n.Type + "share" }
