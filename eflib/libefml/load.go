package libefml

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebitengine/purego"
)

// names and folders are where the library is looked for, first folder first. "" is the search of the
// dynamic linker.
var (
	names   = [...]string{"libefml.so", "libefml.so.1", "libefml.so.2", "libefml.so.2.1", "libefml.so.2.0", "libefml.so.1.0.0"}
	folders = [...]string{"", "/usr/lib/", "/usr/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/"}
)

// ErrNoLibrary means that no libefml could be loaded.
var ErrNoLibrary = errors.New("libefml cannot be loaded")

// SearchPath returns the files that Open tries, in order. With a host root other than "" and "/" the
// folders below that root come first.
func SearchPath(hostRoot string) []string {
	var list []string
	if hostRoot != "" && hostRoot != "/" {
		for _, folder := range folders[1:] {
			for _, name := range names {
				list = append(list, filepath.Join(hostRoot, folder, name))
			}
		}
	}
	for _, folder := range folders {
		for _, name := range names {
			list = append(list, folder+name)
		}
	}
	return list
}

// symbols are the functions the package calls. Only those of the first line have to be there.
var symbols = [...]string{
	"EfmlInit", "EfmlShutdown", "EfmlGetDevCount", "EfmlGetDevInfo",

	"EfmlGetDriverVer", "EfmlGetLibVer", "EfmlGetDevName", "EfmlGetDevSKU", "EfmlGetDevUuid", "EfmlGetDevSn",
	"EfmlGetDevPn", "EfmlGetDevMfd", "EfmlGetFwVersion", "EfmlGetHwArchName", "EfmlGetDevSlotOamName",
	"EfmlGetAffinityCpuList", "EfmlGetDevMem", "EfmlGetDevPwr", "EfmlGetDevTempV2", "EfmlGetDevClk",
	"EfmlGetDevDtuUsage", "EfmlGetDevDtuUsageAsync", "EfmlGetDevSipUsage", "EfmlGetClusterCount",
	"EfmlGetDevClusterUsage", "EfmlGetPGCount", "EfmlGetDevPGUsage", "EfmlGetPcieLinkInfo",
	"EfmlGetPcieThroughput", "EfmlGetDevEccStatus", "EfmlGetDevRmaDetails", "EfmlGetDevHealth",
	"EfmlGetPowerMode", "EfmlGetGcuVirtStatus", "EfmlGetNumaNode", "EfmlGetGcuLareIsSupported",
	"EfmlGetGcuLarePortNum", "EfmlGetGcuLarePortInfo", "EfmlGetGcuLareLinkInfo", "EfmlGetProcessInfo",
	"EfmlGetEvent", "EfmlGetErrorRecords", "EfmlGetVdevCount", "EfmlGetVdevMem", "EfmlGetVdevDtuUsage",
}

const requiredSymbols = 4

// load opens the first library that can be opened and finds its functions. A library is never closed
// again: a call that hangs may be inside of it for as long as the process lives.
func load(candidates []string) (path string, table map[string]uintptr, err error) {
	var errs []error
	for _, path := range candidates {
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			// Most candidates are not there, which is not worth a line; one that is there and cannot
			// be opened is.
			if _, missing := os.Stat(path); missing == nil {
				errs = append(errs, err)
			}
			continue
		}
		table := map[string]uintptr{}
		var missing string
		for i, name := range symbols {
			symbol, err := purego.Dlsym(handle, name)
			switch {
			case err == nil:
				table[name] = symbol
			case i < requiredSymbols && missing == "":
				missing = name
			}
		}
		if missing == "" {
			return path, table, nil
		}
		errs = append(errs, fmt.Errorf("%s: no function %s", path, missing))
	}
	if len(errs) == 0 {
		return "", nil, fmt.Errorf("%w: not found, %d places were searched", ErrNoLibrary, len(candidates))
	}
	return "", nil, fmt.Errorf("%w: %w", ErrNoLibrary, errors.Join(errs...))
}
