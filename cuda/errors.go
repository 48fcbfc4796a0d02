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
	codeOutOfMemory   = 2
	codeDeinitialized = 4
	codeNoDevice      = 100
	codeNotReady      = 600
	codePeerEnabled   = 704
	codeNotSupported  = 801
)

// kinds maps the driver's codes to portable kinds; other codes are Unknown.
var kinds = map[int]driver.Kind{
	1: driver.InvalidValue, codeOutOfMemory: driver.OutOfMemory,
	3: driver.BackendAbsent, codeDeinitialized: driver.Closed,
	34: driver.BackendAbsent, 46: driver.BackendAbsent, codeNoDevice: driver.BackendAbsent,
	101: driver.InvalidDevice, 200: driver.InvalidValue, 201: driver.InvalidHandle,
	209: driver.InvalidValue, 217: driver.NotSupported, 218: driver.InvalidValue,
	221: driver.NotSupported, 222: driver.InvalidValue, 400: driver.InvalidHandle,
	401: driver.Capture, 500: driver.InvalidValue, codeNotReady: driver.NotReady,
	701: driver.InvalidValue, 709: driver.InvalidHandle, 712: driver.InvalidValue,
	713: driver.InvalidValue, 720: driver.InvalidValue, 800: driver.InHostFunction,
	codeNotSupported: driver.NotSupported, 802: driver.BackendAbsent, 803: driver.BackendAbsent,
	804: driver.BackendAbsent, 900: driver.Capture, 901: driver.Capture, 902: driver.Capture,
	903: driver.Capture, 904: driver.Capture, 905: driver.Capture, 906: driver.Capture,
	907: driver.Capture, 908: driver.Capture,
}

// lasting reports whether every later call on a device fails after a code.
func lasting(code int) bool { return C.hs_lasting(C.int32_t(code)) != 0 }

// advice says what to do about a code whose name does not say it.
var advice = map[int]string{
	codeOutOfMemory:   "free memory, or what other processes hold on the device",
	codeDeinitialized: "the driver shuts down; end the work before the process ends",
	3:                 "the process may have been forked after the driver was used; use spawn",
	34:                "this is the toolkit's stub; the real driver comes with the GPU's driver package",
	46:                "another process has the device for itself",
	codeNoDevice:      "no GPU is visible; look at CUDA_VISIBLE_DEVICES and nvidia-smi",
	201:               "the driver's context is gone; another library may have reset the device",
	209:               "the program is for another GPU architecture; give PTX or source, or build it for this one",
	222:               "the PTX is newer than the driver; update the driver or compile for an older PTX version",
	802:               "the machine still starts, or its fabric manager does not run",
	803:               "the driver was updated under a running kernel module; load the new one, or restart the machine",
	804:               "take the forward compatibility package out of the library path: the device cannot use it",
	400:               "if it is another library's stream, its owner may have destroyed it",
	999:               "the driver's state is broken; see the system's log, and restart the process",
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

// check is like the function check, and makes the device lost if the error is lasting.
func (d *Device) check(s C.hs_status, doing string) error {
	if s == 0 {
		return nil
	}
	e := failed(s, doing)
	if lasting(e.Code) {
		return d.lose(e)
	}
	return e
}

// Lost implements driver.VendorDevice.
func (d *Device) Lost() *driver.Error {
	if d.lost.Load() == nil {
		return nil
	}
	return d.lostError("synchronize")
}

// lostError returns the error of a call on a lost device.
func (d *Device) lostError(doing string) *driver.Error {
	e := *d.lost.Load()
	e.Text = fmt.Sprintf("the device is lost since %s: %s; restart the process to use it again", e.Op, e.Text)
	e.Op = doing
	return &e
}

// lose makes a device lost, unless it is already, and returns an error with the first
// cause. Functions that were not handed over are dropped: the driver runs no pending
// work.
func (d *Device) lose(cause *driver.Error) error {
	if d.lost.CompareAndSwap(nil, cause) {
		d.drv.poller.dropHeld(d)
	}
	return d.lostError(cause.Op)
}
