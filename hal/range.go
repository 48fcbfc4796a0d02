package hal

import (
	"math"
	"math/bits"

	"halstream/hal/driver"
	"halstream/hal/pages"
)

// extent is a range that an operation works on, and what it is to it.
type extent struct {
	role       string
	addr, size uint64
}

// maxExtents is how many ranges one operation has at most.
const maxExtents = 2

// acquire finds the blocks that ranges lie in, nil for pageable memory, and
// begins their use on s by what. An address that the runtime does not know may
// be memory of another library of the process: the backend's library is asked,
// with no lock held, and such memory counts as a block for this operation only.
func (s *Stream) acquire(op, what string, ranges []extent, blocks []*Block) error {
	rt := s.dev.rt
	m := &rt.memory
	var foreign [maxExtents]*Block
	for asked := rt.vendor == nil; ; asked = true {
		m.mu.Lock()
		missing := false
		var err error
		for i, r := range ranges {
			if blocks[i] = m.blocks.Find(r.addr); blocks[i] == nil {
				blocks[i] = foreign[i]
				missing = missing || foreign[i] == nil
			}
		}
		if missing && !asked {
			m.mu.Unlock()
			for i, r := range ranges {
				if blocks[i] == nil {
					foreign[i] = rt.foreignBlockAt(r.addr)
				}
			}
			continue
		}
		for i, r := range ranges {
			if err = rt.checkRange(op, r, blocks[i]); err != nil {
				break
			}
		}
		if err == nil {
			for _, b := range blocks[:len(ranges)] {
				if b != nil && !b.foreign {
					b.beginUse(s, what)
				}
			}
		}
		m.mu.Unlock()
		return err
	}
}

// checkRange checks that a range lies in its block, or if that is nil outside
// everything the runtime knows: in pageable memory.
func (rt *Runtime) checkRange(op string, r extent, b *Block) error {
	if b != nil {
		if left := b.Start + b.Size - r.addr; r.size > left {
			return driver.Errorf(driver.InvalidValue, op,
				"the %s, %d bytes at %#x, ends %d bytes behind its block of %d bytes at %#x",
				r.role, r.size, r.addr, r.size-left, b.Size, b.Start)
		}
		if b.foreign { // a library may know more around registered memory than what was registered
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
			"the %s, %d bytes at %#x, runs into memory of a device", r.role, r.size, r.addr)
	}
	return nil
}

// checkNoOverlap refuses a range outside every block that runs into one.
func (rt *Runtime) checkNoOverlap(op string, r extent) error {
	if other := rt.memory.blocks.Overlapping(r.addr, r.size); other != nil {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s runs from %#x into a block at %#x", r.role, r.addr, other.Start)
	}
	return nil
}

// foreignBlockAt returns the memory of another library that holds an address, nil if
// the backend's library knows none. No lock is held.
func (rt *Runtime) foreignBlockAt(addr uint64) *Block {
	where, start, size, ordinal, known := rt.vendor.Probe(addr)
	if !known || where == driver.Pageable || rt.isFreed(addr) {
		return nil
	}
	if size == 0 { // it cannot tell where the allocation ends
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

// isFreed reports whether an address lies in memory that the program has given
// back and that the runtime still holds: the library knows it, nobody may use it.
func (rt *Runtime) isFreed(addr uint64) bool {
	m := &rt.memory
	m.mu.Lock()
	deferred := m.deferred.space.Find(addr)
	m.mu.Unlock()
	if deferred != nil {
		return true
	}
	for _, d := range rt.devices {
		if d.pool.holds(addr) {
			return true
		}
	}
	return false
}

// span is how many bytes from the first to the last byte of the rows; false if
// they do not fit behind addr in any memory.
func span(addr, pitch, width, height uint64) (uint64, bool) {
	high, low := bits.Mul64(pitch, height-1)
	n, carry := bits.Add64(low, width, 0)
	_, past := bits.Add64(addr, n, 0)
	return n, high == 0 && carry == 0 && past == 0
}

// maxRows bounds how many rows of a copy listeners see one by one; of more, they
// see one range that includes the gaps.
const maxRows = 4096

// rows returns the ranges of the rows, one range where nothing lies between them.
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

// checkAccess rejects a range of pageable memory of which a page is not mapped, or
// cannot be read or, with write, written: using it would end the process.
func checkAccess(op, role string, addr, size uint64, write bool) error {
	if write && pages.Writable(addr, size) || !write && pages.Readable(addr, size) {
		return nil
	}
	return accessError(op, role, addr, size, write)
}

func accessError(op, role string, addr, size uint64, write bool) *Error {
	access := "readable"
	if write {
		access = "writable"
	}
	return driver.Errorf(driver.InvalidValue, op,
		"the %s, %d bytes at %#x, is not %s memory of this process", role, size, addr, access)
}

// CheckMemory rejects a range of addresses of which a page is not mapped or
// cannot be read.
//
// # Errors
//   - [ErrInvalidValue]: a part of the range is not mapped, or cannot be read.
//
// Contract: M3.
func CheckMemory(op string, addr, size uint64) error {
	return checkAccess(op, "memory", addr, size, false)
}

// CanUse reports whether a range lies in one block that the runtime knows, of the
// stream's device or pinned.
//
// Contract: D4, M11.
func (s *Stream) CanUse(r Range) bool {
	kind, start, size, ordinal := s.dev.rt.Lookup(r.Start)
	before := r.Start - start
	return kind != Pageable && r.Size <= size-before && (ordinal < 0 || ordinal == s.dev.ordinal)
}
