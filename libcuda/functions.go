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
	// it, unless itself is set.
	name string
	// version is the oldest CUDA version whose programs get it for that name.
	version int
	// also is another name by which programs of CUDA 12 and later find it.
	also   string
	twin   string
	call   func(c *caller, a *args) error
	early  bool // it may be called before cuInit
	itself bool
}

// functions is the table of all.
var functions = slices.Concat(processFunctions, deviceFunctions, contextFunctions, streamFunctions, eventFunctions,
	hostFunctions, memoryFunctions, poolFunctions, copyFunctions, fillFunctions, valueFunctions, moduleFunctions,
	linkFunctions, kernelFunctions, launchFunctions, captureFunctions, graphFunctions, nodeFunctions, userObjectFunctions, refusedFunctions)

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

// library is what the program has loaded: the functions by their numbers there.
var library struct {
	functions []exported
	byBase    map[string][]*exported
}

func init() {
	if library.functions != nil {
		return
	}
	library.functions = everyName()
	library.byBase = map[string][]*exported{}
	for i := range library.functions {
		f := &library.functions[i]
		for _, base := range []string{f.base(), f.also} {
			library.byBase[base] = append(library.byBase[base], f)
		}
	}
}

var suffix = regexp.MustCompile(`_v\d+$`)

func (f *function) base() string {
	if f.itself {
		return f.name
	}
	return suffix.ReplaceAllString(f.name, "")
}

// hsCudaLibrary notes where the program's library has a function. It returns 0 if the function with that number has
// another name.
//
//export hsCudaLibrary
func hsCudaLibrary(number C.int, name *C.char, address C.ulong) C.int {
	if int(number) >= len(library.functions) || library.functions[number].symbol != C.GoString(name) {
		return 0
	}
	library.functions[number].address = uintptr(address)
	return 1
}
