package libcuda

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"halstream/hal"
)

var deviceFunctions = []function{
	{name: "cuDeviceGetCount", version: 2000, call: func(_ *caller, a *args) error {
		rt, err := inUse()
		if err == nil {
			put(a, 0, int32(rt.Devices()))
			err = a.need(0)
		}
		return err
	}},
	{name: "cuDeviceGet", version: 2000, call: func(_ *caller, a *args) error {
		if _, err := device(a.int(1)); err != nil {
			return err
		}
		put(a, 0, int32(a.int(1)))
		return a.need(0)
	}},
	{name: "cuDeviceGetName", version: 2000, call: onDevice(2, func(d *hal.Device, a *args) error {
		return putText(a, 0, 1, d.Name())
	})},
	{name: "cuDeviceGetAttribute", version: 2000, call: onDevice(2, func(d *hal.Device, a *args) error {
		value, err := attribute(d, a.int(1))
		if err == nil {
			put(a, 0, int32(value))
			err = a.need(0)
		}
		return err
	})},
	{name: "cuDeviceGetUuid", version: 9020, call: onDevice(1, deviceUUID)},
	{name: "cuDeviceGetUuid_v2", version: 11040, call: onDevice(1, deviceUUID)},
	{name: "cuDeviceGetLuid", version: 10000, call: unsupported("Windows has local identifiers of devices")},
	{name: "cuDeviceTotalMem_v2", version: 3020, call: onDevice(1, func(d *hal.Device, a *args) error {
		_, total, err := d.MemoryInfo()
		if err == nil {
			put(a, 0, total)
			err = a.need(0)
		}
		return err
	})},
	{name: "cuDeviceComputeCapability", version: 2000, call: onDevice(2, func(d *hal.Device, a *args) error {
		major, err := attribute(d, capabilityMajor)
		if err != nil {
			return err
		}
		minor, err := attribute(d, capabilityMajor+1)
		put(a, 0, int32(major))
		put(a, 1, int32(minor))
		return err
	})},
	{name: "cuDeviceGetProperties", version: 2000, call: onDevice(1, func(d *hal.Device, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		for i, number := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14} {
			value, err := attribute(d, number)
			if err != nil {
				return err
			}
			list[int32](a, 0, 14)[i] = int32(value)
		}
		return nil
	})},
	{name: "cuDeviceGetPCIBusId", version: 4010, call: onDevice(2, func(d *hal.Device, a *args) error {
		return putText(a, 0, 1, busID(d))
	})},
	{name: "cuDeviceGetByPCIBusId", version: 4010, call: func(_ *caller, a *args) error {
		rt, err := inUse()
		if err == nil {
			err = a.need(0, 1)
		}
		if err != nil {
			return err
		}
		for i := range rt.Devices() {
			if d, _ := rt.Device(i); busID(d) == a.text(1) {
				put(a, 0, int32(i))
				return nil
			}
		}
		return refuse(invalidDevice, "no device is at %q", a.text(1))
	}},
	{name: "cuDeviceCanAccessPeer", version: 4000, call: func(_ *caller, a *args) error {
		from, to, err := twoDevices(a.int(1), a.int(2))
		if err == nil {
			put(a, 0, boolInt(from != to))
			err = a.need(0)
		}
		return err
	}},
	{name: "cuDeviceGetP2PAttribute", version: 8000, call: func(_ *caller, a *args) error {
		from, to, err := twoDevices(a.int(2), a.int(3))
		if err != nil {
			return err
		}
		values := map[int]int32{1: 0, 2: boolInt(from != to), 3: boolInt(from != to), 4: 0}
		value, known := values[a.int(1)]
		if !known || from == to {
			return refuse(invalidValue, "there is no attribute %d between devices %d and %d", a.int(1), a.int(2), a.int(3))
		}
		put(a, 0, value)
		return a.need(0)
	}},
	{name: "cuDeviceGetTexture1DLinearMaxWidth", version: 11010, call: unsupported(noTextures)},
	{name: "cuDeviceGetExecAffinitySupport", version: 11040, call: func(_ *caller, a *args) error {
		put(a, 0, int32(0))
		return a.need(0)
	}},
	{name: "cuDeviceGetNvSciSyncAttributes", version: 10020, call: unsupported("NvSci belongs to other hardware")},
	{name: "cuFlushGPUDirectRDMAWrites", version: 11030, call: unsupported("there is no network card that writes device memory")},
}

// device returns a device by its number.
func device(ordinal int) (*hal.Device, error) {
	rt, err := inUse()
	if err != nil {
		return nil, err
	}
	return rt.Device(ordinal)
}

// onDevice returns a function for a device that is its argument i.
func onDevice(i int, f func(d *hal.Device, a *args) error) func(c *caller, a *args) error {
	return func(_ *caller, a *args) error {
		d, err := device(a.int(i))
		if err != nil {
			return err
		}
		return f(d, a)
	}
}

func twoDevices(one, other int) (from, to *hal.Device, err error) {
	if from, err = device(one); err == nil {
		to, err = device(other)
	}
	return from, to, err
}

func boolInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// putText copies a text, cut to the room that there is, with NUL at its end.
func putText(a *args, i, room int, text string) error {
	n := a.int(room)
	if a[i] == 0 || n <= 0 {
		return refuse(invalidValue, "there is no room for the text %q", text)
	}
	into := list[byte](a, i, uint64(n))
	into[copy(into[:n-1], text)] = 0
	return nil
}

// busID returns where a device is: no bus has it, but programs tell devices apart by that.
func busID(d *hal.Device) string { return fmt.Sprintf("0000:%02X:00.0", d.Ordinal()+1) }

func deviceUUID(d *hal.Device, a *args) error {
	if err := a.need(0); err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", d.Runtime().Name(), d.Name(), d.Ordinal()))
	put(a, 0, [16]byte(sum[:16]))
	return nil
}

const (
	capabilityMajor = 75
	lastAttribute   = 150 // about which programs of this version of CUDA ask
)

// attributes are what programs ask about a device beside what it knows itself, by their numbers; others are 0. Source:
// CUDA driver API, CUdevice_attribute.
var attributes = map[int]int{
	13:  1_000_000, // CLOCK_RATE in kHz
	14:  512,       // TEXTURE_ALIGNMENT
	19:  1,         // CAN_MAP_HOST_MEMORY
	31:  1,         // CONCURRENT_KERNELS
	36:  1_000_000, // MEMORY_CLOCK_RATE in kHz
	37:  64,        // GLOBAL_MEMORY_BUS_WIDTH
	38:  4 << 20,   // L2_CACHE_SIZE
	40:  2,         // ASYNC_ENGINE_COUNT
	41:  1,         // UNIFIED_ADDRESSING
	51:  32,        // TEXTURE_PITCH_ALIGNMENT
	78:  1,         // STREAM_PRIORITIES_SUPPORTED
	79:  1,         // GLOBAL_L1_CACHE_SUPPORTED
	80:  1,         // LOCAL_L1_CACHE_SUPPORTED
	83:  1,         // MANAGED_MEMORY
	86:  1,         // HOST_NATIVE_ATOMIC_SUPPORTED
	87:  32,        // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
	89:  1,         // CONCURRENT_MANAGED_ACCESS
	90:  1,         // COMPUTE_PREEMPTION_SUPPORTED
	91:  1,         // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
	92:  1,         // CAN_USE_STREAM_MEM_OPS_V1
	93:  1,         // CAN_USE_64_BIT_STREAM_MEM_OPS_V1
	94:  1,         // CAN_USE_STREAM_WAIT_VALUE_NOR_V1
	99:  1,         // HOST_REGISTER_SUPPORTED
	101: 1,         // DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
	113: 1,         // READ_ONLY_HOST_REGISTER_SUPPORTED
	115: 1,         // MEMORY_POOLS_SUPPORTED
	122: 1,         // CAN_USE_64_BIT_STREAM_MEM_OPS
	123: 1,         // CAN_USE_STREAM_WAIT_VALUE_NOR
	129: 1,         // UNIFIED_FUNCTION_POINTERS
}

// Attributes that come from the device's place.
const (
	pitchAttribute = 11
	busAttribute   = 33
)

func attribute(d *hal.Device, number int) (int, error) {
	if number < 1 || number > lastAttribute {
		return 0, refuse(invalidValue, "there is no attribute %d of a device", number)
	}
	switch number {
	case busAttribute:
		return d.Ordinal() + 1, nil
	case pitchAttribute:
		return 1<<31 - 1, nil
	}
	text, err := d.Fact(nil, "attribute:"+strconv.Itoa(number))
	if errors.Is(err, hal.ErrNotSupported) {
		return attributes[number], nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
