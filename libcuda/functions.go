package libcuda

import "C"

import (
	"regexp"
	"slices"
	"sort"
)

// The twins that a function has for programs that were compiled for per-thread default streams.
const (
	noTwin = ""
	ptsz   = "_ptsz" // of functions with a stream
	ptds   = "_ptds" // of functions that imply one
)

// nowhere stands for the place of an argument that a function does not have.
const nowhere = -1

// function is a function of the driver.
type function struct {
	// name is the one that the library exports. Without a suffix like _v2 it is the one by which cuGetProcAddress finds
	// it, unless wholeName is set: then that is the name with its suffix.
	name      string
	wholeName bool
	// version is the oldest CUDA version whose programs get it for that name.
	version int
	// firstVersion is that of the function whose name has no suffix, where that does the same; 0 where it does not, or
	// there is none.
	firstVersion int
	// renamed is the name by which programs of CUDA 12 and later find it, too.
	renamed string
	twin    string
	call    func(c *caller, a *args) error
	early   bool // it may be called before cuInit
}

// renamedVersion is the oldest CUDA version whose programs find functions by a new name.
const renamedVersion = 12000

// functions is the table of all.
var functions = withFirstVersions(processFunctions, deviceFunctions, contextFunctions, streamFunctions, eventFunctions,
	hostFunctions, memoryFunctions, shareFunctions, poolFunctions, copyFunctions, fillFunctions, valueFunctions, moduleFunctions,
	linkFunctions, kernelFunctions, launchFunctions, captureFunctions, graphFunctions, nodeFunctions, userObjectFunctions, refusedFunctions)

// withFirstVersions returns all functions, those with firstVersion also as it.
func withFirstVersions(nouns ...[]function) (all []function) {
	all = slices.Concat(nouns...)
	for _, f := range all {
		if f.firstVersion != 0 {
			all = append(all, function{name: f.baseName(), version: f.firstVersion, twin: f.twin, call: f.call})
		}
	}
	return all
}

// exported is a function under one of its names.
type exported struct {
	*function
	symbol    string
	perThread bool
	address   uintptr
}

func everyName() (all []exported) {
	for i := range functions {
		f := &functions[i]
		all = append(all, exported{function: f, symbol: f.name})
		if f.twin != noTwin {
			all = append(all, exported{function: f, symbol: f.name + f.twin, perThread: true})
		}
	}
	sort.Slice(all, func(i, k int) bool { return all[i].symbol < all[k].symbol })
	return all
}

// Names returns the names of all functions, in the order of their numbers.
func Names() (names []string) {
	for _, f := range everyName() {
		names = append(names, f.symbol)
	}
	return names
}

// exports are the functions of the library that the program has loaded, by their numbers there.
var exports struct {
	functions []exported
	byName    map[string][]*exported // as cuGetProcAddress finds them
}

func init() {
	if exports.functions != nil {
		return
	}
	exports.functions = everyName()
	exports.byName = map[string][]*exported{}
	for i := range exports.functions {
		f := &exports.functions[i]
		exports.byName[f.baseName()] = append(exports.byName[f.baseName()], f)
		if f.renamed != "" {
			exports.byName[f.renamed] = append(exports.byName[f.renamed], f)
		}
	}
}

var versionSuffix = regexp.MustCompile(`_v\d+$`)

// baseName returns the name by which cuGetProcAddress finds the function.
func (f *function) baseName() string {
	if f.wholeName {
		return f.name
	}
	return versionSuffix.ReplaceAllString(f.name, "")
}

// versionFor returns the oldest CUDA version whose programs find the function by a name.
func (f *function) versionFor(name string) int {
	if name == f.renamed {
		return max(f.version, renamedVersion)
	}
	return f.version
}

// hsCudaLibrary notes where the program's library has a function. It returns 0 if the function with that number has
// another name.
//
//export hsCudaLibrary
func hsCudaLibrary(number C.int, name *C.char, address C.ulong) C.int {
	if int(number) >= len(exports.functions) || exports.functions[number].symbol != C.GoString(name) {
		return 0
	}
	exports.functions[number].address = uintptr(address)
	return 1
}
