package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
)

// Files are the parts of topscloud.json that say what a container with cards is given.
type Files struct {
	// Resource is the first registered resource, from which all names derive.
	Resource string
	// Control are the device nodes every container with a card has, besides those of its cards.
	Control []string
	// Tools and Libraries are file names of the vendor's programs and libraries.
	Tools, Libraries []string
	// Card is what the path of a card's node starts with, before its minor.
	Card string
}

// DefaultFiles are those of a host without topscloud.json.
func DefaultFiles() Files {
	return Files{Resource: "enflame.com/gcu", Card: "/dev/gcu", Control: []string{"/dev/gcuctl"},
		Tools: []string{"efsmi"}, Libraries: []string{"libefml.so"}}
}

// ReadFiles reads topscloud.json below a host's root. Keys it does not have are those of DefaultFiles.
func ReadFiles(root string) (Files, error) {
	return ReadConfig(root, contract.TopsCloudConfigPath, DefaultFiles, ParseFiles)
}

// ReadConfig reads a file below a host's root that may be absent; then it is what fallback says. Errors of
// parse name the file.
func ReadConfig[T any](root, file string, fallback func() T, parse func([]byte) (T, error)) (T, error) {
	var none T
	path := filepath.Join(root, file)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fallback(), nil
	}
	if err != nil {
		return none, err
	}
	out, err := parse(text)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// ParseFiles reads the text of topscloud.json. It is a file of the vendor with parts that are none of our
// business, so unknown keys are passed over; what it says about paths is checked, since each becomes a
// mount or a device of a container.
func ParseFiles(text []byte) (Files, error) {
	var raw struct {
		RegisterResource []string `json:"registerResource"`
		MainDevice       []string `json:"mainDevice"`
		DriverDevice     []string `json:"driverDevice"`
		UtilityBins      []string `json:"utilityBins"`
		UtilityLibs      []string `json:"utilityLibs"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return Files{}, err
	}
	out := DefaultFiles()
	names, err := contract.RegisteredNames(raw.RegisterResource)
	if err != nil {
		return Files{}, err
	}
	out.Resource = names.ResourceWhole
	if len(raw.MainDevice) > 0 {
		out.Card = raw.MainDevice[0]
	}
	if raw.DriverDevice != nil {
		out.Control = raw.DriverDevice
	}
	if raw.UtilityBins != nil {
		out.Tools = raw.UtilityBins
	}
	if raw.UtilityLibs != nil {
		out.Libraries = raw.UtilityLibs
	}
	for _, device := range append([]string{out.Card}, out.Control...) {
		if filepath.Clean(device) != device || !strings.HasPrefix(device, "/dev/") {
			return Files{}, fmt.Errorf("device %q: want a path below /dev", device)
		}
	}
	for _, file := range append(append([]string{}, out.Tools...), out.Libraries...) {
		if file == "" || file == "." || file == ".." || strings.ContainsAny(file, "/\x00") {
			return Files{}, fmt.Errorf("file %q: want a file name without a path", file)
		}
	}
	return out, nil
}
