package fakectl

/*
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef int (*words_fn)(uint64_t, uint64_t, uint64_t, uint64_t);

// Functions of the driver take integers and pointers only, in registers.
static int call_words(void *f, const uint64_t *a) { return ((words_fn)f)(a[0], a[1], a[2], a[3]); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Foreign is a thread of another library that uses the driver by itself.
type Foreign struct {
	fake  *Fake
	calls chan func()
}

// NewForeign begins a thread with the primary context of a device current. End ends it.
func (f *Fake) NewForeign(ordinal int) (*Foreign, error) {
	o := &Foreign{fake: f, calls: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its context
		for call := range o.calls {
			call()
		}
	}()
	ctx, code := o.Made("cuDevicePrimaryCtxRetain", uint64(ordinal))
	if code == 0 {
		code = o.Call("cuCtxSetCurrent", ctx)
	}
	if code != 0 {
		o.End()
		return nil, fmt.Errorf("the look-alike driver refuses a context (%d)", code)
	}
	return o, nil
}

// End ends the thread after its present call. Its context stays retained.
func (o *Foreign) End() { close(o.calls) }

// Begin begins a call of a function of the driver; the channel gives its code.
func (o *Foreign) Begin(function string, args ...uint64) <-chan int {
	code := make(chan int, 1)
	o.calls <- func() { code <- o.fake.words(function, args) }
	return code
}

// Call calls a function of the driver and returns its code.
func (o *Foreign) Call(function string, args ...uint64) int {
	return <-o.Begin(function, args...)
}

// Made calls a function whose first argument is a place for a result, and returns that.
func (o *Foreign) Made(function string, args ...uint64) (result uint64, code int) {
	return o.placed(func(at uint64) int { return o.Call(function, append([]uint64{at}, args...)...) })
}

// Ended calls a function whose last argument is a place for a result, and returns that.
func (o *Foreign) Ended(function string, args ...uint64) (result uint64, code int) {
	return o.placed(func(at uint64) int { return o.Call(function, append(args, at)...) })
}

func (o *Foreign) placed(call func(at uint64) int) (uint64, int) {
	place := (*uint64)(C.calloc(1, 8))
	defer C.free(unsafe.Pointer(place))
	code := call(uint64(uintptr(unsafe.Pointer(place))))
	return *place, code
}

// CaptureMode returns the capture mode of the calling thread; the goroutine must be locked
// to it.
func (f *Fake) CaptureMode() int {
	mode := (*C.int)(C.calloc(1, C.sizeof_int))
	defer C.free(unsafe.Pointer(mode))
	at := []uint64{uint64(uintptr(unsafe.Pointer(mode)))}
	f.words("cuThreadExchangeStreamCaptureMode", at)
	before := int(*mode)
	f.words("cuThreadExchangeStreamCaptureMode", at)
	return before
}

func (f *Fake) words(function string, args []uint64) int {
	path, name := C.CString(f.Path), C.CString(function)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(name))
	at := C.dlsym(C.dlopen(path, C.RTLD_NOW|C.RTLD_LOCAL), name)
	if at == nil {
		return -1
	}
	var list [4]C.uint64_t
	for i, a := range args {
		list[i] = C.uint64_t(a)
	}
	return int(C.call_words(at, &list[0]))
}
