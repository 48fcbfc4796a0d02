// Package program has what libraries for programs in C share: the program's threads and where they call from, the tools
// that variables ask for, and what these report at the end of the process.
//
// A library has it or package python, by which the extension knows the same of programs in Python, and no process has both.
package program

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"halstream/bindings"
	"halstream/hal"
)

func init() {
	// A thread of the program must get a processor of the Go scheduler at once, also
	// while the device's engines keep theirs busy.
	runtime.GOMAXPROCS(runtime.NumCPU() + 4)
	debug.SetGCPercent(400)
}

// opened is the runtime once a call has needed it.
var opened struct {
	sync.Mutex
	rt atomic.Pointer[hal.Runtime]
}

// Runtime returns the runtime, opened at the first use, which prepare gets before the tools begin; it may be nil.
func Runtime(prepare func(*hal.Runtime)) (*hal.Runtime, error) {
	if rt := opened.rt.Load(); rt != nil {
		return rt, nil
	}
	opened.Lock()
	defer opened.Unlock()
	if rt := opened.rt.Load(); rt != nil {
		return rt, nil
	}
	rt, err := bindings.Open(bindings.BackendName(), "open backend")
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		prepare(rt)
	}
	if err := Tools(rt); err != nil {
		rt.Close()
		return nil, err
	}
	opened.rt.Store(rt)
	return rt, nil
}
