package host

import (
	"strconv"
	"strings"

	"halstream/hal/driver"
	"halstream/ptx"
)

// capability is the compute capability of which a host device is: what package ptx executes.
var capability = [2]int{8, 0}

// warp is how many threads of a block are a warp.
const warp = 32

// attribute returns an attribute by the number of the CUDA driver (CUdevice_attribute), as far as kernels depend on it:
// what the executor takes, and otherwise the figures of a device of this capability. Source: CUDA driver API,
// cuDeviceGetAttribute; CUDA C++ Programming Guide, Compute Capabilities.
func (d *Device) attribute(number int) (int, bool) {
	switch number {
	case 1: // MAX_THREADS_PER_BLOCK
		return ptx.MaxThreads, true
	case 2, 3, 4: // MAX_BLOCK_DIM_X and on
		return ptx.MaxBlock[number-2], true
	case 5, 6, 7: // MAX_GRID_DIM_X and on
		return ptx.MaxGrid[number-5], true
	case 8: // MAX_SHARED_MEMORY_PER_BLOCK, for a launch that asks for no more
		return 48 << 10, true
	case 9: // TOTAL_CONSTANT_MEMORY
		return 64 << 10, true
	case 10: // WARP_SIZE
		return warp, true
	case 12, 82: // MAX_REGISTERS_PER_BLOCK, MAX_REGISTERS_PER_MULTIPROCESSOR
		return 64 << 10, true
	case 16: // MULTIPROCESSOR_COUNT
		return d.eng.engines, true
	case 39: // MAX_THREADS_PER_MULTIPROCESSOR
		return 2 * ptx.MaxThreads, true
	case 75, 76: // COMPUTE_CAPABILITY_MAJOR and MINOR
		return capability[number-75], true
	case 81: // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
		return ptx.MaxShared + reservedShared, true
	case 95: // COOPERATIVE_LAUNCH: blocks take turns, so that each may wait for all others
		return 1, true
	case 97: // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
		return ptx.MaxShared, true
	case 106: // MAX_BLOCKS_PER_MULTIPROCESSOR
		return 32, true
	case 111: // RESERVED_SHARED_MEMORY_PER_BLOCK
		return reservedShared, true
	}
	return 0, false
}

// reservedShared is what a driver takes of the shared memory of a block.
const reservedShared = 1 << 10

// Fact implements driver.FactDevice.
func (d *Device) Fact(name string) (string, error) {
	number, known := map[string]int{"major": 75, "minor": 76, "processors": 16, "warp": 10}[name]
	if text, cut := strings.CutPrefix(name, "attribute:"); cut {
		n, err := strconv.Atoi(text)
		number, known = n, err == nil
	}
	if value, ok := d.attribute(number); known && ok {
		return strconv.Itoa(value), nil
	}
	return "", driver.Errorf(driver.NotSupported, "device fact", "%q is none that a host device has", name)
}
