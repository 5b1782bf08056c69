package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// GcuResource says which parts of the GCU stack run in the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gcuresources,singular=gcuresource,shortName=gr,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.readyResource`,description="Components that are ready, of those that count"
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.phase`,description="What the operator is doing"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`,description="Since when it exists"
type GcuResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is to run. Without it nothing is.
	// +optional
	Spec GcuResourceSpec `json:"spec,omitzero"`
	// What runs. Written by the operator.
	// +optional
	Status GcuResourceStatus `json:"status,omitzero"`
}

// GcuResourceList is a list of GcuResource.
//
// +kubebuilder:object:root=true
type GcuResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GcuResource `json:"items"`
}

// GcuResourceSpec names the components. A component whose key is absent is not deployed; one whose key is there is,
// unless it says notDeploy.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.plugin) && has(self.devicePlugin))",message="plugin is another name of devicePlugin: give one of the two",fieldPath=".plugin",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.gcushareScheduler) || !has(self.gcushareScheduler.updateStrategy) || !has(self.gcushareScheduler.updateStrategy.type) || self.gcushareScheduler.updateStrategy.type != 'OnDelete'",message="the scheduler is a Deployment, which has no OnDelete: allowed is RollingUpdate",fieldPath=".gcushareScheduler.updateStrategy.type"
type GcuResourceSpec struct {
	// node-feature-discovery, which finds the nodes that have cards.
	// +optional
	NFD *NFD `json:"nfd,omitempty"`
	// The kernel driver.
	// +optional
	Driver *Driver `json:"driver,omitempty"`
	// The container toolkit.
	// +optional
	Toolkit *Component `json:"toolkit,omitempty"`
	// The node agent, which offers cards to kubelet.
	// +optional
	DevicePlugin *Component `json:"devicePlugin,omitempty"`
	// Another name of devicePlugin.
	// +optional
	Plugin *Component `json:"plugin,omitempty"`
	// The exporter of metrics.
	// +optional
	Exporter *Component `json:"exporter,omitempty"`
	// gcu-feature-discovery, which labels nodes.
	// +optional
	GFD *Component `json:"gfd,omitempty"`
	// Shares of cards. The node agent serves them too, so devicePlugin may be on beside it.
	// +optional
	GcusharePlugin *SharePlugin `json:"gcusharePlugin,omitempty"`
	// The scheduler that places shares.
	// +optional
	GcushareScheduler *Component `json:"gcushareScheduler,omitempty"`
	// node-problem-detector with the rules for cards.
	// +optional
	NPD *Component `json:"npd,omitempty"`

	// Start components whose image is named from the vendor's registry. Their programs do not take the flags of this
	// operator, so without it such a component stays down.
	// +optional
	AllowForeignImage *bool `json:"allowForeignImage,omitempty"`

	// Not managed by this operator: kept as it is.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Nightingale *runtime.RawExtension `json:"nightingale,omitempty"`
	// Not managed by this operator: kept as it is.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Volcano *runtime.RawExtension `json:"volcano,omitempty"`
}
