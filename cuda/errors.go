package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"

	"halstream/hal/driver"
)

// The driver's codes that this package handles.
const (
	codeOutOfMemory   = C.HS_OUT_OF_MEMORY
	codeDeinitialized = C.HS_DEINITIALIZED
	codeNoDevice      = C.HS_NO_DEVICE
	codeNotReady      = C.HS_NOT_READY
	codePeerEnabled   = C.HS_PEER_ACCESS_ALREADY_ENABLED
	codeNotSupported  = C.HS_NOT_SUPPORTED
)

// kinds maps the driver's codes to portable kinds; other codes are Unknown.
var kinds = map[int]driver.Kind{
	C.HS_INVALID_VALUE:                  driver.InvalidValue,
	codeOutOfMemory:                     driver.OutOfMemory,
	C.HS_NOT_INITIALIZED:                driver.BackendAbsent,
	codeDeinitialized:                   driver.Closed,
	C.HS_STUB_LIBRARY:                   driver.BackendAbsent,
	C.HS_DEVICE_UNAVAILABLE:             driver.BackendAbsent,
	codeNoDevice:                        driver.BackendAbsent,
	C.HS_INVALID_DEVICE:                 driver.InvalidDevice,
	C.HS_INVALID_IMAGE:                  driver.InvalidValue,
	C.HS_INVALID_CONTEXT:                driver.InvalidHandle,
	C.HS_NO_BINARY_FOR_GPU:              driver.InvalidValue,
	C.HS_PEER_ACCESS_UNSUPPORTED:        driver.NotSupported,
	C.HS_INVALID_PTX:                    driver.InvalidValue,
	C.HS_JIT_COMPILER_NOT_FOUND:         driver.NotSupported,
	C.HS_UNSUPPORTED_PTX_VERSION:        driver.InvalidValue,
	C.HS_INVALID_HANDLE:                 driver.InvalidHandle,
	C.HS_ILLEGAL_STATE:                  driver.Capture,
	C.HS_NOT_FOUND:                      driver.InvalidValue,
	codeNotReady:                        driver.NotReady,
	C.HS_LAUNCH_OUT_OF_RESOURCES:        driver.InvalidValue,
	C.HS_CONTEXT_IS_DESTROYED:           driver.InvalidHandle,
	C.HS_HOST_MEMORY_ALREADY_REGISTERED: driver.InvalidValue,
	C.HS_HOST_MEMORY_NOT_REGISTERED:     driver.InvalidValue,
	C.HS_COOPERATIVE_LAUNCH_TOO_LARGE:   driver.InvalidValue,
	C.HS_NOT_PERMITTED:                  driver.InHostFunction,
	codeNotSupported:                    driver.NotSupported,
	C.HS_SYSTEM_NOT_READY:               driver.BackendAbsent,
	C.HS_SYSTEM_DRIVER_MISMATCH:         driver.BackendAbsent,
	C.HS_COMPAT_NOT_SUPPORTED_ON_DEVICE: driver.BackendAbsent,
	C.HS_CAPTURE_UNSUPPORTED:            driver.Capture,
	C.HS_CAPTURE_INVALIDATED:            driver.Capture,
	C.HS_CAPTURE_MERGE:                  driver.Capture,
	C.HS_CAPTURE_UNMATCHED:              driver.Capture,
	C.HS_CAPTURE_UNJOINED:               driver.Capture,
	C.HS_CAPTURE_ISOLATION:              driver.Capture,
	C.HS_CAPTURE_IMPLICIT:               driver.Capture,
	C.HS_CAPTURED_EVENT:                 driver.Capture,
	C.HS_CAPTURE_WRONG_THREAD:           driver.Capture,
}

// lasting reports whether every later call on a device fails after a code.
func lasting(code int) bool { return C.hs_lasting(C.int32_t(code)) != 0 }

// advice says what to do about a code whose name does not say it.
var advice = map[int]string{
	codeOutOfMemory:                     "free memory, or what other processes hold on the device",
	codeDeinitialized:                   "the driver shuts down; end the work before the process ends",
	C.HS_NOT_INITIALIZED:                "the process may have been forked after the driver was used; use spawn",
	C.HS_STUB_LIBRARY:                   "this is the toolkit's stub; the real driver comes with the GPU's driver package",
	C.HS_DEVICE_UNAVAILABLE:             "another process has the device for itself",
	codeNoDevice:                        "no GPU is visible; look at CUDA_VISIBLE_DEVICES and nvidia-smi",
	C.HS_INVALID_CONTEXT:                "the driver's context is gone; another library may have reset the device",
	C.HS_NO_BINARY_FOR_GPU:              "the program is for another GPU architecture; give PTX or source, or build it for this one",
	C.HS_UNSUPPORTED_PTX_VERSION:        "the PTX is newer than the driver; update the driver or compile for an older PTX version",
	C.HS_SYSTEM_NOT_READY:               "the machine still starts, or its fabric manager does not run",
	C.HS_SYSTEM_DRIVER_MISMATCH:         "the driver was updated under a running kernel module; load the new one, or restart the machine",
	C.HS_COMPAT_NOT_SUPPORTED_ON_DEVICE: "take the forward compatibility package out of the library path: the device cannot use it",
	C.HS_INVALID_HANDLE:                 "if it is another library's stream, its owner may have destroyed it",
	C.HS_UNKNOWN:                        "the driver's state is broken; see the system's log, and restart the process",
}

// check converts the result of a call to an error, nil if it succeeded; doing says
// what the call was for.
func check(s C.hs_status, doing string) *driver.Error {
	if s == 0 {
		return nil
	}
	return failed(s, doing)
}

func failed(s C.hs_status, doing string) *driver.Error {
	code := int(C.hs_code(s))
	function := C.GoString(C.hs_symbol(C.int(s >> 32)))
	if code == C.HS_CAPTURE_UNSUPPORTED && s>>32 == C.HS_cuStreamIsCapturing {
		return capturedElsewhere(doing)
	}
	if code == C.HS_INVALID_VALUE && concernsEvent(int(s>>32)) {
		return recordedInCapture(function, doing)
	}
	name, text := codeText(code)
	kind := kinds[code]
	if lasting(code) {
		kind = driver.DeviceLost
	}
	if code == codeNotSupported && C.hs_has(C.int(s>>32)) == 0 {
		e := driver.Errorf(kind, doing, "the driver has no function %s; update the GPU's driver", function)
		e.Code = code
		return e
	}
	e := driver.Errorf(kind, doing, "%s failed with %s (%d): %s", function, name, code, text)
	if hint := advice[code]; hint != "" {
		e.Text += "; " + hint
	}
	e.Code = code
	return e
}

// capturedElsewhere is the error of an operation that needs the host, on a stream that another library captures: its
// graph would run the operation again, and the host only knows of one run.
func capturedElsewhere(doing string) *driver.Error {
	e := driver.Errorf(driver.Capture, doing, "another library captures the stream, and its graph cannot have what needs the host; "+
		"end that capture first")
	e.Code = C.HS_CAPTURE_UNSUPPORTED
	return e
}

// concernsEvent reports whether a function of the driver takes no value that could be invalid but the record of an event.
func concernsEvent(function int) bool {
	return function == C.HS_cuEventQuery || function == C.HS_cuEventElapsedTime || function == C.HS_cuStreamWaitEvent
}

// recordedInCapture is the error of a call that concerns an event whose latest record another library has captured, when
// that capture has ended: a driver answers as if the event itself were wrong.
func recordedInCapture(function, doing string) *driver.Error {
	name, text := codeText(C.HS_INVALID_VALUE)
	e := driver.Errorf(driver.Capture, doing, "the latest record of the event is in a capture of another library that has ended; "+
		"record the event again (%s failed with %s (%d): %s)", function, name, int(C.HS_INVALID_VALUE), text)
	e.Code = C.HS_CAPTURED_EVENT
	return e
}

// codeText returns the driver's name and description of a code.
func codeText(code int) (name, text string) {
	var n, t *C.char
	C.hs_error_text(C.int32_t(code), &n, &t)
	name, text = fmt.Sprintf("error %d", code), "the driver does not describe it"
	if n != nil {
		name = C.GoString(n)
	}
	if t != nil {
		text = C.GoString(t)
	}
	return name, text
}
