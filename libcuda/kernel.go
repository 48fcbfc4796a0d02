package libcuda

// #include "entry.h"
import "C"

import (
	"sync"

	"halstream/hal"
)

// kernel is a function that streams launch: one of a module (CUfunction), or one of a library, which is loaded in each
// context that launches it (CUkernel).
type kernel struct {
	name     string
	handle   uintptr
	module   *module
	f        *hal.Function
	library  *library
	settings *settings
}

// settings are attributes that the program has set, by their numbers.
type settings struct {
	mu     sync.Mutex
	values map[int]int
}

func (s *settings) get(number int) (value int, set bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, set = s.values[number]
	return value, set
}

func (s *settings) set(number, value int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[int]int{}
	}
	s.values[number] = value
}

// kernelOf returns the kernel of a handle of either kind.
func kernelOf(handle uintptr) (*kernel, error) {
	return find[*kernel](handle, invalidHandle, "function")
}

// in returns the kernel as a function of a module in a context.
func (k *kernel) in(c *caller, x *context) (*kernel, error) {
	if k.library == nil {
		return k, nil
	}
	m, err := k.library.in(c, x)
	if err != nil {
		return nil, err
	}
	return m.kernel(k.name)
}

// here is in for the current context.
func (k *kernel) here(c *caller) (*kernel, error) {
	if k.library == nil {
		return k, nil
	}
	x, err := c.context()
	if err != nil {
		return nil, err
	}
	return k.in(c, x)
}

// onKernel returns a function for a kernel that is its argument i.
func onKernel(i int, f func(c *caller, k *kernel, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		k, err := kernelOf(a.handle(i))
		if err != nil {
			return err
		}
		return f(c, k, a)
	}
}

// onLoadedKernel is onKernel for a kernel as a function of a module.
func onLoadedKernel(i int, f func(c *caller, k *kernel, a *args) error) func(c *caller, a *args) error {
	return onKernel(i, func(c *caller, k *kernel, a *args) error {
		k, err := k.here(c)
		if err != nil {
			return err
		}
		return f(c, k, a)
	})
}

// Attributes of functions. Source: CUDA driver API, CUfunction_attribute.
const (
	functionThreads = iota
	functionShared
	functionConstant
	functionLocal
	functionRegisters
	functionPTX
	functionBinary
	functionCacheMode
	functionDynamic
	functionCarveout
	functionAttributes = 16
)

// Shared memory of a block, without a setting and in all.
const (
	sharedUsual = 48 << 10
	sharedMost  = 163 << 10
)

func (k *kernel) attribute(number int) (int, error) {
	if value, set := k.settings.get(number); set {
		return value, nil
	}
	known, err := k.f.Attributes()
	if err != nil {
		return 0, err
	}
	switch number {
	case functionThreads:
		return k.f.Threads(), nil
	case functionShared:
		return known.Shared, nil
	case functionConstant:
		return known.Constant, nil
	case functionLocal:
		return known.Local, nil
	case functionRegisters:
		return known.Registers, nil
	case functionPTX:
		return known.PTXVersion, nil
	case functionBinary:
		return known.BinaryVersion, nil
	case functionDynamic:
		return max(0, sharedUsual-known.Shared), nil
	case functionCarveout:
		return -1, nil
	}
	if number < 0 || number >= functionAttributes {
		return 0, refuse(invalidValue, "there is no attribute %d of a function", number)
	}
	return 0, nil
}

func (k *kernel) setAttribute(number, value int) error {
	switch number {
	case functionDynamic:
		if value < 0 || k.f != nil && value > k.f.Shared() {
			return refuse(invalidValue, "a block of %s has no %d bytes of dynamic shared memory", k.name, value)
		}
	case functionCarveout:
		if value < -1 || value > 100 {
			return refuse(invalidValue, "a share of shared memory is -1 to 100 per cent, not %d", value)
		}
	default:
		return refuse(invalidValue, "attribute %d of a function cannot be set", number)
	}
	k.settings.set(number, value)
	return nil
}

// parameter gives the place and the size of a parameter.
func (k *kernel) parameter(a *args) error {
	sizes, _ := k.f.Parameters()
	if a[1] >= uint64(len(sizes)) {
		return refuse(invalidValue, "%s has %d parameters", k.name, len(sizes))
	}
	put(a, 2, uint64(k.f.Places()[a[1]]))
	put(a, 3, uint64(sizes[a[1]]))
	return a.need(2)
}

func parameterCount(_ *caller, k *kernel, a *args) error {
	sizes, known := k.f.Parameters()
	if !known {
		return refuse(notSupported, "the parameters of %s are not known", k.name)
	}
	put(a, 1, uint64(len(sizes)))
	return a.need(1)
}

var kernelFunctions = []function{
	{name: "cuFuncGetAttribute", version: 2020, call: onLoadedKernel(2, func(_ *caller, k *kernel, a *args) error {
		value, err := k.attribute(a.int(1))
		if err == nil {
			put(a, 0, int32(value))
			err = a.need(0)
		}
		return err
	})},
	{name: "cuFuncSetAttribute", version: 9000, call: onLoadedKernel(0, func(_ *caller, k *kernel, a *args) error {
		return k.setAttribute(a.int(1), a.int(2))
	})},
	{name: "cuFuncSetCacheConfig", version: 3000, call: onKernel(0, func(*caller, *kernel, *args) error { return nil })},
	{name: "cuFuncSetSharedMemConfig", version: 4020, call: onKernel(0, func(*caller, *kernel, *args) error { return nil })},
	{name: "cuFuncGetModule", version: 11000, call: onLoadedKernel(1, func(_ *caller, k *kernel, a *args) error {
		put(a, 0, k.module.handle)
		return a.need(0)
	})},
	{name: "cuFuncGetName", version: 12030, call: onKernel(1, storeName)},
	{name: "cuFuncGetParamCount", version: 13020, call: onLoadedKernel(0, parameterCount)},
	{name: "cuFuncGetParamInfo", version: 12040, call: onLoadedKernel(0, func(_ *caller, k *kernel, a *args) error { return k.parameter(a) })},
	{name: "cuFuncIsLoaded", version: 12040, call: onKernel(1, func(_ *caller, _ *kernel, a *args) error {
		put(a, 0, int32(1))
		return a.need(0)
	})},
	{name: "cuFuncLoad", version: 12040, call: onKernel(0, func(*caller, *kernel, *args) error { return nil })},
	{name: "cuKernelGetFunction", version: 12000, call: onLoadedKernel(1, func(_ *caller, k *kernel, a *args) error {
		put(a, 0, k.handle)
		return a.need(0)
	})},
	{name: "cuKernelGetLibrary", version: 12050, call: onKernel(1, func(_ *caller, k *kernel, a *args) error {
		if k.library == nil {
			return refuse(invalidHandle, "%s is the function of a module", k.name)
		}
		put(a, 0, k.library.handle)
		return a.need(0)
	})},
	{name: "cuKernelGetName", version: 12030, call: onKernel(1, storeName)},
	{name: "cuKernelGetParamCount", version: 13020, call: onLoadedKernel(0, parameterCount)},
	{name: "cuKernelGetParamInfo", version: 12040, call: onLoadedKernel(0, func(_ *caller, k *kernel, a *args) error { return k.parameter(a) })},
	{name: "cuKernelGetAttribute", version: 12000, call: onKernel(2, func(c *caller, k *kernel, a *args) error {
		d, err := device(a.int(3))
		if err != nil {
			return err
		}
		on, err := k.in(c, primaryOf(d))
		if err != nil {
			return err
		}
		value, err := on.attribute(a.int(1))
		if err == nil {
			put(a, 0, int32(value))
			err = a.need(0)
		}
		return err
	})},
	{name: "cuKernelSetAttribute", version: 12000, call: onKernel(2, func(c *caller, k *kernel, a *args) error {
		d, err := device(a.int(3))
		if err != nil {
			return err
		}
		on, err := k.in(c, primaryOf(d))
		if err != nil {
			return err
		}
		return on.setAttribute(a.int(0), a.int(1))
	})},
	{name: "cuKernelSetCacheConfig", version: 12000, call: onKernel(0, func(*caller, *kernel, *args) error { return nil })},
	{name: "cuOccupancyMaxActiveBlocksPerMultiprocessor", version: 6050, call: occupancy},
	{name: "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", version: 7000, call: occupancy},
	{name: "cuOccupancyMaxPotentialBlockSize", version: 6050, call: bestBlock},
	{name: "cuOccupancyMaxPotentialBlockSizeWithFlags", version: 7000, call: bestBlock},
	{name: "cuOccupancyAvailableDynamicSMemPerBlock", version: 10020, call: onLoadedKernel(1, func(_ *caller, k *kernel, a *args) error {
		blocks := max(1, a.int(2))
		room := min(k.f.Shared(), (sharedMost+reserved)/blocks-reserved-(sharedMost-k.f.Shared()))
		put(a, 0, uint64(max(0, room)))
		return a.need(0)
	})},
}

func storeName(_ *caller, k *kernel, a *args) error {
	put(a, 0, cString(k.name))
	return a.need(0)
}

// What a processor of a device of capability 8.0 holds at once. Source: CUDA C++ Programming Guide, Compute Capabilities.
const (
	residentThreads = 2048
	residentBlocks  = 32
	warp            = 32
	reserved        = 1 << 10 // shared memory of each block that the driver takes
)

// residents returns how many blocks of a kernel a processor holds at once.
func (k *kernel) residents(threads int, dynamic uint64) int {
	if threads < 1 || threads > k.f.Threads() || dynamic > uint64(k.f.Shared()) {
		return 0
	}
	own := sharedMost - k.f.Shared() + int(dynamic) + reserved
	return min(residentBlocks, residentThreads/((threads+warp-1)/warp*warp), (sharedMost+reserved)/own)
}

var occupancy = onLoadedKernel(1, func(_ *caller, k *kernel, a *args) error {
	if err := a.need(0); err != nil {
		return err
	}
	if a.int(2) < 1 {
		return refuse(invalidValue, "blocks have 1 thread or more, not %d", a.int(2))
	}
	put(a, 0, int32(k.residents(a.int(2), a[3])))
	return nil
})

// bestBlock suggests the largest block with which the most threads are there at once.
var bestBlock = onLoadedKernel(2, func(c *caller, k *kernel, a *args) error {
	if err := a.need(0, 1); err != nil {
		return err
	}
	limit := k.f.Threads()
	if given := a.int(5); given > 0 {
		limit = min(limit, given)
	}
	bestSize, bestThreads, bestBlocks := 0, 0, 0
	for size := limit; size > 0; size = (size - 1) / warp * warp {
		dynamic := a[4]
		if a[3] != 0 {
			dynamic = uint64(C.hs_cuda_shared_of(C.uintptr_t(a[3]), C.int(size)))
		}
		if blocks := k.residents(size, dynamic); blocks*size > bestThreads {
			bestSize, bestThreads, bestBlocks = size, blocks*size, blocks
		}
	}
	processors, err := attribute(k.module.x.dev, 16)
	put(a, 0, int32(bestBlocks*processors))
	put(a, 1, int32(bestSize))
	return err
})
