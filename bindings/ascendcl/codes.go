// Package ascendcl has the codes, the flags and the rules of AscendCL that its two forms share: libascendcl for programs
// in C, and pyACL in Python. The numbers are those of the headers that programs in C are compiled with; bindings/constants
// writes them, and what follows from them here, as a Python module.
package ascendcl

/*
#cgo CFLAGS: -I${SRCDIR}/../../libascendcl/package/include
#include "acl/acl_rt_types.h"
#include "acl/error_codes/rt_error_codes.h"
*/
import "C"

import (
	"halstream/hal"
	"halstream/hal/driver"
)

// Codes of the upper layer. Its header has no macros for them, so that C needs them to be variables.
const (
	Success          = 0
	InvalidParam     = 100000
	RepeatInitialize = 100002
	InvalidFile      = 100003
	ParseFile        = 100006
	RepeatFinalize   = 100037
	LibraryError     = 500000
)

// Codes of the runtime layer.
const (
	ParamInvalid          = C.ACL_ERROR_RT_PARAM_INVALID
	ContextNull           = C.ACL_ERROR_RT_CONTEXT_NULL
	TimestampInvalid      = C.ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID
	FileOpen              = C.ACL_ERROR_RT_FILE_OPEN
	StreamSubscribe       = C.ACL_ERROR_RT_STREAM_SUBSCRIBE
	ThreadSubscribe       = C.ACL_ERROR_RT_THREAD_SUBSCRIBE
	NoCallback            = C.ACL_ERROR_RT_STREAM_NO_CB_REG
	InvalidHandle         = C.ACL_ERROR_RT_INVALID_HANDLE
	DeviceTaskAbort       = C.ACL_ERROR_RT_DEVICE_TASK_ABORT
	ModelCaptured         = C.ACL_ERROR_RT_MODEL_CAPTURED
	Captured              = C.ACL_ERROR_RT_STREAM_CAPTURED
	NotCaptured           = C.ACL_ERROR_RT_STREAM_NOT_CAPTURED
	CaptureNotSupported   = C.ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT
	FeatureNotSupported   = C.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
	MemoryAllocation      = C.ACL_ERROR_RT_MEMORY_ALLOCATION
	MemoryFree            = C.ACL_ERROR_RT_MEMORY_FREE
	NoStreamResource      = C.ACL_ERROR_RT_NO_STREAM_RESOURCE
	NoNotifyResource      = C.ACL_ERROR_RT_NO_NOTIFY_RESOURCE
	InternalError         = C.ACL_ERROR_RT_INTERNAL_ERROR
	ContextReleaseError   = C.ACL_ERROR_RT_CONTEXT_RELEASE_ERROR
	ReportTimeout         = C.ACL_ERROR_RT_REPORT_TIMEOUT
	AbortTimeout          = C.ACL_ERROR_RT_WAIT_TIMEOUT
	StreamSyncTimeout     = C.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
	EventSyncTimeout      = C.ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
	HostMemoryRegistered  = C.ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED
	HostMemoryNotRegister = C.ACL_ERROR_HOST_MEMORY_NOT_REGISTERED
)

// ByKind is the code of each kind of the core's errors, where a function does not say otherwise.
var ByKind = map[driver.Kind]int{
	driver.Unknown:        InternalError,
	driver.NotReady:       TimestampInvalid,
	driver.InvalidHandle:  InvalidHandle,
	driver.Closed:         InvalidHandle,
	driver.InvalidValue:   ParamInvalid,
	driver.InvalidDevice:  C.ACL_ERROR_RT_INVALID_DEVICEID,
	driver.WrongDevice:    ParamInvalid,
	driver.WrongContext:   C.ACL_ERROR_RT_STREAM_CONTEXT,
	driver.NoContext:      ContextNull,
	driver.TimingDisabled: TimestampInvalid,
	driver.Unrecorded:     InternalError,
	driver.Capture:        Captured,
	driver.NotSupported:   FeatureNotSupported,
	driver.NotSubscribed:  NoCallback,
	driver.OutOfMemory:    MemoryAllocation,
	driver.DeviceLost:     C.ACL_ERROR_RT_DRV_INTERNAL_ERROR,
	driver.BackendAbsent:  C.ACL_ERROR_RT_NO_DEVICE,
	driver.HostFunction:   C.ACL_ERROR_RT_AICPU_EXCEPTION,
	// AscendCL leaves a call from inside a function on a stream undefined.
	driver.InHostFunction: C.ACL_ERROR_RT_NO_PERMISSION,
	driver.Forked:         C.ACL_ERROR_RT_DEV_SETUP_ERROR,
	// A time limit of the stream's own, not of the call that reports it.
	driver.Timeout: C.ACL_ERROR_RT_TASK_TIMEOUT,
	driver.Aborted: C.ACL_ERROR_RT_STREAM_ABORT,
}

// ByRule is the code of each rule of captures, which the core names by CUDA's numbers.
var ByRule = map[int]int{
	401: Captured,
	900: Captured,
	901: C.ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
	902: C.ACL_ERROR_STREAM_CAPTURE_CONFLICT,        // two captures would be merged
	903: C.ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,    // it began on another stream
	904: C.ACL_ERROR_RT_STREAM_UNJOINED,             // a stream was not joined
	905: C.ACL_ERROR_RT_CAPTURE_DEPENDENCY,          // it would depend on work outside
	906: C.ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,     // the default stream cannot capture
	907: C.ACL_ERROR_RT_EVENT_CAPTURED,              // the event was recorded in a capture
	908: C.ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, // another thread began it
}

// CodeOf returns the code of an error of the core, where a function does not say otherwise.
func CodeOf(e *hal.Error) int {
	if e.Kind == driver.Capture {
		if code, known := ByRule[e.Code]; known {
			return code
		}
	}
	return ByKind[e.Kind]
}

// Line returns what the text of a failure with a code begins with.
func Line(code int) string {
	switch code / 100000 {
	case 1:
		return "EE1001"
	case 2:
		return "EE2002"
	}
	return "EE9999"
}
