package pybuild

import (
	"halstream/bindings/python"
	"halstream/hal"
)

// Positions adds change to the number of users of call sites, and returns the sum.
func Positions(change int64) (wanted int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		wanted := python.AddStacks(change)
		python.FollowSites(r)
		return wanted, nil
	})
}

// PositionText returns the stack of a site, innermost frame first: a list of
// FrameRecord; "" if it is unknown.
func PositionText(site int64) (text string, err error) {
	defer guard(&err)
	return python.SiteText(uint32(site)), nil
}

// PositionLook sets the Python callable that is given the site of a call, on its thread, while the frames of the call
// are as they were in it, for the first few calls of each site; by its address, 0 for none.
func PositionLook(object uint64) (zero int64, err error) {
	defer guard(&err)
	python.LookWith(object)
	return 0, nil
}
