package pybuild

import "halstream/hal"

// DeviceFact returns a fact about a device as text: see driver.VendorDevice.
func DeviceFact(ordinal int64, name string) (text string, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	text, err = d.Fact(caller(), name)
	return text, raise(err)
}

func peers(from, to int64) (a, b *hal.Device, err error) {
	if a, err = device(from); err == nil {
		b, err = device(to)
	}
	return a, b, err
}

// PeerCanAccess returns 1 if a device can use the memory of another where it lies.
func PeerCanAccess(one, other int64) (can int64, err error) {
	defer guard(&err)
	a, b, err := peers(one, other)
	if err != nil {
		return 0, err
	}
	ok, err := a.CanAccess(caller(), b)
	return truth(ok), raise(err)
}

// PeerEnable lets a device use the memory of another; again does nothing.
func PeerEnable(one, other int64) (zero int64, err error) {
	defer guard(&err)
	a, b, err := peers(one, other)
	if err != nil {
		return 0, err
	}
	return 0, raise(a.EnableAccess(caller(), b))
}
