package gcufit

import (
	"fmt"
	"time"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// annotations returns what the Binding of a holder carries: the record, and the older keys that
// existing tools read, derived from it.
func annotations(names *contract.Names, h *ledger.Holder, req *share.Request, now time.Time) (map[string]string, error) {
	record, err := contract.EncodeAllocation(contract.Allocation{Node: h.Node, Containers: h.Containers})
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", names.AllocationKey, err)
	}
	out, err := ledger.OlderKeys(names, h.Containers, req, now)
	if err != nil {
		return nil, err
	}
	out[names.AllocationKey] = record
	return out, nil
}
