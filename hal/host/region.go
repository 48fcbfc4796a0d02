package host

import (
	"sync"
	"syscall"
	"unsafe"

	"halstream/hal/bestfit"
	"halstream/hal/driver"
	"halstream/hal/touch"
)

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
	// shared says that accesses can be watched: each block has pages of its own, in area.
	shared bool
	area   *touch.Area
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
	if r.shared {
		if err := r.reserveShared(); err != nil {
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

func (r *region) alloc(size uint64) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.reserve(); err != nil {
		return 0, err
	}
	need := (size + align - 1) &^ (align - 1)
	if r.shared {
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
	if r.shared {
		if err := r.area.Provide(addr, need); err != nil {
			r.freed(c)
			return 0, err
		}
	}
	r.used[addr] = c
	r.inUse += need
	if need >= hugeAt && !r.shared {
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
	if r.shared {
		r.area.Return(addr, size)
	} else if size >= backAt {
		// Without the lock: giving many pages back takes milliseconds, and the
		// range is nobody's until it is among the free ones.
		page := uint64(syscall.Getpagesize())
		from := (addr + page - 1) &^ (page - 1)
		to := (addr + size) &^ (page - 1)
		giveBack(r.bytes[from-r.base : to-r.base])
		if size >= hugeAt {
			// Small blocks may come to lie here.
			largePages(r.bytes[from-r.base:to-r.base], false)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
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
		_ = syscall.Munmap(r.bytes)
		r.bytes, r.free = nil, bestfit.Bin{}
	}
}
