package hal

import (
	"math"
	"math/bits"
	"slices"

	"halstream/hal/driver"
	"halstream/hal/pages"
)

// extent is a range that an operation accesses, with its role in the operation:
// "source" or "target".
type extent struct {
	role       string
	addr, size uint64
}

// maxExtents is the greatest number of ranges that one operation has.
const maxExtents = 2

// acquire stores in blocks the block that contains each range, nil for pageable
// memory, and marks those blocks as used on s by the operation that what names.
//
// An address in no block may be memory that another library of the process
// allocated: the backend's library is queried, with no lock held, and such memory
// counts as a block for this operation only.
func (s *Stream) acquire(op, what string, ranges []extent, blocks []*Block) error {
	rt := s.dev.rt
	m := &rt.memory
	var foreign [maxExtents]*Block
	for queried := rt.vendor == nil; ; queried = true {
		m.mu.Lock()
		missing := false
		var err error
		for i, r := range ranges {
			if blocks[i] = m.blocks.Find(r.addr); blocks[i] == nil {
				blocks[i] = foreign[i]
				missing = missing || foreign[i] == nil
			}
		}
		if missing && !queried {
			m.mu.Unlock()
			for i, r := range ranges {
				if blocks[i] == nil {
					foreign[i] = rt.foreignBlockAt(r.addr)
				}
			}
			continue
		}
		for i, r := range ranges {
			if err = rt.checkRange(op, r, blocks[i], s.capture.Load() != nil); err != nil {
				break
			}
		}
		if err == nil {
			for _, b := range blocks[:len(ranges)] {
				if b != nil && !b.foreign && s.capture.Load() == nil {
					b.beginUse(s, what)
				}
			}
		}
		m.mu.Unlock()
		return err
	}
}

// checkRange rejects a range that leaves its block, or, with b nil, a range that
// is not pageable memory because it touches memory of the runtime. captured says that
// the operation becomes a node, which may come after one that allocates the memory.
func (rt *Runtime) checkRange(op string, r extent, b *Block, captured bool) error {
	if b != nil {
		if b.ofGraph != nil {
			if err := b.checkValid(op, r.role, captured); err != nil {
				return err
			}
		}
		if left := b.Start + b.Size - r.addr; r.size > left {
			return driver.Errorf(driver.InvalidValue, op,
				"the %s, %d bytes at %#x, ends %d bytes behind its block of %d bytes at %#x",
				r.role, r.size, r.addr, r.size-left, b.Size, b.Start)
		}
		// A library may report more memory around a registered range than was registered.
		if b.foreign {
			return rt.checkNoOverlap(op, r)
		}
		return nil
	}
	if rt.ownsAddress(r.addr) {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %#x, lies in memory that was freed or never allocated", r.role, r.addr)
	}
	if err := rt.checkNoOverlap(op, r); err != nil {
		return err
	}
	if rt.ownsAddress(r.addr + r.size - 1) {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %d bytes at %#x, extends into memory of a device", r.role, r.size, r.addr)
	}
	return nil
}

// checkNoOverlap rejects a range that begins outside every block and ends in one.
func (rt *Runtime) checkNoOverlap(op string, r extent) error {
	if other := rt.memory.blocks.Overlapping(r.addr, r.size); other != nil {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s begins at %#x, outside of any block, and extends into the block at %#x", r.role, r.addr, other.Start)
	}
	return nil
}

// foreignBlockAt returns the memory of another library that contains an address, nil
// if the backend's library reports none. The caller holds no lock.
func (rt *Runtime) foreignBlockAt(addr uint64) *Block {
	where, start, size, ordinal, found := rt.vendor.Probe(addr)
	if !found || where == driver.Pageable || rt.isFreed(addr) {
		return nil
	}
	if size == 0 { // the library does not report the end of the allocation
		start, size = addr, math.MaxUint64-addr
	}
	b := &Block{Start: start, Size: size, Kind: Pinned, foreign: true}
	if where == driver.OnDevice {
		if ordinal < 0 || ordinal >= len(rt.devices) {
			return nil
		}
		b.Kind, b.dev = DeviceMemory, rt.devices[ordinal]
	}
	return b
}

// isFreed reports whether an address lies in memory that the program freed and the
// runtime has not returned to the library yet: the library still reports it as
// allocated, but no operation may use it.
func (rt *Runtime) isFreed(addr uint64) bool {
	m := &rt.memory
	m.mu.Lock()
	deferred := m.deferred.space.Find(addr)
	m.mu.Unlock()
	return deferred != nil || rt.poolsHold(addr)
}

// poolsHold reports whether an address lies in memory of a pool. The memory's lock may be held.
func (rt *Runtime) poolsHold(addr uint64) bool {
	return slices.ContainsFunc(rt.devices, func(d *Device) bool { return d.pool.holds(addr) })
}

// span returns the number of bytes from the first byte of the first row to the last
// byte of the last one, and whether addresses from addr on can have that many.
func span(addr, pitch, width, height uint64) (uint64, bool) {
	high, low := bits.Mul64(pitch, height-1)
	n, carry := bits.Add64(low, width, 0)
	_, overflow := bits.Add64(addr, n, 0)
	return n, high == 0 && carry == 0 && overflow == 0
}

// maxRows is the greatest number of rows that listeners see as ranges of their own;
// of a copy with more rows they see one range that includes the gaps.
const maxRows = 4096

// rows returns the ranges of the rows, one range if there are no gaps between them.
func rows(addr, pitch, width, height uint64) []Range {
	if pitch == width || height == 1 || height > maxRows {
		n, _ := span(addr, pitch, width, height)
		return []Range{{addr, n}}
	}
	ranges := make([]Range, height)
	for i := range ranges {
		ranges[i] = Range{addr + uint64(i)*pitch, width}
	}
	return ranges
}

// checkAccess rejects a range of pageable memory with a page that is not mapped, or
// that cannot be read or, with write, written: an access would end the process.
func checkAccess(op, role string, addr, size uint64, write bool) error {
	if write && pages.Writable(addr, size) || !write && pages.Readable(addr, size) {
		return nil
	}
	return accessError(op, role, addr, size, write)
}

// accessError is the error of memory that this process cannot read or, with write,
// write.
func accessError(op, role string, addr, size uint64, write bool) *Error {
	access := "readable"
	if write {
		access = "writable"
	}
	return driver.Errorf(driver.InvalidValue, op,
		"the %s, %d bytes at %#x, is not %s memory of this process", role, size, addr, access)
}

// CheckMemory rejects a range of addresses with a page that is not mapped or
// cannot be read. op names the call in the error.
//
// # Errors
//   - [ErrInvalidValue]: a part of the range is not mapped, or cannot be read.
//
// Contract: M3.
func CheckMemory(op string, addr, size uint64) error {
	return checkAccess(op, "memory", addr, size, false)
}

// CanUse reports whether a range lies in one block of the runtime that is either
// pinned or on the stream's device.
//
// Contract: D4, M11.
func (s *Stream) CanUse(r Range) bool {
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blocks.Find(r.Start).usableBy(s, r)
}
