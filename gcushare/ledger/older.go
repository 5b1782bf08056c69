package ledger

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// OlderKeys returns the single-card keys that existing tools read, derived from a record, where all sharing
// containers of the pod sit on one and the same card; elsewhere they could only mislead, and there are none.
func OlderKeys(names *contract.Names, record []contract.ContainerAllocation, req *share.Request, now time.Time) (map[string]string, error) {
	out := map[string]string{}
	minor, size := -1, int64(0)
	assigned := map[string]assignedContainer{}
	for i := range req.Containers {
		c := &req.Containers[i]
		if !c.Kind.Fractional() {
			continue
		}
		for _, a := range record {
			if a.Name != c.Name {
				continue
			}
			for _, card := range a.Cards {
				if minor >= 0 && minor != card.Minor {
					return out, nil
				}
				minor = card.Minor
			}
		}
		if c.Phase != share.Init {
			size = share.Add(size, c.Amount)
		}
		assigned[c.Name] = assignedContainer{Request: c.Amount}
	}
	if minor < 0 {
		return out, nil
	}
	if size == 0 { // only init containers share
		size = max(req.Totals[share.Memory], req.Totals[share.Slices])
	}
	text, err := json.Marshal(assigned)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", contract.AssignedContainersKey, err)
	}
	out[names.RequestSizeKey] = strconv.FormatInt(size, 10)
	out[names.AssignedMinorKey] = strconv.Itoa(minor)
	out[names.AssignedKey] = "false"
	out[names.AssignedTimeKey] = strconv.FormatInt(now.UnixNano(), 10)
	out[contract.AssignedContainersKey] = string(text)
	return out, nil
}

// assignedContainer is an entry of the older annotation assigned-containers.
type assignedContainer struct {
	Allocated    bool   `json:"allocated"`
	Request      int64  `json:"request"`
	ProfileID    string `json:"profileID"`
	ProfileName  string `json:"profileName"`
	InstanceID   string `json:"instanceID"`
	InstanceUUID string `json:"instanceUUID"`
}
