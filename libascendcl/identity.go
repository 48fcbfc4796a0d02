package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"crypto/sha256"
	"fmt"

	"halstream/hal"
)

//export hsAclNoPackage
func hsAclNoPackage(me C.uint32_t, name *C.char) C.int {
	return call(me, func(*caller) error {
		return refuse(libraryError, "there is no package %q here, only \"runtime\"", C.GoString(name))
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
			return refuse(paramInvalid, "there is no feature %d", feature)
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
		return refuse(featureNotSupported, "devices are on no PCI bus here")
	})
}

//export hsAclGetResInCurrentThread
func hsAclGetResInCurrentThread(me C.uint32_t, kind C.int32_t, value *C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		if value == nil {
			return missing("the value")
		}
		if kind != C.ACL_RT_DEV_RES_CUBE_CORE && kind != C.ACL_RT_DEV_RES_VECTOR_CORE {
			return refuse(paramInvalid, "there is no resource %d", kind)
		}
		_, err := c.t.Context()
		if err == nil {
			*value = 0 // only an Ascend chip has any
		}
		return err
	})
}

//export hsAclUnsupported
func hsAclUnsupported(me C.uint32_t) C.int {
	return call(me, func(*caller) error {
		return refuse(featureNotSupported, "this needs a chip, another process or a model, which the look-alike does not have")
	})
}

// hsAclExternal refuses a record or a wait for captures on a stream.
//
//export hsAclExternal
func hsAclExternal(me C.uint32_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		state, err := s.IsCapturing(c.t)
		if err == nil && state == hal.NotCapturing {
			err = refuse(notCaptured, "the stream does not capture; the flag is for captures")
		}
		if err == nil {
			err = refuse(featureNotSupported, "captures have no external events here")
		}
		return err
	})
}
