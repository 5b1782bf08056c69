package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Component is what every component has: the fields that the vendor's guide calls BaseFields, and some of ours.
type Component struct {
	Workload  `json:",inline"`
	Container `json:",inline"`
}

// Workload is the DaemonSet or Deployment of a component.
type Workload struct {
	// Do not deploy the component.
	// +optional
	NotDeploy *bool `json:"notDeploy,omitempty"`
	// Name of the workload.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="want lower-case letters, digits and '-', with a letter or digit at both ends"
	Name string `json:"name,omitempty"`
	// Namespace of the workload. kube-system if not given.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="want lower-case letters, digits and '-', with a letter or digit at both ends"
	Namespace string `json:"namespace,omitempty"`
	// Only nodes with these labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitzero"`
	// Taints that its pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitzero"`
	// Secrets that open the registry.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitzero"`
	// How a change of its pods is rolled out.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
}

// Container is the program of a component.
type Container struct {
	// Name of the image, without registry and tag.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]+([._/-]+[a-z0-9]+)*$')",message="want the name of an image alone: its registry goes into repository, its tag into version"
	Image string `json:"image,omitempty"`
	// Registry and path that the image is in. The operator's own if not given.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$')",message="want a registry and a path, as in registry.example.com:5000/gcu"
	Repository string `json:"repository,omitempty"`
	// Tag of the image, or its digest as sha256:….
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9_.-]*)$')",message="want a tag (letters, digits, '_', '.', '-') or sha256: and 64 hexadecimal digits"
	Version string `json:"version,omitempty"`
	// When the image is pulled. IfNotPresent if not given.
	// +optional
	// +kubebuilder:validation:Enum="";Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// Environment of the program.
	// +optional
	Env []EnvVar `json:"env,omitzero"`
	// Further arguments of the program, behind those of the operator.
	// +optional
	Args []string `json:"args,omitzero"`
	// What the container may use.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// EnvVar is a variable of the environment.
type EnvVar struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// +optional
	Value *string `json:"value,omitempty"`
}

// UpdateStrategy is how a change of a workload's pods is rolled out.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'OnDelete' || !has(self.rollingUpdate)",message="rollingUpdate is for type RollingUpdate",fieldPath=".rollingUpdate",reason=FieldValueForbidden
type UpdateStrategy struct {
	// +optional
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type string `json:"type,omitempty"`
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// The types of UpdateStrategy.
const (
	RollingUpdateType = "RollingUpdate"
	OnDeleteType      = "OnDelete"
)

// RollingUpdate bounds how much of a workload changes at once.
type RollingUpdate struct {
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// NFD is node-feature-discovery: one workload with two programs.
type NFD struct {
	Workload `json:",inline"`
	// The program that writes labels. Of its fields those of the workload have no effect.
	// +optional
	Master *Component `json:"master,omitempty"`
	// The program that looks at a node. Of its fields those of the workload have no effect.
	// +optional
	Worker *Component `json:"worker,omitempty"`
}

// Driver is the kernel driver.
type Driver struct {
	Component `json:",inline"`
	// Where the driver comes from: "image" installs that of the image, "preinstalled" checks the one of the host.
	// If not given, image where the resource names one by image, repository or version, else preinstalled.
	// +optional
	// +kubebuilder:validation:Enum=image;preinstalled
	Mode string `json:"mode,omitempty"`
}

// The modes of Driver.
const (
	DriverFromImage    = "image"
	DriverPreinstalled = "preinstalled"
)

// SharePlugin is what offers shares of cards.
type SharePlugin struct {
	Component `json:",inline"`
	// Size of a unit of card memory, in GiB. 1 if not given.
	// +optional
	// +kubebuilder:validation:Enum="1";"0.1";"0.01";"0.001"
	MemoryUnit string `json:"memoryUnit,omitempty"`
	// Nodes that share their cards. All with cards, if there are none.
	// +optional
	GcushareNodes []string `json:"gcushareNodes,omitzero"`
}
