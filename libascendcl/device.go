package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"halstream/bindings/ascendcl"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
)

//export hsAclSetDevice
func hsAclSetDevice(me C.uint32_t, ordinal C.int32_t) C.int {
	return call(me, func(c *caller) error {
		d, err := device(ordinal)
		if err == nil {
			_, err = d.UsePrimary(c.t)
		}
		return err
	})
}

//export hsAclResetDevice
func hsAclResetDevice(me C.uint32_t, ordinal C.int32_t, force C.int) C.int {
	return call(me, func(c *caller) error {
		d, err := device(ordinal)
		if err != nil {
			return err
		}
		released, err := d.ReleasePrimary(c.t, force != 0)
		if err != nil || released == nil {
			return err
		}
		return finish(c.t, released)
	}, kindCode{driver.InvalidValue, ascendcl.ContextReleaseError})
}

//export hsAclGetDevice
func hsAclGetDevice(me C.uint32_t, ordinal *C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if ordinal == nil {
			return missing("the device")
		}
		now, err := c.t.Context()
		if err == nil {
			*ordinal = C.int32_t(now.Device().Ordinal())
		}
		return err
	})
}

//export hsAclGetDeviceCount
func hsAclGetDeviceCount(me C.uint32_t, count *C.uint32_t) C.int {
	return call(me, func(*caller) error {
		if count == nil {
			return missing("the count")
		}
		rt, err := inUse()
		if err == nil {
			*count = C.uint32_t(rt.Devices())
		}
		return err
	})
}

//export hsAclSetTsDevice
func hsAclSetTsDevice(me C.uint32_t, ts C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if ts != C.ACL_TS_ID_AICORE && ts != C.ACL_TS_ID_AIVECTOR {
			return refuse(ascendcl.ParamInvalid, "there is no task scheduler %d", ts)
		}
		_, err := c.t.Context()
		return err
	})
}

//export hsAclSynchronizeDevice
func hsAclSynchronizeDevice(me C.uint32_t, ms C.int32_t) C.int {
	return call(me, func(c *caller) error {
		limit, err := limitOf(ms)
		if err != nil {
			return err
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		d := now.Device()
		aborts := abortsOf(d)
		before := aborts.Load()
		p, err := now.Point(c.t)
		if err != nil {
			return err
		}
		return c.wait(d.Runtime(), p, limit, ascendcl.StreamSyncTimeout, func(done bool) error {
			if aborts.Load() != before {
				return abortedError(d)
			}
			return waited(done, nil, ascendcl.StreamSyncTimeout, d, ms)
		})
	})
}

//export hsAclQueryDeviceStatus
func hsAclQueryDeviceStatus(me C.uint32_t, ordinal C.int32_t, status *C.int32_t) C.int {
	return call(me, func(*caller) error {
		if status == nil {
			return missing("the status")
		}
		_, err := device(ordinal)
		if err == nil {
			*status = C.ACL_RT_DEVICE_STATUS_NORMAL
		}
		return err
	})
}

// aborts counts how often the work of each device was aborted, by devices.
var aborts sync.Map

func abortsOf(d *hal.Device) *atomic.Uint64 {
	if count, known := aborts.Load(d); known {
		return count.(*atomic.Uint64)
	}
	count, _ := aborts.LoadOrStore(d, new(atomic.Uint64))
	return count.(*atomic.Uint64)
}

func abortedError(d *hal.Device) error {
	return refuse(ascendcl.DeviceTaskAbort, "the work of device %d was aborted meanwhile", d.Ordinal())
}

//export hsAclDeviceTaskAbort
func hsAclDeviceTaskAbort(me C.uint32_t, ordinal C.int32_t, ms C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		d, err := device(ordinal)
		if err != nil {
			return err
		}
		abortsOf(d).Add(1)
		each(func(_ uintptr, is any) {
			if s, ok := is.(*stream); ok && s.Device() == d {
				s.byDevice.Store(true)
			}
		})
		if _, err := d.Abort(c.t); err != nil {
			return err
		}
		p, err := d.Point(c.t)
		if err != nil {
			return err
		}
		limit := abortLimit(ms)
		then := func(done bool) error {
			return waited(done, d.Lost(), ascendcl.AbortTimeout, d, C.int32_t(limit/1e6))
		}
		if ms != 0 {
			return then(p.Wait(limit))
		}
		return c.waitUntil(waits.After(limit), d.Runtime(), p, ascendcl.AbortTimeout, then)
	})
}

// abortLimit returns for how many nanoseconds an abort of a device waits at most; the longest is also that of 0.
func abortLimit(ms C.uint32_t) int64 {
	const most = 36 * 60 * 1000
	if ms == 0 || ms > most {
		ms = most
	}
	return int64(ms) * 1e6
}

//export hsAclGetDeviceInfo
func hsAclGetDeviceInfo(me C.uint32_t, ordinal C.uint32_t, attribute C.int32_t, value *C.int64_t) C.int {
	return call(me, func(c *caller) error {
		if value == nil {
			return missing("the value")
		}
		d, err := device(C.int32_t(ordinal))
		if err != nil {
			return err
		}
		switch attribute {
		case C.ACL_DEV_ATTR_AICPU_CORE_NUM:
			*value = C.int64_t(runtime.NumCPU()) // functions run on the host's
		case C.ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
			_, total, err := d.MemoryInfo()
			if err != nil {
				return err
			}
			*value = C.int64_t(total)
		case C.ACL_DEV_ATTR_PHY_CHIP_ID:
			*value = C.int64_t(d.Ordinal())
		case C.ACL_DEV_ATTR_AICORE_CORE_NUM, C.ACL_DEV_ATTR_CUBE_CORE_NUM, C.ACL_DEV_ATTR_VECTOR_CORE_NUM,
			C.ACL_DEV_ATTR_L2_CACHE_SIZE, C.ACL_DEV_ATTR_IS_VIRTUAL, C.ACL_DEV_ATTR_NPU_ARCH:
			*value = 0 // only an Ascend chip has any
		default:
			return refuse(ascendcl.ParamInvalid, "there is no attribute %d", attribute)
		}
		return nil
	})
}

//export hsAclGetDeviceUtilizationRate
func hsAclGetDeviceUtilizationRate(me C.uint32_t, ordinal C.int32_t, u *C.aclrtUtilizationInfo) C.int {
	return call(me, func(*caller) error {
		if u == nil {
			return missing("the utilization")
		}
		_, err := device(ordinal)
		if err == nil { // nothing measures it
			u.cubeUtilization, u.vectorUtilization, u.aicpuUtilization, u.memoryUtilization = -1, -1, -1, -1
			u.utilizationExtend = nil
		}
		return err
	})
}

//export hsAclDeviceCanAccessPeer
func hsAclDeviceCanAccessPeer(me C.uint32_t, can *C.int32_t, ordinal, peer C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if can == nil {
			return missing("the answer")
		}
		if _, err := c.t.Context(); err != nil {
			return err
		}
		from, err := device(ordinal)
		if err != nil {
			return err
		}
		to, err := device(peer)
		if err != nil {
			return err
		}
		yes, err := canAccess(c.t, from, to)
		if err == nil {
			*can = 0
			if yes {
				*can = 1
			}
		}
		return err
	})
}

// canAccess reports whether a device can use the other one's memory; a device is no peer of itself.
func canAccess(t *hal.Thread, from, to *hal.Device) (bool, error) {
	if from == to || needNoPermission(from) {
		return from != to, nil
	}
	return from.CanAccess(t, to)
}

// needNoPermission reports whether the memory of all devices is the host's.
func needNoPermission(d *hal.Device) bool { return d.Runtime().Name() == "host" }

//export hsAclDevicePeerAccess
func hsAclDevicePeerAccess(me C.uint32_t, peer C.int32_t, flags C.uint32_t, enable C.int) C.int {
	return call(me, func(c *caller) error {
		if flags != 0 {
			return refuse(ascendcl.ParamInvalid, "the flags are 0, not %#x", flags)
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		to, err := device(peer)
		if err != nil {
			return err
		}
		here := now.Device()
		yes, err := canAccess(c.t, here, to)
		if err != nil {
			return err
		}
		if !yes {
			return refuse(ascendcl.ParamInvalid, "device %d is no peer of device %d", peer, here.Ordinal())
		}
		if enable == 0 || needNoPermission(here) {
			return nil
		}
		return here.EnableAccess(c.t, to)
	})
}

//export hsAclDeviceNumber
func hsAclDeviceNumber(me C.uint32_t, ordinal C.int32_t, number *C.int32_t) C.int {
	return call(me, func(*caller) error {
		if number == nil {
			return missing("the number")
		}
		_, err := device(ordinal)
		if err == nil {
			*number = ordinal
		}
		return err
	})
}

//export hsAclGetDeviceCapability
func hsAclGetDeviceCapability(me C.uint32_t, ordinal, feature C.int32_t, value *C.int32_t) C.int {
	return call(me, func(*caller) error {
		if value == nil {
			return missing("the value")
		}
		if feature != C.ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV && feature != C.ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV {
			return refuse(ascendcl.ParamInvalid, "there is no feature %d", feature)
		}
		_, err := device(ordinal)
		if err == nil {
			*value = 0 // both belong to parts that are absent
		}
		return err
	})
}

//export hsAclGetPrimaryCtxState
func hsAclGetPrimaryCtxState(me C.uint32_t, ordinal C.int32_t, active *C.int32_t) C.int {
	return call(me, func(*caller) error {
		if active == nil {
			return missing("the state")
		}
		d, err := device(ordinal)
		if err == nil {
			*active = C.int32_t(truth(d.PrimaryInUse()))
		}
		return err
	})
}

// hsAclDeviceGetUuid gives 16 bytes that are the same in each process of a machine.
//
//export hsAclDeviceGetUuid
func hsAclDeviceGetUuid(me C.uint32_t, ordinal C.int32_t, uuid *C.aclrtUuid) C.int {
	return call(me, func(c *caller) error {
		if uuid == nil {
			return missing("the uuid")
		}
		d, err := device(ordinal)
		if err != nil {
			return err
		}
		text, err := d.Fact(c.t, "uuid")
		if err != nil { // only CUDA devices have one of their own
			text = fmt.Sprintf("%s %s %d", d.Runtime().Name(), d.Name(), d.Ordinal())
		}
		sum := sha256.Sum256([]byte(text))
		for i := range uuid.bytes {
			uuid.bytes[i] = C.char(sum[i])
		}
		return nil
	})
}

//export hsAclNoBus
func hsAclNoBus(me C.uint32_t, ordinal C.int32_t) C.int {
	return call(me, func(*caller) error {
		if _, err := device(ordinal); err != nil {
			return err
		}
		return refuse(ascendcl.FeatureNotSupported, "devices are on no PCI bus here")
	})
}

//export hsAclGetResInCurrentThread
func hsAclGetResInCurrentThread(me C.uint32_t, kind C.int32_t, value *C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		if value == nil {
			return missing("the value")
		}
		if kind != C.ACL_RT_DEV_RES_CUBE_CORE && kind != C.ACL_RT_DEV_RES_VECTOR_CORE {
			return refuse(ascendcl.ParamInvalid, "there is no resource %d", kind)
		}
		_, err := c.t.Context()
		if err == nil {
			*value = 0 // only an Ascend chip has any
		}
		return err
	})
}
