package explain

import (
	"time"

	"github.com/topscloud/topscloud/scheduler/remedy"
)

// The version and kind of an Explanation in JSON and YAML.
const (
	APIVersion = "gcu.topscloud.dev/v1"
	Kind       = "Explanation"
)

// Explanation is the answer about one pod.
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Asked is what was asked about, such as "deployment/web".
	Asked     string `json:"asked"`
	Namespace string `json:"namespace"`
	// Pod is the pod that is explained, empty when there is none.
	Pod string `json:"pod,omitempty"`
	// State is waiting, placed, ended or noPod.
	State State `json:"state"`
	// Well says that the pod is where it should be and nothing is wrong with it.
	Well bool `json:"well"`
	// Summary says how things stand in one sentence.
	Summary string `json:"summary"`
	// Asks is what the pod asks of GCU, by container.
	Asks []Ask `json:"asks,omitempty"`
	// Topology is same-switch or same-numa, if the pod insists on it.
	Topology string `json:"topology,omitempty"`
	// Scheduler is who has to place the pod.
	Scheduler string `json:"scheduler,omitempty"`
	// Findings are what is wrong, the most basic first.
	Findings []Finding `json:"findings,omitempty"`
	// Nodes are the verdicts on nodes, for a pod that waits; nil when nodes could not be judged.
	Nodes []Node `json:"nodes,omitempty"`
	// NotEvaluated names what of the pod only a scheduler can judge.
	NotEvaluated string `json:"notEvaluated,omitempty"`
	// Changes are the smallest ones that would help, each proven.
	Changes []Change `json:"changes,omitempty"`
	// Said is the scheduler's own diagnosis.
	Said *Said `json:"said,omitempty"`
	// Cards are those that a placed pod holds.
	Cards []Card `json:"cards,omitempty"`
	// Unseen says what could not be seen, one sentence each.
	Unseen []string `json:"unseen,omitempty"`
}

// State is how far a pod has come.
type State string

// The states.
const (
	Waiting State = "waiting"
	Placed  State = "placed"
	Ended   State = "ended"
	NoPod   State = "noPod"
)

// Ask is what one container asks for.
type Ask struct {
	Container string `json:"container"`
	Resource  string `json:"resource"`
	Amount    int64  `json:"amount"`
	Cards     int    `json:"cards"`
}

// Finding is something wrong and what to do about it.
type Finding struct {
	// Reason is one word for programs.
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Do     string `json:"do,omitempty"`
}

// Node is the verdict on one node.
type Node struct {
	Name string `json:"name"`
	// Fits says that nothing that was evaluated stands against the pod there.
	Fits bool `json:"fits"`
	// GCU is the verdict on cards, Others what else stands against the pod.
	GCU     string   `json:"gcu"`
	GCUFits bool     `json:"gcuFits"`
	Others  []string `json:"others,omitempty"`
}

// Change is a change that would help, in words too.
type Change struct {
	remedy.Change
	// ToTopology is the wish to make, of kind topology; Counts the resource that from and to count.
	ToTopology string `json:"topology,omitempty"`
	Counts     string `json:"resource,omitempty"`
	Text       string `json:"text"`
}

// Said is what a scheduler wrote to the pod.
type Said struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// Card is what a placed pod holds of one card.
type Card struct {
	Node  string `json:"node"`
	Minor int    `json:"minor"`
	UUID  string `json:"uuid,omitempty"`
	Model string `json:"model,omitempty"`
	MiB   int64  `json:"mib"`
	Whole bool   `json:"whole,omitempty"`
}
