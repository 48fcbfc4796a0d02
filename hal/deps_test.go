package hal_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed lists the packages of this module that each package may import.
var allowed = map[string][]string{
	"hal/addrmap":        {},
	"hal/bestfit":        {"hal/driver"},
	"hal/ownthread":      {},
	"hal/pages":          {},
	"hal/park":           {},
	"hal/touch":          {"hal/driver"},
	"hal/prio":           {},
	"hal/status":         {},
	"hal/driver":         {"hal/park"},
	"hal/host/sched":     {"hal/driver", "hal/park", "hal/prio"},
	"hal/host":           {"hal/bestfit", "hal/driver", "hal/host/sched", "hal/pages", "hal/park", "hal/prio", "hal/touch", "ptx"},
	"ptx":                {},
	"hal":                {"hal/addrmap", "hal/bestfit", "hal/driver", "hal/host", "hal/native", "hal/pages", "hal/park", "hal/prio", "hal/status", "hal/touch"},
	"hal/order":          {"hal", "hal/driver"},
	"hal/stall":          {"hal", "hal/driver"},
	"hal/haltest":        {"hal", "hal/driver"},
	"hal/vendor":         {"hal/addrmap", "hal/driver", "hal/park"},
	"cuda":               {"hal", "hal/addrmap", "hal/driver", "hal/park", "hal/vendor"},
	"ascend":             {"hal", "hal/addrmap", "hal/driver", "hal/park", "hal/vendor"},
	"bindings":           {"hal", "hal/driver"},
	"bindings/constants": {"bindings", "bindings/ascendcl", "bindings/records", "hal", "hal/driver", "hal/order"},
	"bindings/ascendcl":  {"hal", "hal/driver"},
	"bindings/ids":       {"hal/driver"},
	"bindings/python":    {"bindings/ids", "bindings/records", "bindings/sites", "bindings/threads", "bindings/waits", "hal", "hal/driver", "hal/stall"},
	"bindings/program": {"bindings", "bindings/records", "bindings/schedules", "bindings/sites", "bindings/threads", "bindings/waits", "hal", "hal/driver",
		"hal/order", "hal/ownthread", "hal/stall"},
	"bindings/records":   {"hal"},
	"bindings/schedules": {"hal/stall"},
	"bindings/sites":     {},
	"bindings/threads":   {"hal/driver"},
	"bindings/waits":     {"hal/driver", "hal/stall"},
	"capi":               {"bindings/python", "bindings/waits", "hal", "hal/bestfit", "hal/driver", "hal/stall"},
	"libascendcl":        {"bindings/ascendcl", "bindings/ids", "bindings/program", "bindings/records", "bindings/waits", "cuda", "hal", "hal/driver"},
	"libcuda":            {"bindings/ids", "hal", "hal/driver", "ptx"},
	"libcuda/names":      {"bindings/program", "libcuda"},
	"libcuda/standalone": {"bindings/program", "bindings/waits", "hal", "hal/driver", "libcuda"},
	"pybuild": {"ascend", "bindings", "bindings/python", "bindings/records", "bindings/schedules", "bindings/threads", "bindings/waits",
		"capi", "cuda", "hal", "hal/bestfit", "hal/driver", "hal/order", "hal/ownthread", "hal/stall", "libcuda", "ptx"},
}

// TestImports checks that packages import only the layers below them: backends the
// interfaces, the ways into the core what they share, and nothing but the extension Python.
func TestImports(t *testing.T) {
	root := ".."
	for dir, may := range allowed {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				require.False(t, dir == "hal/vendor" && path == "C", "%s has C", file)
				if own, ok := strings.CutPrefix(path, "halstream/"); ok {
					require.Contains(t, may, own, "%s imports %s", file, path)
				}
			}
			if dir != "pybuild" && dir != "bindings/python" {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NotContains(t, string(text), "PyEval_", file)
			}
		}
	}
}
