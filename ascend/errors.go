package ascend

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"halstream/hal/driver"
)

// The library's codes that this package handles.
const (
	codeNotReady     = C.NA_NOT_READY
	codeNotSupported = C.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
	codeAllocation   = C.ACL_ERROR_RT_MEMORY_ALLOCATION
)

// kinds maps the library's codes to portable kinds; other codes are Unknown.
var kinds = map[int]driver.Kind{
	100000:                                     driver.InvalidValue,
	100001:                                     driver.BackendAbsent,
	100039:                                     driver.BackendAbsent,
	200000:                                     driver.OutOfMemory,
	C.ACL_ERROR_RT_PARAM_INVALID:               driver.InvalidValue,
	C.ACL_ERROR_RT_INVALID_DEVICEID:            driver.InvalidDevice,
	C.ACL_ERROR_RT_CONTEXT_NULL:                driver.NoContext,
	C.ACL_ERROR_RT_STREAM_CONTEXT:              driver.WrongContext,
	C.ACL_ERROR_RT_INVALID_HANDLE:              driver.InvalidHandle,
	C.ACL_ERROR_RT_STREAM_CAPTURED:             driver.Capture,
	C.ACL_ERROR_RT_EVENT_CAPTURED:              driver.Capture,
	C.ACL_ERROR_RT_DEVICE_TASK_ABORT:           driver.Aborted,
	C.ACL_ERROR_RT_STREAM_ABORT:                driver.Aborted,
	C.ACL_ERROR_RT_STREAM_NO_CB_REG:            driver.NotSubscribed,
	C.ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED: driver.InvalidValue,
	C.ACL_ERROR_HOST_MEMORY_NOT_REGISTERED:     driver.InvalidValue,
	codeNotSupported:                           driver.NotSupported,
	codeAllocation:                             driver.OutOfMemory,
	C.ACL_ERROR_RT_DEVICE_OOM:                  driver.OutOfMemory,
	C.ACL_ERROR_RT_NO_DEVICE:                   driver.BackendAbsent,
	C.ACL_ERROR_RT_NO_PERMISSION:               driver.InHostFunction,
	C.ACL_ERROR_RT_DRV_INTERNAL_ERROR:          driver.DeviceLost,
	C.ACL_ERROR_RT_LOST_HEARTBEAT:              driver.DeviceLost,
	C.ACL_ERROR_RT_DEVICE_MEM_ERROR:            driver.DeviceLost,
	C.ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR:     driver.DeviceLost,
	C.ACL_ERROR_RT_AICORE_EXCEPTION:            driver.DeviceLost,
	C.ACL_ERROR_RT_AICORE_TRAP_EXCEPTION:       driver.DeviceLost,
	C.ACL_ERROR_RT_VECTOR_CORE_EXCEPTION:       driver.DeviceLost,
	C.ACL_ERROR_RT_LINK_ERROR:                  driver.DeviceLost,
}

// advice says what to do about a code whose name does not say it.
var advice = map[int]string{
	100039:                            "this is the stub that programs are linked with; the library of the toolkit's runtime is meant",
	codeAllocation:                    "free memory, or what other processes hold on the device",
	C.ACL_ERROR_RT_NO_DEVICE:          "no device is visible; look at ASCEND_RT_VISIBLE_DEVICES and npu-smi",
	C.ACL_ERROR_RT_NO_STREAM_RESOURCE: "close streams: those of all processes and captures on the device share one number",
	C.ACL_ERROR_RT_NO_EVENT_RESOURCE:  "close events, or wait for the work behind them",
	C.ACL_ERROR_RT_DRV_INTERNAL_ERROR: "look at the driver's log and npu-smi, and restart the process",
	C.ACL_ERROR_RT_INVALID_HANDLE:     "another library may have reset the device",
}

// lasting reports whether every later call on a device fails after a code.
func lasting(code int) bool { return kinds[code] == driver.DeviceLost }

// code takes a status whose text is not needed and returns its code.
func code(s C.na_status) int {
	C.free(unsafe.Pointer(s.text))
	return int(s.code)
}

// check converts the result of a call to an error, nil if it succeeded; doing says
// what the call was for.
func check(s C.na_status, doing string) *driver.Error {
	if s.code == 0 {
		return nil
	}
	number := int(s.code)
	function := C.GoString(C.na_symbol(C.int(s.function)))
	e := driver.Errorf(kinds[number], doing, "%s failed with error %d", function, number)
	e.Code = number
	switch {
	case number == codeNotSupported && C.na_has(C.int(s.function)) == 0:
		e.Text = fmt.Sprintf("the library has no function %s; update CANN", function)
	case s.text != nil:
		e.Text += ": " + strings.TrimSpace(C.GoString(s.text))
	}
	C.free(unsafe.Pointer(s.text))
	if hint := advice[number]; hint != "" {
		e.Text += "; " + hint
	}
	return e
}
