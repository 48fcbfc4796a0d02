package host

/*
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static uint64_t hs_total_memory(void) {
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

// No number in any floating-point format, and -1 as an integer.
static void hs_scribble(uint64_t addr, uint64_t size) { memset((void *)(uintptr_t)addr, 0xff, size); }
*/
import "C"

import (
	"os"
	"strconv"

	"halstream/hal/driver"
	"halstream/hal/pages"
	"halstream/hal/touch"
)

// leastMemory is the smallest limit that can be set: a few blocks must fit.
const leastMemory = 64 << 10

// memoryLimit reads HALSTREAM_HOST_MEMORY, bytes.
func memoryLimit() (uint64, error) {
	const variable = "HALSTREAM_HOST_MEMORY"
	text := os.Getenv(variable)
	if text == "" {
		return (uint64(C.hs_total_memory()) / 2) &^ 0xffff, nil
	}
	n, err := strconv.ParseUint(text, 10, 46)
	if err != nil || n < leastMemory {
		return 0, driver.Errorf(driver.InvalidValue, "open host backend",
			"%s is %q; give a number of bytes from %d", variable, text, leastMemory)
	}
	return n &^ 0xffff, nil
}

// Alloc implements driver.Device.
func (d *Device) Alloc(size uint64) (uint64, error) { return d.eng.given(d.memory, size) }

// scribbleMost bounds how much of a block is overwritten.
const scribbleMost = 64 << 20

// given takes memory of a region. Under a deterministic schedule it is
// overwritten: what an earlier run left there would hide that this one reads
// too early.
func (e *engine) given(m memory, size uint64) (uint64, error) {
	addr, err := m.alloc(size)
	if err == nil && !e.parallel.Load() {
		C.hs_scribble(C.uint64_t(touch.Alias(addr)), C.uint64_t(min(size, scribbleMost)))
	}
	return addr, err
}

// Free implements driver.Device.
func (d *Device) Free(addr uint64) { d.memory.release(addr) }

// Info implements driver.Device.
func (d *Device) Info() (free, total uint64, err error) {
	free, total = d.memory.info()
	return free, total, nil
}

// Owns implements driver.Device.
func (d *Device) Owns(addr uint64) bool { return d.memory.owns(addr) }

// AllocHost implements driver.Driver.
func (d *Driver) AllocHost(size uint64) (uint64, error) { return d.eng.given(d.pinned, size) }

// FreeHost implements driver.Driver.
func (d *Driver) FreeHost(addr uint64) { d.pinned.release(addr) }

// OwnsHost implements driver.Driver.
func (d *Driver) OwnsHost(addr uint64) bool { return d.pinned.owns(addr) }

// Register implements driver.Driver: the host device reads and writes all memory
// alike, so it only has to be there.
func (d *Driver) Register(addr, size uint64) error {
	if !pages.Writable(addr, size) {
		return driver.Errorf(driver.InvalidValue, "register memory",
			"%d bytes at %#x are not writable memory of this process", size, addr)
	}
	return nil
}

// Unregister implements driver.Driver.
func (d *Driver) Unregister(uint64) error { return nil }
