package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the API.
const (
	GroupName = "topsops.enflame.com"
	Version   = "v1"
	KindName  = "GcuResource"
	Plural    = "gcuresources"
	// Finalizer keeps a GcuResource until what it made is gone.
	Finalizer = "topsops.enflame.com/v1"
)

// GroupVersion is the group and version of GcuResource.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: Version}

// AddToScheme makes the types known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &GcuResource{}, &GcuResourceList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
