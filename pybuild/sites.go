package pybuild

// #include "sites.h"
// #include <stdlib.h>
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal"
)

// positions counts the users of call sites; while there are none, sites cost nothing.
var positions int64

// lines counts the captures: each wants to know where the program makes its calls, but
// no more of the stack.
var lines int32

// addLines adds change to the number of captures that ask for call sites.
func addLines(r *hal.Runtime, change int32) {
	atomic.AddInt32(&lines, change)
	setSites(r)
}

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
	switch {
	case positions > 0:
		blockedAt.Follow(r)
		r.SetSites(site)
	case lines > 0:
		blockedAt.Follow(nil)
		r.SetSites(line)
	default:
		blockedAt.Follow(nil)
		r.SetSites(nil)
	}
	asked := int32(0)
	if positions == 0 {
		asked = lines
	}
	atomic.StoreInt32((*int32)(unsafe.Pointer(&C.halstream_lines)), asked)
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
