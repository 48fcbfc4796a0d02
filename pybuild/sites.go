package pybuild

// #include "sites.h"
// #include <stdlib.h>
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
)

// positions counts the users of call sites; while there are none, sites cost nothing.
var positions int64

// lines counts the captures: each wants to know where the program makes its calls, but
// no more of the stack.
var lines int32

// sitesMu guards positions and lines: calls of halstream.h end captures without Python's lock.
var sitesMu sync.Mutex

// addLines adds change to the number of captures that ask for call sites, and lets calls note what is asked for.
func addLines(r *hal.Runtime, change int32) {
	sitesMu.Lock()
	defer sitesMu.Unlock()
	lines += change
	setSites(r)
}

// addPositions adds change to the number of users of call sites, and returns the sum.
func addPositions(change int64) int64 {
	sitesMu.Lock()
	defer sitesMu.Unlock()
	positions = max(0, positions+change)
	return positions
}

// Positions adds change to the number of users of call sites, and returns the sum.
func Positions(change int64) (wanted int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		wanted := addPositions(change)
		addLines(r, 0)
		return wanted, nil
	})
}

// setSites is called with sitesMu held.
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
	if uint32(site)&C.SITE_GIVEN != 0 {
		return givenText(uint32(site)), nil
	}
	c := C.halstream_site_text(C.uint32_t(site))
	if c == nil {
		return "", nil
	}
	defer C.free(unsafe.Pointer(c))
	return C.GoString(c), nil
}
