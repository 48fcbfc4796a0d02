package pybuild

// #include "sites.h"
// #include <stdlib.h>
import "C"

import (
	"unsafe"

	"halstream/hal"
)

// positions counts the users of call sites; while there are none, sites cost nothing.
var positions int64

// Positions adds change to the number of users of call sites, and returns the sum.
func Positions(change int64) (wanted int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		if positions += change; positions < 0 {
			positions = 0
		}
		setSites(r)
		return positions, nil
	})
}

func setSites(r *hal.Runtime) {
	if positions > 0 {
		blockedAt.Follow(r)
		r.SetSites(site)
	} else {
		blockedAt.Follow(nil)
		r.SetSites(nil)
	}
}

// PositionText returns the stack of a site, innermost frame first: a list of
// frameRecord, which C writes; "" if it is unknown.
func PositionText(site int64) (text string, err error) {
	defer guard(&err)
	c := C.halstream_site_text(C.uint32_t(site))
	if c == nil {
		return "", nil
	}
	defer C.free(unsafe.Pointer(c))
	return C.GoString(c), nil
}
