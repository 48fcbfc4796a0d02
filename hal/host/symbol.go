package host

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

static const char *hs_symbol(uint64_t address) {
	Dl_info found;
	if (!dladdr((void *)(uintptr_t)address, &found) || found.dli_saddr != (void *)(uintptr_t)address) return 0;
	return found.dli_sname;
}
*/
import "C"

// symbol returns the name of the function at an address, "" if no library exports it.
func symbol(address uint64) string {
	if name := C.hs_symbol(C.uint64_t(address)); name != nil {
		return C.GoString(name)
	}
	return ""
}
