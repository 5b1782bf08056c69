package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GcuResourceStatus is what the operator sees and does. It has every field of the vendor's status, in its shape.
type GcuResourceStatus struct {
	// The nodes with cards.
	// +optional
	ClusterGCUNodes []string `json:"clusterGCUNodes,omitempty"`
	// The latest action first, one entry each.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// The generation of the resource that this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// What the operator is doing.
	// +optional
	// +kubebuilder:validation:Enum=Deploying;Deleting;Upgrading;Rollbacking;Running
	Phase Phase `json:"phase,omitempty"`
	// How many components are ready, of those that count, as in 5/5.
	// +optional
	ReadyResource string `json:"readyResource,omitempty"`
	// Each component.
	// +optional
	ResourceStatuses []ResourceStatus `json:"resourceStatuses,omitempty"`
	// What an administrator should know besides.
	// +optional
	Notices []Notice `json:"notices,omitempty"`
}

// Phase is what the operator is doing with a resource or a component.
type Phase string

// The phases.
const (
	Deploying   Phase = "Deploying"
	Deleting    Phase = "Deleting"
	Upgrading   Phase = "Upgrading"
	Rollbacking Phase = "Rollbacking"
	Running     Phase = "Running"
)

// Conflict is the status of a component that another, older resource has already.
const Conflict Phase = "Conflict"

// Condition is the state of one action.
type Condition struct {
	// +kubebuilder:validation:Enum=deploy;delete;upgrade;rollback
	Action Action `json:"action"`
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`
	// +optional
	Message string `json:"message,omitempty"`
	// In percent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress int32 `json:"progress"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Status string `json:"status,omitempty"`
}

// Action is what a Condition is about.
type Action string

// The actions.
const (
	DeployAction   Action = "deploy"
	DeleteAction   Action = "delete"
	UpgradeAction  Action = "upgrade"
	RollbackAction Action = "rollback"
)

// ResourceStatus is the state of one component.
type ResourceStatus struct {
	// Key of the component in the spec.
	Name Kind `json:"name"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	Status Phase `json:"status,omitempty"`
	// Why it is not running, as one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Why it is not running.
	// +optional
	Message string `json:"message,omitempty"`
	// What the component consists of.
	// +optional
	OwnResources []OwnResource `json:"ownResources,omitempty"`
}

// OwnResource is an object that belongs to a component.
type OwnResource struct {
	// +optional
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

// Notice is something an administrator should know that is not the state of one component.
type Notice struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Reasons of notices.
const (
	// NotManaged: the spec has keys that this operator does not run.
	NotManaged = "NotManaged"
	// ForeignImage: an image is named from the vendor's registry.
	ForeignImage = "ForeignImage"
)
