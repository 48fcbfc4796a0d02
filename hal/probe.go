package hal

import (
	"math"

	"halstream/hal/driver"
)

// extent is a range that an operation works on, and what it is to it.
type extent struct {
	role       string
	addr, size uint64
}

// extentsMost is how many ranges one operation has at most.
const extentsMost = 2

// reserve finds the blocks that ranges lie in, nil for pageable memory, and
// begins their use on s by what. An address that the runtime does not know may
// be memory of another library of the process: the backend's library is asked,
// with no lock held, and such memory counts as a block for this operation only.
func (s *Stream) reserve(op, what string, ranges []extent, blocks []*Block) error {
	rt := s.dev.rt
	m := &rt.memory
	var foreign [extentsMost]*Block
	for asked := rt.vendor == nil; ; asked = true {
		m.mu.Lock()
		missing := false
		var err error
		for i, r := range ranges {
			if blocks[i] = m.space.find(r.addr); blocks[i] == nil {
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
			if err = rt.within(op, r, blocks[i]); err != nil {
				break
			}
		}
		if err == nil {
			for _, b := range blocks[:len(ranges)] {
				if b != nil && !b.foreign {
					b.begin(s, what)
				}
			}
		}
		m.mu.Unlock()
		return err
	}
}

// within checks that a range lies in its block, or if that is nil outside
// everything the runtime knows: in pageable memory.
func (rt *Runtime) within(op string, r extent, b *Block) error {
	if b != nil {
		if left := b.Start + b.Size - r.addr; r.size > left {
			return driver.Errorf(driver.InvalidValue, op,
				"the %s, %d bytes at %#x, ends %d bytes behind its block of %d bytes at %#x",
				r.role, r.size, r.addr, r.size-left, b.Size, b.Start)
		}
		if b.foreign { // a library may know more around registered memory than what was registered
			return rt.apart(op, r)
		}
		return nil
	}
	if rt.ours(r.addr) {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %#x, lies in memory that was freed or never allocated", r.role, r.addr)
	}
	if err := rt.apart(op, r); err != nil {
		return err
	}
	if rt.ours(r.addr + r.size - 1) {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %d bytes at %#x, runs into memory of a device", r.role, r.size, r.addr)
	}
	return nil
}

// apart refuses a range outside every block that runs into one.
func (rt *Runtime) apart(op string, r extent) error {
	if other := rt.memory.space.overlaps(r.addr, r.size); other != nil {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s runs from %#x into a block at %#x", r.role, r.addr, other.Start)
	}
	return nil
}

// foreignBlockAt returns the memory of another library that holds an address, nil if
// the backend's library knows none. No lock is held.
func (rt *Runtime) foreignBlockAt(addr uint64) *Block {
	where, start, size, ordinal, known := rt.vendor.Probe(addr)
	if !known || where == driver.Pageable || rt.gone(addr) {
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

// gone reports whether an address lies in memory that the program has given
// back and that the runtime still holds: the library knows it, nobody may use it.
func (rt *Runtime) gone(addr uint64) bool {
	m := &rt.memory
	m.mu.Lock()
	deferred := m.deferred.space.find(addr)
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
