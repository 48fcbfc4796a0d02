package pybuild

import (
	"encoding/hex"

	"halstream/hal"
	"halstream/hal/driver"
)

// Handles of what other processes can have are handed over as hexadecimal digits.

// onHandle asks the runtime about a handle.
func onHandle[T any](text string, f func(*hal.Runtime, hal.ShareHandle) (T, error)) (T, error) {
	return onRuntime(func(r *hal.Runtime) (none T, err error) {
		var h hal.ShareHandle
		if given, err := hex.DecodeString(text); err != nil || copy(h[:], given) != len(h) || len(given) != len(h) {
			return none, driver.Errorf(driver.InvalidValue, "open", "a handle has %d bytes", len(h))
		}
		return f(r, h)
	})
}

// MemShare waits until nothing that is pending works on the memory at an address, and returns the handle by which
// another process finds it; "" if a handler of a signal has raised meanwhile.
func MemShare(addr uint64) (handle string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		p, err := r.SharePoint(caller(), addr)
		if err != nil || await(p, driver.Forever) == 0 {
			return "", err
		}
		h, err := r.ShareMemory(caller(), addr)
		return hex.EncodeToString(h[:]), err
	})
}

// MemOpen maps memory of another process and returns its address here.
func MemOpen(handle string) (addr uint64, err error) {
	return onHandle(handle, func(r *hal.Runtime, h hal.ShareHandle) (uint64, error) {
		b, err := r.OpenMemory(caller(), h)
		if err != nil {
			return 0, err
		}
		return b.Start, nil
	})
}

// MemClose ends one MemOpen; it returns how many are left.
func MemClose(addr uint64) (left int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		n, err := r.CloseMemory(caller(), addr)
		return int64(n), err
	})
}

// EventShare returns the handle by which another process finds an event; one without a device gets that of ordinal.
func EventShare(id, ordinal int64) (handle string, err error) {
	return onDevice(ordinal, func(d *hal.Device) (string, error) {
		e, err := event(id, "share event with other processes")
		if err != nil {
			return "", err
		}
		if own := e.Device(); own != nil {
			d = own
		}
		h, err := e.Share(caller(), d)
		return hex.EncodeToString(h[:]), err
	})
}

// EventOpen makes an event that stands for one of another process.
func EventOpen(handle string) (id int64, err error) {
	return onHandle(handle, func(r *hal.Runtime, h hal.ShareHandle) (int64, error) {
		e, err := r.OpenEvent(caller(), h)
		if err != nil {
			return 0, err
		}
		return insert(e), nil
	})
}
