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
	"sync"
	"syscall"
	"unsafe"

	"halstream/hal/bestfit"
	"halstream/hal/driver"
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

// memory is one kind of memory: what was allocated while accesses were watched by
// their pages lies in a region of its own.
type memory struct{ plain, watched *region }

func newMemory(what string, limit uint64) memory {
	m := memory{newRegion(what, limit), newRegion(what, limit)}
	m.watched.watched = true
	return m
}

// of returns the region that an address lies in.
func (m memory) of(addr uint64) *region {
	if m.watched.owns(addr) {
		return m.watched
	}
	return m.plain
}

func (m memory) alloc(size uint64) (uint64, error) {
	if touch.Active() {
		return m.watched.alloc(size)
	}
	return m.plain.alloc(size)
}

// scribbleMost bounds how much of a block is overwritten.
const scribbleMost = 64 << 20

// provide allocates a block. Under a deterministic schedule it is overwritten: what an
// earlier run left there would hide that this one reads too early.
func (m memory) provide(e *engine, size uint64) (uint64, error) {
	addr, err := m.alloc(size)
	if err == nil && !e.parallel.Load() {
		C.hs_scribble(C.uint64_t(touch.Alias(addr)), C.uint64_t(min(size, scribbleMost)))
	}
	return addr, err
}

func (m memory) release(addr uint64) { m.of(addr).release(addr) }

func (m memory) owns(addr uint64) bool { return m.of(addr).owns(addr) }

func (m memory) info() (free, total uint64) {
	free, total = m.plain.info()
	left, _ := m.watched.info()
	if used := total - left; used < free {
		return free - used, total
	}
	return 0, total
}

func (m memory) unmap() {
	m.plain.unmap()
	m.watched.unmap()
}

// align is the alignment of device memory, and the unit of its sizes.
const align = 256

// backAt is the size from which a freed range is given back to the system.
const backAt = 1 << 20

// hugeAt is the size from which the system is asked for large pages.
const hugeAt = 4 << 20

// region is a range of addresses of the process, off Go's heap, that blocks
// are cut from. Nothing else of the process ever lies in it, so an address
// tells whose memory it is, also after the block was freed.
type region struct {
	mu    sync.Mutex
	what  string
	limit uint64
	bytes []byte
	base  uint64
	free  bestfit.Bin               // never two chunks that touch
	used  map[uint64]*bestfit.Chunk // by address
	frees uint64                    // how many there were
	inUse uint64
	// unmapped says that the region has ended; releasing counts the blocks whose
	// pages are being given back without the lock.
	unmapped  bool
	releasing sync.WaitGroup
	// watched says that accesses can be watched: each block has pages of its own, in area.
	watched bool
	area    *touch.Area
	sharing sharing
}

func newRegion(what string, limit uint64) *region {
	return &region{what: what, limit: limit, used: map[uint64]*bestfit.Chunk{}}
}

// reserve maps the region at its first use: only what is touched takes memory.
func (r *region) reserve() error {
	if r.unmapped {
		return errClosed("allocate")
	}
	if r.bytes != nil || r.area != nil {
		return nil
	}
	if r.watched {
		if err := r.reserveWatched(); err != nil {
			return err
		}
		r.freed(bestfit.NewChunk(r.base, r.limit&^(touch.Page-1)))
		return nil
	}
	b, err := syscall.Mmap(-1, 0, int(r.limit), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return driver.Errorf(driver.OutOfMemory, "allocate",
			"the system gives no %d bytes of addresses for %s (%v); lower HALSTREAM_HOST_MEMORY", r.limit, r.what, err)
	}
	r.bytes = b
	r.base = uint64(uintptr(unsafe.Pointer(&b[0])))
	r.freed(bestfit.NewChunk(r.base, r.limit))
	return nil
}

// reserveWatched is reserve for a region whose accesses can be watched.
func (r *region) reserveWatched() error {
	a, err := touch.NewArea(r.limit)
	if err != nil {
		return driver.Errorf(driver.OutOfMemory, "allocate",
			"the system gives no %d bytes of addresses for %s twice; lower HALSTREAM_HOST_MEMORY", r.limit, r.what)
	}
	r.area, r.base = a, a.Base
	return nil
}

func (r *region) alloc(size uint64) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.reserve(); err != nil {
		return 0, err
	}
	need := (size + align - 1) &^ (align - 1)
	if r.watched {
		need = touch.RoundUp(size)
	}
	// The smallest range that fits keeps the large ones whole.
	c := r.free.Fit(need)
	if c == nil || need < size {
		return 0, driver.Errorf(driver.OutOfMemory, "allocate",
			"%d bytes of %s asked for, %d of %d free%s; free some, or raise HALSTREAM_HOST_MEMORY",
			size, r.what, r.limit-r.inUse, r.limit, r.split(need))
	}
	r.free.Remove(c)
	if rest := c.Split(need); rest != nil {
		r.free.Add(rest)
	}
	addr := c.Start
	if r.watched {
		if err := r.area.Provide(addr, need); err != nil {
			r.freed(c)
			return 0, err
		}
	}
	r.used[addr] = c
	r.inUse += need
	if need >= hugeAt && !r.watched {
		// Large pages: walking through small ones costs a copy a third of its speed.
		largePages(r.bytes[(addr-r.base)&^0xfff:addr-r.base+need], true)
	}
	return addr, nil
}

// split says that there is room, but not in one piece.
func (r *region) split(need uint64) string {
	if need <= r.limit-r.inUse {
		return ", but not in one piece"
	}
	return ""
}

func (r *region) release(addr uint64) {
	r.mu.Lock()
	if r.unmapped {
		r.mu.Unlock()
		return
	}
	c := r.used[addr]
	size := c.Size
	delete(r.used, addr)
	r.releasing.Add(1)
	defer r.releasing.Done()
	r.mu.Unlock()
	var from, to uint64 // whole pages
	if r.watched {
		r.area.Return(addr, size)
	} else if size >= backAt {
		// Without the lock: giving many pages back takes milliseconds, and the
		// range is nobody's until it is among the free ones.
		page := uint64(syscall.Getpagesize())
		from, to = (addr+page-1)&^(page-1), (addr+size)&^(page-1)
		giveBack(r.bytes[from-r.base : to-r.base])
		if size >= hugeAt {
			// Small blocks may come to lie here.
			largePages(r.bytes[from-r.base:to-r.base], false)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sharing.returned(from-r.base, to-from)
	r.inUse -= size
	r.freed(c)
}

// freed makes a chunk free, as a part of its neighbours that are.
func (r *region) freed(c *bestfit.Chunk) {
	r.frees++
	c.Order = r.frees // from 1: the bin finds chunks by it
	r.free.Add(c)
}

func (r *region) owns(addr uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (r.bytes != nil || r.area != nil) && addr >= r.base && addr-r.base < r.limit
}

func (r *region) info() (free, total uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit - r.inUse, r.limit
}

// unmap ends the region. Nobody uses its memory any more.
func (r *region) unmap() {
	r.mu.Lock()
	r.unmapped = true
	r.mu.Unlock()
	r.releasing.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.area != nil {
		r.area.Close()
		r.area, r.free = nil, bestfit.Bin{}
	}
	if r.bytes != nil {
		r.sharing.close()
		_ = syscall.Munmap(r.bytes)
		r.bytes, r.free = nil, bestfit.Bin{}
	}
}
