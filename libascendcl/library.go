// Command ascend is libascendcl.so, a library with the runtime part of AscendCL's C
// interface over package hal: C programs run on its devices without Python.
//
// The C files convert arguments and keep who calls; everything else is here. Objects
// are handles, numbers that are never given twice. The rules are those of package hal,
// and the codes those of the Python package's dialect of the same interface.
package main

/*
#cgo CFLAGS: -std=gnu11 -Wall -fvisibility=hidden -I${SRCDIR}/package/include
#include "thread.h"
*/
import "C"

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	_ "halstream/cuda" // registers itself
	"halstream/hal"
	"halstream/hal/driver"
)

func main() {}

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

// inUse returns the runtime, opened at the first use.
func inUse() (*hal.Runtime, error) {
	if rt := opened.rt.Load(); rt != nil {
		return rt, nil
	}
	opened.Lock()
	defer opened.Unlock()
	if rt := opened.rt.Load(); rt != nil {
		return rt, nil
	}
	name := os.Getenv("HALSTREAM_BACKEND")
	if name == "" {
		name = "auto"
	}
	limit := 32
	if text := os.Getenv("HALSTREAM_HOST_THREADS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 4096 {
			return nil, driver.Errorf(driver.InvalidValue, "open backend",
				"HALSTREAM_HOST_THREADS is %q; give a whole number from 1 to 4096", text)
		}
		limit = n
	}
	rt, err := hal.OpenBackend(name, limit)
	if err != nil {
		return nil, err
	}
	rt.SetKept(keepFunction)
	if err := tools(rt); err != nil {
		rt.Close()
		return nil, err
	}
	opened.rt.Store(rt)
	return rt, nil
}

// device returns a device by its number.
func device(ordinal C.int32_t) (*hal.Device, error) {
	rt, err := inUse()
	if err != nil {
		return nil, err
	}
	return rt.Device(int(ordinal))
}

// caller is a thread of the program.
type caller struct {
	t      *hal.Thread
	ident  uint64  // what pthread_self returns
	system int     // its number in the system
	asked  *stream // the one that the call in progress is about, nil if it is about none or several
	code   int     // of its last failure
	text   string  // of it, "" once the program has it
	given  *C.char

	waiting   *waiting              // a wait that goes on in hsAclGoOn
	stack     atomic.Pointer[stack] // of a wait that may never end
	reporting atomic.Uint64         // the token of the callback of a subscribed stream that runs here
	reports   []uint64              // of those that run here, each inside of the one before
}

// callers is the table of threads by their numbers, from 1. It is read without a lock.
var callers struct {
	list atomic.Pointer[[]*caller]
	mu   sync.Mutex
	free []uint32
}

//export hsAclRegister
func hsAclRegister() C.uint32_t {
	var ended []*caller
	callers.mu.Lock()
	var list []*caller
	if before := callers.list.Load(); before != nil {
		list = append(list, *before...)
	} else {
		list = []*caller{nil}
	}
	for number := uint32(C.hs_acl_next_ended()); number != 0; number = uint32(C.hs_acl_next_ended()) {
		ended = append(ended, list[number])
		callers.free = append(callers.free, number)
		list[number] = nil
	}
	c := &caller{t: hal.NewThread(), ident: uint64(C.hs_acl_ident()), system: int(C.hs_acl_system_number())}
	c.t.Bound = true
	var number uint32
	if n := len(callers.free); n > 0 {
		number, callers.free = callers.free[n-1], callers.free[:n-1]
		list[number] = c
	} else {
		number = uint32(len(list))
		list = append(list, c)
	}
	callers.list.Store(&list)
	callers.mu.Unlock()
	C.hs_acl_watch_end(C.uint32_t(number))
	for _, one := range ended {
		one.t.Retire()
		one.forgetText()
	}
	return C.uint32_t(number)
}

func callerOf(me C.uint32_t) *caller { return (*callers.list.Load())[me] }

// objects are the handles of the program by their numbers.
var objects struct {
	chunks [1 << 12]atomic.Pointer[[chunkSize]atomic.Pointer[object]]
	mu     sync.Mutex
	used   uint32
	free   []uint32
	turn   [1 << 12]*[chunkSize]uint32 // how often each place was given
}

const chunkSize = 1 << 10

// object is what a handle names; it is found only by exactly this number.
type object struct {
	handle uintptr
	is     any
}

// A handle has the place in the table in its bits from 4 on, and from bit 28 on how
// often the place was given before.
const (
	placeShift = 4
	turnShift  = 28
)

// add gives an object its handle.
func add(is any) uintptr {
	objects.mu.Lock()
	defer objects.mu.Unlock()
	var place uint32
	if n := len(objects.free); n > 1024 { // old handles stay unknown for long
		place, objects.free = objects.free[0], objects.free[1:]
	} else {
		place = objects.used
		objects.used++
		if at := place / chunkSize; objects.turn[at] == nil {
			objects.turn[at] = new([chunkSize]uint32)
			objects.chunks[at].Store(new([chunkSize]atomic.Pointer[object]))
		}
	}
	turn := &objects.turn[place/chunkSize][place%chunkSize]
	*turn++
	handle := uintptr(*turn)<<turnShift | uintptr(place)<<placeShift
	objects.chunks[place/chunkSize].Load()[place%chunkSize].Store(&object{handle, is})
	return handle
}

// find returns what a handle names, nil for a handle that does not exist any more or never did.
func find(handle uintptr) any {
	place := uint32(handle>>placeShift) & (1<<(turnShift-placeShift) - 1)
	if place/chunkSize >= uint32(len(objects.chunks)) {
		return nil
	}
	chunk := objects.chunks[place/chunkSize].Load()
	if chunk == nil {
		return nil
	}
	o := chunk[place%chunkSize].Load()
	if o == nil || o.handle != handle {
		return nil
	}
	return o.is
}

// remove gives a handle up; a second time does nothing.
func remove(handle uintptr) {
	objects.mu.Lock()
	defer objects.mu.Unlock()
	if find(handle) == nil {
		return
	}
	place := uint32(handle>>placeShift) & (1<<(turnShift-placeShift) - 1)
	objects.chunks[place/chunkSize].Load()[place%chunkSize].Store(nil)
	objects.free = append(objects.free, place)
}

// each calls f with every object there is.
func each(f func(handle uintptr, is any)) {
	objects.mu.Lock()
	used := objects.used
	objects.mu.Unlock()
	for place := range used {
		if o := objects.chunks[place/chunkSize].Load()[place%chunkSize].Load(); o != nil {
			f(o.handle, o.is)
		}
	}
}
