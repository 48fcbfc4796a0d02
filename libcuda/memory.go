package libcuda

import (
	"math/bits"
	"sync"

	"halstream/hal"
	"halstream/hal/driver"
)

// maxBytes is more than any memory has.
const maxBytes = 1 << 62

// product returns the product of sizes, and whether memory can have that many bytes.
func product(sizes ...uint64) (uint64, bool) {
	all := uint64(1)
	for _, size := range sizes {
		high, low := bits.Mul64(all, size)
		if high != 0 {
			return 0, false
		}
		all = low
	}
	return all, all <= maxBytes
}

// sizeOf returns the size of an allocation as package hal takes it.
func sizeOf(bytes uint64) (int64, error) {
	if bytes == 0 {
		return 0, refuse(invalidValue, "the size is 0; ask for one byte or more")
	}
	return int64(min(bytes, maxBytes)), nil
}

// allocation is what the library knows of memory beside package hal.
type allocation struct {
	x       *context
	number  uint64
	flags   uint32
	managed bool
	host    bool // host memory of the driver
	given   bool // host memory of the program, which is registered
	ofGraph bool // a node of a graph allocates it
	opened  bool // memory of another process
	waits   bool // copies and fills that block do so until they have ended; guarded by the lock of allocations
	pool    *pool
	size    uint64
}

// allocations are those that are not freed, by their addresses.
var allocations struct {
	sync.Mutex
	by   map[uint64]*allocation
	last uint64
}

func noteAllocation(address uint64, one allocation) {
	allocations.Lock()
	defer allocations.Unlock()
	if allocations.by == nil {
		allocations.by = map[uint64]*allocation{}
	}
	allocations.last++
	one.number = allocations.last
	allocations.by[address] = &one
}

func allocationAt(address uint64) *allocation {
	allocations.Lock()
	defer allocations.Unlock()
	return allocations.by[address]
}

// setWaits says whether copies and fills of an allocation that block do so until they have ended.
func setWaits(address uint64, waits bool) bool {
	allocations.Lock()
	defer allocations.Unlock()
	one := allocations.by[address]
	if one != nil {
		one.waits = waits
	}
	return one != nil
}

// waits reports whether a copy or a fill of memory at these addresses that blocks does so until it has ended, as the program
// has asked for: others, such as copies within a device, may return before.
func (x *context) waits(addresses ...uint64) bool {
	if x.readFlags()&contextSyncMemops != 0 {
		return true
	}
	for _, address := range addresses {
		kind, start, _, err := lookup(address)
		if err != nil || kind == hal.Pageable {
			continue
		}
		allocations.Lock()
		one := allocations.by[start]
		waits := one != nil && one.waits
		allocations.Unlock()
		if waits {
			return true
		}
	}
	return false
}

// endAllocation ends an allocation that fits, if there is one at an address. What is known of it goes before end gives its
// memory back, as another thread can have the address from then on, and comes back after an error.
func endAllocation(address uint64, fits func(one *allocation) bool, end func(one *allocation) error) (found bool, err error) {
	allocations.Lock()
	one := allocations.by[address]
	found = one != nil && fits(one)
	if found {
		delete(allocations.by, address)
	}
	allocations.Unlock()
	if !found {
		return false, nil
	}
	if err := end(one); err != nil {
		allocations.Lock()
		defer allocations.Unlock()
		allocations.by[address] = one
		return true, err
	}
	if one.pool != nil {
		one.pool.freed(one.size)
	}
	return true, nil
}

// Allocations as endAllocation asks for them.
func (one *allocation) onDevice() bool         { return !one.host && !one.given && !one.opened }
func (one *allocation) onHost() bool           { return one.host }
func (one *allocation) registered() bool       { return one.given }
func (one *allocation) ofAnotherProcess() bool { return one.opened }

// isSharable reports whether a handle can give the allocation to other processes: it is one of cuMemAlloc.
func (one *allocation) isSharable() bool { return one.onDevice() && one.pool == nil && !one.managed }

// freeAt frees the memory at an address, whose allocation fits; otherwise is the error without one.
func (c *caller) freeAt(address uint64, fits func(one *allocation) bool, otherwise error) error {
	found, err := endAllocation(address, fits, func(one *allocation) error { return one.free(c, address) })
	if !found {
		err = otherwise
	}
	return err
}

func noDeviceMemory(address uint64) error {
	return refuse(invalidValue, "%#x is not the start of device memory; it was freed, or is none", address)
}

// free gives memory back, whose kind the allocation says.
func (one *allocation) free(c *caller, address uint64) error {
	rt, err := inUse()
	if err != nil {
		return err
	}
	switch {
	case one.given:
		return rt.UnregisterHost(c.t, address)
	case one.host:
		return rt.FreeHost(c.t, address, true)
	}
	return rt.Free(c.t, address)
}

// freeAll frees the memory of a context that ends. That of graphs, which do not end with it, stays where no launch has
// allocated it. The error is the first.
func freeAll(c *caller, x *context) (first error) {
	allocations.Lock()
	left := map[uint64]*allocation{}
	for address, one := range allocations.by {
		if one.x == x {
			left[address] = one
		}
	}
	allocations.Unlock()
	for address, one := range left {
		_, err := endAllocation(address, func(now *allocation) bool { return now == one }, func(*allocation) error {
			return one.free(c, address)
		})
		if first == nil && !one.ofGraph {
			first = err
		}
	}
	return first
}

var memoryFunctions = []function{
	{name: "cuMemAlloc_v2", version: 3020, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		return c.alloc(a, a[1], allocation{})
	}},
	{name: "cuMemAllocManaged", version: 6000, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		if a.u32(2) != 1 && a.u32(2) != 2 {
			return refuse(invalidValue, "managed memory is attached to all streams (1) or to the host (2), not %#x", a.u32(2))
		}
		return c.alloc(a, a[1], allocation{managed: true, flags: a.u32(2)})
	}},
	{name: "cuMemAllocPitch_v2", version: 3020, call: func(c *caller, a *args) error {
		const alignment = 512
		if err := a.need(0, 1); err != nil {
			return err
		}
		if size := a.u32(4); size != 4 && size != 8 && size != 16 {
			return refuse(invalidValue, "elements have 4, 8 or 16 bytes, not %d", size)
		}
		pitch := (min(a[2], maxBytes) + alignment - 1) / alignment * alignment
		size, fits := product(pitch, a[3])
		if !fits {
			return refuse(outOfMemory, "%d rows of %d bytes are more than there can be", a[3], a[2])
		}
		put(a, 1, pitch)
		return c.alloc(a, size, allocation{})
	}},
	{name: "cuMemFree_v2", version: 3020, call: func(c *caller, a *args) error {
		if a[0] == 0 {
			return nil
		}
		if _, err := c.context(); err != nil {
			return err
		}
		return c.freeAt(a[0], (*allocation).onDevice, noDeviceMemory(a[0]))
	}},
	{name: "cuMemAllocHost_v2", version: 3020, call: func(c *caller, a *args) error { return c.allocHost(a, 0) }},
	{name: "cuMemHostAlloc", version: 2020, call: func(c *caller, a *args) error { return c.allocHost(a, a.u32(2)) }},
	{name: "cuMemFreeHost", version: 2000, call: func(c *caller, a *args) error {
		return c.freeAt(a[0], (*allocation).onHost, refuse(invalidValue, "%#x is not the start of host memory of the driver", a[0]))
	}},
	{name: "cuMemHostRegister_v2", version: 6050, firstVersion: 4000, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err != nil {
			return err
		}
		const known, ioMemory = 0xf, 4 // portable, mapped, of a peripheral device, and only read
		size, err := sizeOf(a[1])
		switch {
		case err != nil:
		case a[0] == 0:
			err = a.need(0)
		case a.u32(2)&^known != 0:
			err = refuse(invalidValue, "a registration has no flags %#x", a.u32(2))
		case a.u32(2)&ioMemory != 0:
			err = refuse(notSupported, "memory of a peripheral device is not registered")
		}
		if err != nil {
			return err
		}
		rt := x.dev.Runtime()
		if kind, _, _, _ := rt.Lookup(a[0]); kind != hal.Pageable {
			return refuse(alreadyRegistered, "%#x is registered already, or memory of the driver", a[0])
		}
		if err := rt.RegisterHost(c.t, a[0], size); err != nil {
			return err
		}
		noteAllocation(a[0], allocation{x: x, flags: a.u32(2), given: true, size: a[1]})
		return nil
	}},
	{name: "cuMemHostUnregister", version: 4000, call: func(c *caller, a *args) error {
		none := refuse(notRegistered, "%#x is not registered", a[0])
		if one := allocationAt(a[0]); one == nil || !one.given {
			return none
		}
		end := func() error { return c.freeAt(a[0], (*allocation).registered, none) }
		rt, err := inUse()
		if err != nil {
			return err
		}
		p, err := rt.MemoryPoint(c.t, a[0])
		if err != nil {
			return end()
		}
		return c.wait(rt, p, end)
	}},
	{name: "cuMemHostGetDevicePointer_v2", version: 3020, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		if a.u32(2) != 0 {
			return refuse(invalidValue, "the address of host memory on a device has no flags %#x", a.u32(2))
		}
		if _, err := c.context(); err != nil {
			return err
		}
		kind, _, _, err := lookup(a[1])
		if err == nil && kind != hal.Pinned {
			err = refuse(invalidValue, "%#x is no host memory that the device can access", a[1])
		}
		if err == nil {
			put(a, 0, a[1])
		}
		return err
	}},
	{name: "cuMemHostGetFlags", version: 2030, call: func(c *caller, a *args) error {
		one := allocationAt(a[1])
		if one == nil || !one.host {
			return refuse(invalidValue, "%#x is not the start of host memory of the driver", a[1])
		}
		put(a, 0, one.flags)
		return a.need(0)
	}},
	{name: "cuMemGetInfo_v2", version: 3020, call: func(c *caller, a *args) error {
		d, err := c.device()
		if err != nil {
			return err
		}
		free, total, err := d.MemoryInfo()
		put(a, 0, free)
		put(a, 1, total)
		return err
	}},
	{name: "cuMemGetAddressRange_v2", version: 3020, call: func(c *caller, a *args) error {
		if _, err := c.context(); err != nil {
			return err
		}
		kind, start, size, err := lookup(a[2])
		if err == nil && kind == hal.Pageable {
			err = refuse(notFound, "%#x is in no memory of the driver", a[2])
		}
		if err != nil {
			return err
		}
		put(a, 0, start)
		put(a, 1, requested(start, size))
		return nil
	}},
	{name: "cuMemPrefetchAsync", version: 8000, twin: ptsz, call: onStream(3, advised)},
	{name: "cuMemPrefetchAsync_v2", version: 12020, twin: ptsz, call: onStream(4, advised)},
	{name: "cuMemAdvise", version: 8000, call: advise},
	{name: "cuMemAdvise_v2", version: 12020, call: advise},
	{name: "cuMemRangeGetAttribute", version: 8000, call: unsupported("advice about managed memory is not kept: all of it is the host's")},
	{name: "cuMemRangeGetAttributes", version: 8000, call: unsupported("advice about managed memory is not kept: all of it is the host's")},
	{name: "cuPointerGetAttribute", version: 4000, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		p, err := pointerOf(a[2])
		if err != nil {
			return err
		}
		if p.kind == hal.Pageable {
			return refuse(invalidValue, "%#x is in no memory that the driver knows", a[2])
		}
		return p.put(a.int(1), a[0])
	}},
	{name: "cuPointerGetAttributes", version: 7000, call: func(c *caller, a *args) error {
		if err := a.need(1, 2); err != nil {
			return err
		}
		p, err := pointerOf(a[3])
		if err != nil {
			return err
		}
		places := list[uint64](a, 2, uint64(a.u32(0)))
		for i, number := range list[int32](a, 1, uint64(a.u32(0))) {
			if err := p.put(int(number), places[i]); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "cuPointerSetAttribute", version: 6000, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		if a.int(1) != pointerSyncMemops {
			return refuse(invalidValue, "attribute %d of a pointer cannot be set", a.int(1))
		}
		kind, start, _, err := lookup(a[2])
		if err != nil {
			return err
		}
		if kind != hal.DeviceMemory || !setWaits(start, *in[uint32](a, 0) != 0) {
			return refuse(invalidValue, "%#x is in no memory of a device", a[2])
		}
		return nil
	}},
}

// lookup returns the kind and the block of the memory at an address.
func lookup(address uint64) (kind hal.MemoryKind, start, size uint64, err error) {
	rt, err := inUse()
	if err != nil {
		return 0, 0, 0, err
	}
	kind, start, size, _ = rt.Lookup(address)
	return kind, start, size, nil
}

// requested returns the size that the program asked for of a block.
func requested(start, size uint64) uint64 {
	if one := allocationAt(start); one != nil {
		return one.size
	}
	return size
}

// alloc gives the address of bytes that it allocates to the program, which asks for them by a.
func (c *caller) alloc(a *args, bytes uint64, of allocation) error {
	x, err := c.context()
	if err != nil {
		return err
	}
	size, err := sizeOf(bytes)
	if err != nil {
		return err
	}
	return c.withRoom(x.dev.Runtime(), func(wait func(driver.Point) bool) error {
		b, err := x.dev.AllocWait(c.t, size, wait)
		if err != nil {
			return err
		}
		if of.managed {
			x.dev.Runtime().MarkManaged(b.Start)
		}
		of.x, of.size = x, bytes
		noteAllocation(b.Start, of)
		put(a, 0, b.Start)
		return nil
	})
}

func (c *caller) allocHost(a *args, flags uint32) error {
	const known = 7 // portable, mapped and write-combined
	x, err := c.context()
	if err == nil {
		err = a.need(0)
	}
	if err != nil {
		return err
	}
	if flags&^known != 0 {
		return refuse(invalidValue, "host memory has no flags %#x", flags)
	}
	size, err := sizeOf(a[1])
	if err != nil {
		return err
	}
	rt := x.dev.Runtime()
	return c.withRoom(rt, func(wait func(driver.Point) bool) error {
		b, err := rt.AllocHostWait(c.t, size, wait)
		if err == nil {
			noteAllocation(b.Start, allocation{x: x, flags: flags, host: true, size: a[1]})
			put(a, 0, b.Start)
		}
		return err
	})
}

func managedRange(address uint64) error {
	_, start, _, err := lookup(address)
	if err != nil {
		return err
	}
	if one := allocationAt(start); one == nil || !one.managed {
		return refuse(invalidValue, "%#x is no managed memory", address)
	}
	return nil
}

// lastAdvice is the number of the last advice about memory. Source: CUDA driver API, CUmem_advise.
const lastAdvice = 6

// advise takes a hint about managed memory, which changes nothing.
func advise(_ *caller, a *args) error {
	if advice := a.int(2); advice < 1 || advice > lastAdvice {
		return refuse(invalidValue, "there is no advice %d about memory", advice)
	}
	return managedRange(a[0])
}

// advised enqueues a hint about managed memory, which changes nothing: all memory is the host's.
func advised(c *caller, s *stream, a *args) error {
	if err := managedRange(a[0]); err != nil {
		return err
	}
	return s.Nop(c.t)
}

// pointer is what the driver knows of an address. All is zero for memory of the program.
type pointer struct {
	address, start, size uint64
	kind                 hal.MemoryKind
	ordinal              int
	one                  *allocation
}

func pointerOf(address uint64) (*pointer, error) {
	rt, err := inUse()
	if err != nil {
		return nil, err
	}
	p := &pointer{address: address}
	p.kind, p.start, p.size, p.ordinal = rt.Lookup(address)
	if p.kind != hal.Pageable {
		p.one = allocationAt(p.start)
	}
	if p.one == nil {
		p.one = &allocation{size: p.size}
	}
	return p, nil
}

// pointerSyncMemops is CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
const pointerSyncMemops = 6

// Kinds of memory as the driver numbers them.
const (
	hostMemory    = 1
	deviceMemory  = 2
	arrayMemory   = 3
	unifiedMemory = 4
)

// put stores an attribute of a pointer where the program wants it. Source: CUDA driver API, CUpointer_attribute.
func (p *pointer) put(number int, where uint64) error {
	if where == 0 {
		return refuse(invalidValue, "there is no place for attribute %d", number)
	}
	known, onHost := p.kind != hal.Pageable, p.kind == hal.Pinned || p.one.managed
	pointer := func(is bool) uint64 {
		if is {
			return p.address
		}
		return 0
	}
	handle := func(x *context) uint64 {
		if x == nil {
			return 0
		}
		return uint64(x.handle)
	}
	switch number {
	case 1: // CONTEXT
		*pointerAt[uint64](where) = handle(p.one.x)
	case 2: // MEMORY_TYPE
		*pointerAt[uint32](where) = map[hal.MemoryKind]uint32{hal.Pinned: hostMemory, hal.DeviceMemory: deviceMemory}[p.kind]
	case 3: // DEVICE_POINTER
		*pointerAt[uint64](where) = pointer(known)
	case 4: // HOST_POINTER
		*pointerAt[uint64](where) = pointer(onHost || !known)
	case pointerSyncMemops:
		allocations.Lock()
		*pointerAt[uint32](where) = uint32(boolInt(p.one.waits))
		allocations.Unlock()
	case 7: // BUFFER_ID
		*pointerAt[uint64](where) = p.one.number
	case 8: // IS_MANAGED
		*pointerAt[uint32](where) = uint32(boolInt(p.one.managed))
	case 9: // DEVICE_ORDINAL
		ordinal := int32(p.ordinal)
		if !known {
			ordinal = -2
		} else if ordinal < 0 && p.one.x != nil {
			ordinal = int32(p.one.x.dev.Ordinal())
		}
		*pointerAt[int32](where) = ordinal
	case 10: // IS_LEGACY_CUDA_IPC_CAPABLE
		*pointerAt[uint32](where) = uint32(boolInt(known && p.one.isSharable()))
	case 11: // RANGE_START_ADDR
		*pointerAt[uint64](where) = p.start
	case 12: // RANGE_SIZE
		*pointerAt[uint64](where) = p.one.size
	case 13: // MAPPED
		*pointerAt[uint32](where) = uint32(boolInt(known))
	case 14: // ALLOWED_HANDLE_TYPES
		*pointerAt[uint64](where) = 0
	case 15: // IS_GPU_DIRECT_RDMA_CAPABLE
		*pointerAt[uint32](where) = 0
	case 16: // ACCESS_FLAGS
		*pointerAt[uint32](where) = 3
	case 17: // MEMPOOL_HANDLE
		*pointerAt[uint64](where) = 0
		if p.one.pool != nil {
			*pointerAt[uint64](where) = uint64(p.one.pool.handle)
		}
	case 18: // MAPPING_SIZE
		*pointerAt[uint64](where) = p.size
	case 19: // MAPPING_BASE_ADDR
		*pointerAt[uint64](where) = p.start
	case 20: // MEMORY_BLOCK_ID
		*pointerAt[uint64](where) = p.one.number
	default:
		return refuse(invalidValue, "there is no attribute %d of a pointer", number)
	}
	return nil
}
