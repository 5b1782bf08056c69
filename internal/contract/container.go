package contract

// Environment of a container that has cards.
const (
	// EnvVisibleDevices lists the minors of the container's cards: "0,1".
	EnvVisibleDevices = "ENFLAME_VISIBLE_DEVICES"
	// EnvUsableMemory is the MiB that the container may use on each of them, in the same order: "8192,8192".
	EnvUsableMemory = "ENFLAME_CONTAINER_USABLE_GLOBAL_MEM"
)

// ControlDevice is the device node that every container with a card gets beside its cards.
const ControlDevice = "/dev/gcuctl"

// CDIClass is the class of the CDI names that stand for what a container was given; the vendor is the
// domain. For enflame.com/gcu the kind is enflame.com/gcushare.
func (n *Names) CDIClass() string { return n.Type + "share" }
