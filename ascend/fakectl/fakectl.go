// Package fakectl controls the look-alike AscendCL library (ascend/fakeacl) from tests: it
// scripts its faults and reads its counts.
package fakectl

/*
#include <dlfcn.h>
#include <stdlib.h>

typedef int (*control_fn)(const char *);
typedef unsigned long long (*count_fn)(const char *);
typedef void *(*host_fn)(unsigned long long);

static int call_control(void *f, const char *command) { return ((control_fn)f)(command); }
static unsigned long long call_count(void *f, const char *name) { return ((count_fn)f)(name); }
static void *call_host(void *f, unsigned long long address) { return ((host_fn)f)(address); }
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"
)

// Fake is the loaded look-alike driver.
type Fake struct {
	Path                 string
	control, count, host unsafe.Pointer
}

// Path returns where `make build` puts the look-alike library.
func Path() string {
	_, here, _, _ := runtime.Caller(0)
	if path := os.Getenv("HALSTREAM_ASCEND_LIBRARY"); path != "" {
		return path
	}
	return filepath.Join(filepath.Dir(here), "..", "..", "build", "fakeacl", "libfakeacl.so")
}

// Open loads the look-alike library at path; the process keeps one copy of it.
func Open(path string) (*Fake, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if library == nil {
		return nil, fmt.Errorf("the look-alike library is not there (%s); run make build", C.GoString(C.dlerror()))
	}
	f := &Fake{Path: path}
	for _, s := range []struct {
		name string
		at   *unsafe.Pointer
	}{{"fakeacl_control", &f.control}, {"fakeacl_count", &f.count}, {"fakeacl_host", &f.host}} {
		symbol := C.CString(s.name)
		*s.at = C.dlsym(library, symbol)
		C.free(unsafe.Pointer(symbol))
		if *s.at == nil {
			return nil, fmt.Errorf("%s is not the look-alike library: it has no %s", path, s.name)
		}
	}
	return f, nil
}

// Control gives it a command; see ascend/fakeacl/core.c.
func (f *Fake) Control(format string, args ...any) error {
	command := fmt.Sprintf(format, args...)
	text := C.CString(command)
	defer C.free(unsafe.Pointer(text))
	if C.call_control(f.control, text) != 0 {
		return fmt.Errorf("the look-alike library does not know %q", command)
	}
	return nil
}

// Count returns how often a function was called, or how many objects there are.
func (f *Fake) Count(name string) uint64 {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return uint64(C.call_count(f.count, text))
}

// Read returns a copy of size bytes of a device's memory; nil if there is none at the address.
func (f *Fake) Read(address, size uint64) []byte {
	at := C.call_host(f.host, C.ulonglong(address))
	if at == nil {
		return nil
	}
	return C.GoBytes(at, C.int(size))
}
