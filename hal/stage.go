package hal

/*
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t hs_stage(uint64_t src, uint64_t size) {
	void *copy = malloc(size);
	if (copy == NULL) abort();
	memcpy(copy, (const void *)(uintptr_t)src, size);
	return (uint64_t)(uintptr_t)copy;
}

// Returns 0 if every page of a range is mapped.
static int hs_mapped(uint64_t addr, uint64_t size) {
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = addr & ~(page - 1);
	return msync((void *)(uintptr_t)start, (size_t)(addr + size - start), MS_ASYNC) == 0 ? 0 : errno;
}
*/
import "C"

import "halstream/hal/driver"

// stage copies pageable memory into C memory, which the operation frees.
func stage(src, size uint64) uint64 { return uint64(C.hs_stage(C.uint64_t(src), C.uint64_t(size))) }

// mapped refuses addresses at which the process has no memory: using them
// would end it.
func mapped(op, role string, addr, size uint64) error {
	if addr == 0 || addr+size < addr || C.hs_mapped(C.uint64_t(addr), C.uint64_t(size)) != 0 {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %d bytes at %#x, is not memory of this process", role, size, addr)
	}
	return nil
}
