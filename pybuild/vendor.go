package pybuild

import "halstream/hal"

// DeviceFact returns a fact about a device as text: see driver.FactDevice.
func DeviceFact(ordinal int64, name string) (text string, err error) {
	return onDevice(ordinal, func(d *hal.Device) (string, error) { return d.Fact(caller(), name) })
}

// onPeers asks two devices.
func onPeers(one, other int64, f func(a, b *hal.Device) (int64, error)) (int64, error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		a, err := r.Device(int(one))
		if err != nil {
			return 0, err
		}
		b, err := r.Device(int(other))
		if err != nil {
			return 0, err
		}
		return f(a, b)
	})
}

// PeerCanAccess returns 1 if a device can use the memory of another where it lies.
func PeerCanAccess(one, other int64) (can int64, err error) {
	return onPeers(one, other, func(a, b *hal.Device) (int64, error) {
		ok, err := a.CanAccess(caller(), b)
		return truth(ok), err
	})
}

// PeerEnable lets a device use the memory of another; again does nothing.
func PeerEnable(one, other int64) (zero int64, err error) {
	return onPeers(one, other, func(a, b *hal.Device) (int64, error) { return nothing(a.EnableAccess(caller(), b)) })
}
