package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"os"

	"halstream/bindings/ascendcl"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
)

// most is more than any memory has.
const most = 1 << 62

// roomWait waits for freed memory that pending work uses. Where that work waits for the host,
// which may be the calling thread, it does so for a while only.
func roomWait(rt *hal.Runtime) func(driver.Point) bool {
	return func(p driver.Point) bool {
		const slice = waits.HeldLimit / 20
		for range 20 {
			if p.Wait(slice) {
				return true
			}
			if !rt.AwaitsHost() {
				return p.Wait(driver.Forever)
			}
		}
		return false
	}
}

//export hsAclMalloc
func hsAclMalloc(me C.uint32_t, address *C.uintptr_t, size C.uint64_t, policy C.int32_t) C.int {
	return call(me, func(c *caller) error {
		switch {
		case address == nil:
			return missing("the pointer")
		case size == 0:
			return refuse(ascendcl.InvalidParam, "the size is 0; ask for one byte or more")
		}
		if !ascendcl.PolicyExists(int32(policy)) {
			return refuse(ascendcl.ParamInvalid, "there is no allocation policy %#x", policy)
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		d := now.Device()
		b, err := d.AllocWait(c.t, int64(min(uint64(size), most)), roomWait(d.Runtime()))
		if err == nil {
			*address = C.uintptr_t(b.Start)
		}
		return err
	})
}

//export hsAclMallocHost
func hsAclMallocHost(me C.uint32_t, address *C.uintptr_t, size C.uint64_t) C.int {
	return call(me, func(c *caller) error {
		switch {
		case address == nil:
			return missing("the pointer")
		case size == 0:
			return refuse(ascendcl.InvalidParam, "the size is 0; ask for one byte or more")
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		rt := now.Device().Runtime()
		b, err := rt.AllocHostWait(c.t, int64(min(uint64(size), most)), roomWait(rt))
		if err == nil {
			*address = C.uintptr_t(b.Start)
		}
		return err
	})
}

// free gives memory back; with wait the current device's work is waited for first.
func free(me C.uint32_t, address C.uintptr_t, wait bool, give func(c *caller, rt *hal.Runtime) error) C.int {
	return call(me, func(c *caller) error {
		if address == 0 {
			return missing("the pointer")
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		d := now.Device()
		if wait {
			done, err := d.Synchronize(c.t, driver.Forever)
			if err := waited(done, err, ascendcl.StreamSyncTimeout, d, -1); err != nil {
				return err
			}
		}
		return give(c, d.Runtime())
	}, kindCode{driver.NotReady, ascendcl.MemoryFree})
}

//export hsAclFree
func hsAclFree(me C.uint32_t, address C.uintptr_t, wait C.int) C.int {
	return free(me, address, wait != 0, func(c *caller, rt *hal.Runtime) error {
		return rt.FreeNoWait(c.t, uint64(address))
	})
}

//export hsAclFreeHost
func hsAclFreeHost(me C.uint32_t, address C.uintptr_t, wait C.int) C.int {
	return free(me, address, wait != 0, func(c *caller, rt *hal.Runtime) error {
		return rt.FreeHost(c.t, uint64(address), false)
	})
}

//export hsAclGetMemInfo
func hsAclGetMemInfo(me C.uint32_t, attribute C.int32_t, free, total *C.size_t) C.int {
	return call(me, func(c *caller) error {
		if free == nil || total == nil {
			return missing("the size")
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		if attribute < C.ACL_DDR_MEM || attribute > C.ACL_MEM_P2P_HUGE1G {
			return refuse(ascendcl.ParamInvalid, "there is no memory attribute %d", attribute)
		}
		f, t, err := now.Device().MemoryInfo()
		if err == nil {
			*free, *total = C.size_t(f), C.size_t(t)
		}
		return err
	})
}

//export hsAclPointerGetAttributes
func hsAclPointerGetAttributes(me C.uint32_t, address C.uintptr_t, a *C.aclrtPtrAttributes) C.int {
	return call(me, func(*caller) error {
		if address == 0 {
			return missing("the pointer")
		}
		if a == nil {
			return missing("the attributes")
		}
		rt, err := inUse()
		if err != nil {
			return err
		}
		kind, _, _, ordinal := rt.Lookup(uint64(address))
		*a = C.aclrtPtrAttributes{pageSize: C.uint32_t(os.Getpagesize())}
		a.location.id = C.uint32_t(max(0, ordinal))
		switch kind {
		case hal.Pinned:
			a.location._type = C.ACL_MEM_LOCATION_TYPE_HOST
		case hal.DeviceMemory:
			a.location._type = C.ACL_MEM_LOCATION_TYPE_DEVICE
		default:
			a.location._type = C.ACL_MEM_LOCATION_TYPE_UNREGISTERED
		}
		return nil
	})
}

// kindAt returns the kind of memory at an address.
func kindAt(address C.uintptr_t) (hal.MemoryKind, error) {
	rt, err := inUse()
	if err != nil {
		return 0, err
	}
	kind, _, _, _ := rt.Lookup(uint64(address))
	return kind, nil
}

//export hsAclHostRegister
func hsAclHostRegister(me C.uint32_t, address C.uintptr_t, size C.uint64_t, supported C.int) C.int {
	return call(me, func(c *caller) error {
		if supported == 0 {
			return refuse(ascendcl.FeatureNotSupported, "memory cannot be registered this way; map it")
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		if address == 0 {
			return missing("the pointer")
		}
		if kind, err := kindAt(address); err != nil || kind == hal.Pinned {
			if err == nil {
				err = refuse(ascendcl.HostMemoryRegistered, "%#x is pinned already", address)
			}
			return err
		}
		return now.Device().Runtime().RegisterHost(c.t, uint64(address), int64(min(uint64(size), most)))
	})
}

//export hsAclHostUnregister
func hsAclHostUnregister(me C.uint32_t, address C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		if address == 0 {
			return missing("the pointer")
		}
		rt, err := inUse()
		if err != nil {
			return err
		}
		return rt.UnregisterHost(c.t, uint64(address))
	}, kindCode{driver.InvalidValue, ascendcl.HostMemoryNotRegister}, kindCode{driver.NotReady, ascendcl.MemoryFree})
}

//export hsAclHostGetDevicePointer
func hsAclHostGetDevicePointer(me C.uint32_t, address C.uintptr_t, result *C.uintptr_t, flag C.uint32_t) C.int {
	return call(me, func(*caller) error {
		switch {
		case flag != 0:
			return refuse(ascendcl.ParamInvalid, "the flag is 0, not %#x", flag)
		case address == 0 || result == nil:
			return missing("the pointer")
		}
		kind, err := kindAt(address)
		if err == nil && kind != hal.Pinned {
			err = refuse(ascendcl.HostMemoryNotRegister, "%#x is not pinned", address)
		}
		if err == nil {
			*result = address
		}
		return err
	})
}

//export hsAclMemTouch
func hsAclMemTouch(me C.uint32_t, address C.uintptr_t) C.int {
	return call(me, func(*caller) error {
		if address == 0 {
			return missing("the pointer")
		}
		return nil
	})
}

//export hsAclValue
func hsAclValue(me C.uint32_t, address C.uintptr_t, value C.uint64_t, flag C.uint32_t, handle C.uintptr_t, write C.int) C.int {
	return call(me, func(c *caller) error {
		if address == 0 {
			return missing("the pointer")
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		if write != 0 {
			if flag != 0 {
				return refuse(ascendcl.ParamInvalid, "the flag is 0, not %#x", flag)
			}
			return s.WriteValue(c.t, uint64(address), uint64(value))
		}
		if flag >= C.uint32_t(driver.Conditions) {
			return refuse(ascendcl.ParamInvalid, "there is no condition %d", flag)
		}
		return s.WaitValue(c.t, uint64(address), uint64(value), driver.Condition(flag))
	})
}
