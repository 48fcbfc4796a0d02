package libcuda

// #cgo CFLAGS: -std=gnu11 -Wall -fvisibility=hidden
// #include "entry.h"
import "C"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// args are the arguments of a call, each as the 64 bits in which it was passed. Bits above the size of an argument have
// no meaning.
type args [C.HS_CUDA_ARGUMENTS]uint64

func (a *args) int(i int) int                { return int(int32(a[i])) }
func (a *args) u32(i int) uint32             { return uint32(a[i]) }
func (a *args) handle(i int) uintptr         { return uintptr(a[i]) }
func (a *args) pointer(i int) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a[i])) }
func (a *args) text(i int) string            { return C.GoString((*C.char)(a.pointer(i))) }

// pointerAt returns a number of the program's as an address in its memory.
func pointerAt[T any](address uint64) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// in returns the structure or the first of the values that an argument points to; nil where it is NULL.
func in[T any](a *args, i int) *T { return (*T)(a.pointer(i)) }

// list returns n values that an argument points to.
func list[T any](a *args, i int, n uint64) []T {
	if n == 0 || a[i] == 0 {
		return nil
	}
	return unsafe.Slice(in[T](a, i), int(n))
}

// mostElements is more than an array of a program has.
const mostElements = 1 << 32

// elements returns the values of an array of the program, which is argument i, and whose length is another argument.
func elements[T any](a *args, i, length int) ([]T, error) {
	n := a[length]
	switch {
	case n > 0 && a[i] == 0:
		return nil, refuse(invalidValue, "argument %d is NULL, and has %d elements", i+1, n)
	case n > mostElements:
		return nil, refuse(invalidValue, "%d elements of argument %d are more than there can be", n, i+1)
	}
	return list[T](a, i, n), nil
}

// need refuses arguments that are NULL.
func (a *args) need(which ...int) error {
	for _, i := range which {
		if a[i] == 0 {
			return refuse(invalidValue, "argument %d is NULL", i+1)
		}
	}
	return nil
}

// put stores a result where an argument points to, unless that is NULL, which functions that demand one have refused.
func put[T any](a *args, i int, v T) {
	if p := in[T](a, i); p != nil {
		*p = v
	}
}

// caller is a thread of the program.
type caller struct {
	t         *hal.Thread
	number    uint32
	stack     []*context // current contexts, the last one on top
	perThread bool       // the call in progress is one for which stream 0 is the thread's default stream
	waiting   *waiting
}

// callers are the threads by their numbers.
var callers sync.Map

// callerOf returns the thread with a number, which calls.
func callerOf(number uint32) *caller {
	t := process.Load().Thread(number)
	if known, ok := callers.Load(number); ok && known.(*caller).t == t {
		return known.(*caller)
	}
	c := &caller{t: t, number: number}
	callers.Store(number, c)
	return c
}

// waiting is a wait that goes on once the stack of the call is known.
type waiting struct {
	rt   *hal.Runtime
	p    driver.Point
	then func() error
	// function is the name of the one that waits.
	function string
}

// errWaits says that the call goes on in hsCudaGoOn.
var errWaits = errors.New("waits")

// wait waits for a point, nil for one that is reached, and then returns what then returns.
func (c *caller) wait(rt *hal.Runtime, p driver.Point, then func() error) error {
	const slice = 50_000_000
	if p == nil || p.Wait(0) {
		return then()
	}
	if !rt.Deterministic() && p.Wait(slice) {
		return then()
	}
	c.waiting = &waiting{rt: rt, p: p, then: then}
	return errWaits
}

// waitAll waits for points, of which there can be none.
func (c *caller) waitAll(rt *hal.Runtime, points driver.Points, then func() error) error {
	switch len(points) {
	case 0:
		return c.wait(rt, nil, then)
	case 1:
		return c.wait(rt, points[0], then)
	}
	return c.wait(rt, points, then)
}

// withRoom calls alloc, and where it finds no room, once more behind the pending work that uses freed memory. Where that
// work waits for the host, it is waited for a while only: wait, which alloc passes on, returns false then.
func (c *caller) withRoom(rt *hal.Runtime, alloc func(wait func(driver.Point) bool) error) error {
	const slice = 100_000_000
	var pending driver.Point
	err := alloc(func(p driver.Point) bool {
		for range 20 {
			if p.Wait(slice) {
				return true
			}
			if !rt.AwaitsHost() {
				pending = p
				break
			}
		}
		return false
	})
	if err == nil || pending == nil {
		return err
	}
	return c.wait(rt, pending, func() error { return alloc(nil) })
}

//export hsCudaCall
func hsCudaCall(number C.uint32_t, which C.int32_t, values *C.uint64_t) C.int {
	f := exports.functions[which]
	c := callerOf(uint32(number))
	c.perThread = f.perThread
	if !initialized.Load() && !f.early {
		return notInitialized
	}
	return C.int(c.returnCode(f.name, f.call(c, (*args)(unsafe.Pointer(values)))))
}

//export hsCudaGoOn
func hsCudaGoOn(number C.uint32_t) C.int {
	c := callerOf(uint32(number))
	w := c.waiting
	c.waiting = nil
	err := process.Load().Wait(uint32(number), w.rt, w.p)
	if err == nil {
		err = w.then()
	}
	return C.int(c.returnCode(w.function, err))
}

// returnCode returns the code of a call's error, and reports it where nothing else does.
func (c *caller) returnCode(function string, err error) int {
	switch {
	case err == nil:
		return success
	case err == errWaits:
		c.waiting.function = function
		return C.HS_CUDA_WAITS
	}
	code := codeOf(err)
	r, refused := errors.AsType[*refusal](err)
	if !isReported(code, refused && r.quiet) {
		return code
	}
	text := err.Error()
	if e, ok := errors.AsType[*hal.Error](err); ok {
		text = e.Text
	}
	text = errorName(code) + ": " + text
	if refused {
		messages.write(function+": "+text, function+": "+text)
	} else {
		messages.write(text, function+": "+text) // a device that is lost fails all later calls, too
	}
	return code
}

// allMessages reports whether the program's author wants to be told of every error.
func allMessages() bool { return os.Getenv("HALSTREAM_CUDA_MESSAGES") == "all" }

// isReported reports whether the text of an error with a code is written for the program's author: what has no other way to
// be known, and is no code that programs ask for.
func isReported(code int, quiet bool) bool {
	if allMessages() {
		return code != notReady
	}
	if quiet || os.Getenv("HALSTREAM_CUDA_MESSAGES") == "0" {
		return false
	}
	switch code {
	case noBinary, invalidPTX, notSupported, illegalAddress, misaligned, assertFailed, launchFailed, launchTimeout:
		return true
	}
	return false
}

// messageLog writes messages, each of them once.
type messageLog struct {
	to      io.Writer
	mu      sync.Mutex
	written map[string]bool
}

// messages are what calls say to the program's author.
var messages = messageLog{to: os.Stderr}

// mostMessages is how many are written: their texts can have addresses, so that there is no end of different ones.
const mostMessages = 1000

// write writes a message, unless one with the key was written.
func (l *messageLog) write(key, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.written[key]:
		return
	case len(l.written) < mostMessages:
		if l.written == nil {
			l.written = map[string]bool{}
		}
		l.written[key] = true
	case !allMessages():
		return
	}
	fmt.Fprintf(l.to, "halstream: %s\n", text)
	if len(l.written) == mostMessages && !allMessages() {
		fmt.Fprintf(l.to, "halstream: more messages than %d are not written, unless HALSTREAM_CUDA_MESSAGES=all\n", mostMessages)
	}
}

// initialized is set by cuInit.
var initialized atomic.Bool

// inUse returns the runtime.
func inUse() (*hal.Runtime, error) { return process.Load().Runtime() }
