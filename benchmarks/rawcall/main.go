// Command rawcall times calls of the CUDA driver from Go, with nothing around them.
//
// It reads lines "NAME COUNT" and answers each with the nanoseconds of one call,
// so that another program can take turns with it. The library is the first
// argument. The context is current on the thread that calls, all the time.
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef int (*call1)(uintptr_t);
typedef int (*call2)(uintptr_t, uintptr_t);
typedef int (*call3)(uintptr_t, uintptr_t, unsigned int);
typedef int (*make)(uintptr_t *, unsigned int);

static struct {
	void *library;
	call1 query;
	call2 record;
	call3 wait;
	uintptr_t one, two, event;
} raw;

static void *find(const char *name) { return dlsym(raw.library, name); }

// open_driver returns 0, or -1 without a library, or a function's code.
static int open_driver(const char *path) {
	uintptr_t context = 0;
	int code;
	raw.library = dlopen(path, RTLD_NOW);
	if (!raw.library || !find("cuInit") || !find("cuDevicePrimaryCtxRetain"))
		return -1;
	if ((code = ((int (*)(unsigned int))find("cuInit"))(0)))
		return code;
	if ((code = ((make)find("cuDevicePrimaryCtxRetain"))(&context, 0)))
		return code;
	if ((code = ((call1)find("cuCtxSetCurrent"))(context)))
		return code;
	make stream = (make)find("cuStreamCreate");
	if ((code = stream(&raw.one, 1)) || (code = stream(&raw.two, 1)))
		return code;
	if ((code = ((make)find("cuEventCreate"))(&raw.event, 2)))
		return code;
	raw.query = (call1)find("cuEventQuery");
	raw.record = (call2)find("cuEventRecord");
	raw.wait = (call3)find("cuStreamWaitEvent");
	return raw.record(raw.event, raw.one);
}

static int call_record(void) { return raw.record(raw.event, raw.one); }
static int call_query(void) { return raw.query(raw.event); }
static int call_wait(void) { return raw.wait(raw.two, raw.event, 0); }
static int settle(void) {
	int code;
	if ((code = ((call1)find("cuStreamSynchronize"))(raw.one)))
		return code;
	return ((call1)find("cuStreamSynchronize"))(raw.two);
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"
)

var calls = map[string]func() C.int{
	"record": func() C.int { return C.call_record() },
	"query":  func() C.int { return C.call_query() },
	"wait":   func() C.int { return C.call_wait() },
	// Two calls, as a wait for a stream needs.
	"wait_stream": func() C.int { return C.call_record() | C.call_wait() },
}

func main() {
	runtime.LockOSThread()
	path := "libcuda.so.1"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	name := C.CString(path)
	if code := C.open_driver(name); code != 0 {
		fmt.Fprintf(os.Stderr, "rawcall: %s: %d\n", path, code)
		os.Exit(2)
	}
	C.free(unsafe.Pointer(name))
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var what string
		var count int
		_, err := fmt.Sscan(input.Text(), &what, &count)
		call := calls[what]
		if err != nil || call == nil || count < 1 {
			fmt.Fprintf(os.Stderr, "rawcall: %q is not NAME COUNT\n", input.Text())
			os.Exit(2)
		}
		fmt.Println(measure(call, count))
	}
}

// measure returns the nanoseconds of one call. Waiting for the streams is not timed.
func measure(call func() C.int, count int) float64 {
	begin := time.Now()
	for range count {
		if code := call(); code != 0 {
			fmt.Fprintf(os.Stderr, "rawcall: a call gave %d\n", code)
			os.Exit(1)
		}
	}
	took := time.Since(begin)
	C.settle()
	return float64(took.Nanoseconds()) / float64(count)
}
