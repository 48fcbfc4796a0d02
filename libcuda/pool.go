package libcuda

import (
	"errors"
	"sync"

	"halstream/hal"
	"halstream/hal/driver"
)

// pool is a pool of memory. All pools of a device take theirs from its one pool of package hal; each counts for itself.
type pool struct {
	dev      *hal.Device
	handle   uintptr
	standing bool   // the device's own
	limit    uint64 // of the bytes in use, 0 for none

	mu sync.Mutex
	// used are the bytes in use; usedHigh and reservedHigh are the most since the program has reset them. A pool that is not
	// the device's own has reserved what is in use.
	used, usedHigh, reservedHigh uint64
	flags                        map[int]uint64
	access                       map[int32]int32 // by the numbers of devices
}

// taken counts an allocation, and refuses one that is above the pool's limit.
func (p *pool) taken(size uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit != 0 && (size > p.limit || p.used > p.limit-size) {
		return refuse(outOfMemory, "the pool may have %d bytes, and %d are in use", p.limit, p.used)
	}
	p.used += size
	p.usedHigh, p.reservedHigh = max(p.usedHigh, p.used), max(p.reservedHigh, p.used)
	return nil
}

func (p *pool) freed(size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= size
}

// pools are the devices' own pools, and those that they use.
var pools struct {
	sync.Mutex
	standing, current map[*hal.Device]*pool
}

func poolsOf(d *hal.Device) (standing, current *pool) {
	pools.Lock()
	defer pools.Unlock()
	if pools.standing == nil {
		pools.standing, pools.current = map[*hal.Device]*pool{}, map[*hal.Device]*pool{}
	}
	if pools.standing[d] == nil {
		p := &pool{dev: d, standing: true}
		p.handle = newHandle(p)
		pools.standing[d], pools.current[d] = p, p
	}
	return pools.standing[d], pools.current[d]
}

func poolOf(handle uintptr) (*pool, error) {
	return find[*pool](handle, invalidValue, "pool of memory")
}

// onPool returns a function for a pool that is its first argument.
func onPool(f func(p *pool, a *args) error) func(c *caller, a *args) error {
	return func(_ *caller, a *args) error {
		p, err := poolOf(a.handle(0))
		if err != nil {
			return err
		}
		return f(p, a)
	}
}

// location is where memory is, as the driver's structures say it.
type location struct{ kind, id int32 }

const onDeviceLocation = 1

// pinnedAllocation is the type of memory that stays where it is. Source: CUDA driver API, CUmemAllocationType.
const pinnedAllocation = 1

// How a device may access the memory of a pool. Source: CUDA driver API, CUmemAccess_flags.
const (
	accessNone      = 0
	accessReadWrite = 3
)

// accessDescriptor is CUmemAccessDesc.
type accessDescriptor struct {
	at    location
	flags int32
}

// poolProperties begin the structure CUmemPoolProps.
type poolProperties struct {
	allocation, handles int32
	at                  location
	security            uintptr
	limit               uint64
}

// Attributes of pools.
const (
	poolThreshold    = 4
	poolReserved     = 5
	poolReservedHigh = 6
	poolUsed         = 7
	poolUsedHigh     = 8
)

var poolFunctions = []function{
	{name: "cuMemAllocAsync", version: 11020, twin: ptsz, call: onStream(2, func(c *caller, s *stream, a *args) error {
		_, current := poolsOf(s.Device())
		return c.allocAsync(s, current, a)
	})},
	{name: "cuMemAllocFromPoolAsync", version: 11020, twin: ptsz, call: onStream(3, func(c *caller, s *stream, a *args) error {
		p, err := poolOf(a.handle(2))
		if err != nil {
			return err
		}
		return c.allocAsync(s, p, a)
	})},
	{name: "cuMemFreeAsync", version: 11020, twin: ptsz, call: onStream(1, func(c *caller, s *stream, a *args) error {
		if a[0] == 0 {
			return nil
		}
		address := a[0]
		if one := allocationAt(address); one != nil && one.onDevice() && one.pool == nil {
			p, err := s.Point(c.t) // memory of cuMemAlloc is freed behind the stream's work
			if err != nil {
				return err
			}
			return c.wait(s.Device().Runtime(), p, func() error {
				return c.freeAt(address, (*allocation).onDevice, noDeviceMemory(address))
			})
		}
		found, err := endAllocation(address, (*allocation).onDevice, func(*allocation) error { return s.FreeAsync(c.t, address) })
		if !found {
			err = noDeviceMemory(address)
		}
		return err
	})},
	{name: "cuDeviceGetDefaultMemPool", version: 11020, call: onDevice(1, func(d *hal.Device, a *args) error {
		standing, _ := poolsOf(d)
		put(a, 0, standing.handle)
		return a.need(0)
	})},
	{name: "cuDeviceGetMemPool", version: 11020, call: onDevice(1, func(d *hal.Device, a *args) error {
		_, current := poolsOf(d)
		put(a, 0, current.handle)
		return a.need(0)
	})},
	{name: "cuDeviceSetMemPool", version: 11020, call: onDevice(0, func(d *hal.Device, a *args) error {
		return setCurrentPool(d, a.handle(1))
	})},
	{name: "cuMemGetDefaultMemPool", version: 13000, call: locationPool(false)},
	{name: "cuMemGetMemPool", version: 13000, call: locationPool(true)},
	{name: "cuMemSetMemPool", version: 13000, call: func(_ *caller, a *args) error {
		d, err := deviceAt(a, 0)
		if err != nil {
			return err
		}
		return setCurrentPool(d, a.handle(2))
	}},
	{name: "cuMemPoolCreate", version: 11020, call: func(_ *caller, a *args) error {
		if err := a.need(0, 1); err != nil {
			return err
		}
		properties := in[poolProperties](a, 1)
		if properties.handles != 0 {
			return refuse(notSupported, "%s", noProcesses)
		}
		d, err := properties.at.device()
		if err != nil {
			return err
		}
		if properties.allocation != pinnedAllocation {
			return refuse(notSupported, "pools are of memory of type %d, and not of type %d", pinnedAllocation, properties.allocation)
		}
		p := &pool{dev: d, limit: properties.limit}
		p.handle = newHandle(p)
		put(a, 0, p.handle)
		return nil
	}},
	{name: "cuMemPoolDestroy", version: 11020, call: onPool(func(p *pool, a *args) error {
		if p.standing {
			return refuse(invalidValue, "a device's own pool is not destroyed")
		}
		pools.Lock()
		defer pools.Unlock()
		if pools.current[p.dev] == p {
			pools.current[p.dev] = pools.standing[p.dev]
		}
		removeHandle(p.handle)
		return nil
	})},
	{name: "cuMemPoolTrimTo", version: 11020, call: onPool(func(p *pool, a *args) error {
		p.dev.TrimPool(a[1])
		return nil
	})},
	{name: "cuMemPoolSetAccess", version: 11020, call: onPool(func(p *pool, a *args) error {
		descriptors, err := elements[accessDescriptor](a, 1, 2)
		if err != nil {
			return err
		}
		for _, one := range descriptors {
			d, err := one.at.device()
			if err != nil {
				return err
			}
			if one.flags != accessReadWrite && (one.flags != accessNone || d == p.dev) {
				return refuse(invalidValue, "device %d cannot have the access %d to the pool", d.Ordinal(), one.flags)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.access == nil {
			p.access = map[int32]int32{}
		}
		for _, one := range descriptors {
			p.access[one.at.id] = one.flags // what it is set to is kept; the memory of all devices is the host's
		}
		return nil
	})},
	{name: "cuMemPoolGetAccess", version: 11020, call: func(_ *caller, a *args) error {
		p, err := poolOf(a.handle(1))
		if err == nil {
			err = a.need(0)
		}
		if err != nil {
			return err
		}
		d, err := deviceAt(a, 2)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		access := p.access[int32(d.Ordinal())]
		if d == p.dev {
			access = accessReadWrite
		}
		put(a, 0, access)
		return nil
	}},
	{name: "cuMemPoolGetAttribute", version: 11020, call: onPool(func(p *pool, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		switch number := a.int(1); {
		case number >= 1 && number < poolThreshold:
			put(a, 2, int32(p.flag(number, 1)))
		case number == poolThreshold:
			put(a, 2, p.flag(number, 0))
		case number == poolUsed:
			put(a, 2, p.used)
		case number == poolUsedHigh:
			put(a, 2, p.usedHigh)
		case number == poolReserved && p.standing:
			put(a, 2, p.dev.PoolStats().Reserved)
		case number == poolReservedHigh && p.standing:
			put(a, 2, p.dev.PoolStats().ReservedPeak)
		case number == poolReserved:
			put(a, 2, p.used)
		case number == poolReservedHigh:
			put(a, 2, p.reservedHigh)
		default:
			return refuse(invalidValue, "there is no attribute %d of a pool", number)
		}
		return nil
	})},
	{name: "cuMemPoolSetAttribute", version: 11020, call: onPool(func(p *pool, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.flags == nil {
			p.flags = map[int]uint64{}
		}
		switch number := a.int(1); {
		case number >= 1 && number < poolThreshold:
			p.flags[number] = uint64(*in[int32](a, 2))
		case number == poolThreshold:
			p.flags[number] = *in[uint64](a, 2)
			if p.standing {
				p.dev.SetPoolThreshold(*in[uint64](a, 2))
			}
		case number == poolUsedHigh && *in[uint64](a, 2) == 0:
			p.usedHigh = p.used
		case number == poolReservedHigh && *in[uint64](a, 2) == 0:
			p.reservedHigh = p.used
			if p.standing {
				p.dev.ResetPoolPeaks(false, true)
			}
		default:
			return refuse(invalidValue, "attribute %d of a pool cannot be set so", number)
		}
		return nil
	})},
}

// flag returns a setting of the pool, whose lock the caller holds.
func (p *pool) flag(number int, otherwise uint64) uint64 {
	if value, ok := p.flags[number]; ok {
		return value
	}
	return otherwise
}

// setCurrentPool lets a device take memory from the pool with a handle where a program names none.
func setCurrentPool(d *hal.Device, handle uintptr) error {
	p, err := poolOf(handle)
	if err == nil && p.dev != d {
		err = refuse(invalidValue, "the pool is one of another device")
	}
	if err != nil {
		return err
	}
	poolsOf(d)
	pools.Lock()
	defer pools.Unlock()
	pools.current[d] = p
	return nil
}

// deviceAt returns the device of a place in memory that an argument points to.
func deviceAt(a *args, i int) (*hal.Device, error) {
	if err := a.need(i); err != nil {
		return nil, err
	}
	return in[location](a, i).device()
}

func (at location) device() (*hal.Device, error) {
	if at.kind != onDeviceLocation {
		return nil, refuse(notSupported, "pools are of a device's memory, and not of place %d; use cuMemHostAlloc", at.kind)
	}
	return device(int(at.id))
}

// locationPool returns the function for the pool of a place: the one in use, or the device's own.
func locationPool(inUse bool) func(c *caller, a *args) error {
	return func(_ *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		d, err := deviceAt(a, 1)
		if err != nil {
			return err
		}
		standing, current := poolsOf(d)
		if inUse {
			standing = current
		}
		put(a, 0, standing.handle)
		return nil
	}
}

func (c *caller) allocAsync(s *stream, p *pool, a *args) error {
	if err := a.need(0); err != nil {
		return err
	}
	size, err := sizeOf(a[1])
	if err == nil && p.dev != s.Device() {
		err = refuse(notSupported, "memory of a device's pool is allocated on streams of that device")
	}
	if err != nil {
		return err
	}
	return c.withRoom(s.Device().Runtime(), func(wait func(driver.Point) bool) error {
		b, err := s.AllocAsyncWait(c.t, size, wait)
		if err != nil {
			return err
		}
		if err := p.taken(a[1]); err != nil {
			return errors.Join(err, s.FreeAsync(c.t, b.Start))
		}
		noteAllocation(b.Start, allocation{x: s.x, ofGraph: b.OfGraph(), pool: p, size: a[1]})
		put(a, 0, b.Start)
		return nil
	})
}
