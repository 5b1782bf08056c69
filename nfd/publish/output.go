package publish

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/topscloud/topscloud/nfd/labels"
)

// Output is where labels are published.
type Output interface {
	fmt.Stringer
	// Read returns what is published; nil where nothing is.
	Read(ctx context.Context) (labels.Set, error)
	// Publish makes what is published the set of the result, and says whether that took a write. An empty set
	// withdraws all of it.
	Publish(ctx context.Context, r labels.Result) (changed bool, err error)
}

// Names of the outputs, as in --output.
const (
	NameFile        = "features-file"
	NameNodeFeature = "node-feature"
	NameNodeLabels  = "node-labels"
	NameAuto        = "auto"
)

// Names returns what --output takes.
func Names() []string { return []string{NameFile, NameNodeFeature, NameNodeLabels, NameAuto} }

// legal says whether the API server would take a label.
func legal(key, value string) error {
	errs := validation.IsQualifiedName(key)
	if !strings.Contains(key, "/") {
		errs = append(errs, "want <domain>/<name>")
	}
	if len(errs) > 0 {
		return fmt.Errorf("label %q: %s", key, strings.Join(errs, "; "))
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return fmt.Errorf("label %s: value %q: %s", key, value, strings.Join(errs, "; "))
	}
	return nil
}

func legalSet(set labels.Set) error {
	for key, value := range set {
		if err := legal(key, value); err != nil {
			return err
		}
	}
	return nil
}
