package host

import (
	"halstream/hal/driver"
	"halstream/hal/touch"
)

// memory is one kind of memory: what was allocated while accesses were watched by
// their pages lies in a region of its own.
type memory struct{ plain, watched *region }

func newMemory(what string, limit uint64) memory {
	m := memory{newRegion(what, limit), newRegion(what, limit)}
	m.watched.shared = true
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

// reserveShared is reserve for a region whose accesses can be watched.
func (r *region) reserveShared() error {
	a, err := touch.NewArea(r.limit)
	if err != nil {
		return driver.Errorf(driver.OutOfMemory, "allocate",
			"the system gives no %d bytes of addresses for %s twice; lower HALSTREAM_HOST_MEMORY", r.limit, r.what)
	}
	r.area, r.base = a, a.Base
	return nil
}
