package python

// #include "sites.h"
// #include <stdlib.h>
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
)

// Where the program makes its calls: who asks for it, and what a site stands for. sites.c finds the stacks of Python's
// threads.

// wanted counts who asks where the program makes its calls; while nobody does, sites cost nothing.
var wanted struct {
	sync.Mutex             // calls of halstream.h end captures without Python's lock
	stacks     int64       // users of whole stacks
	lines      int32       // captures: each wants the program's line, but no more of the stack
	every      atomic.Bool // stacks is not 0
}

// AddStacks adds change to the number of users of whole stacks, and returns the sum.
func AddStacks(change int64) int64 {
	wanted.Lock()
	defer wanted.Unlock()
	wanted.stacks = max(0, wanted.stacks+change)
	wanted.every.Store(wanted.stacks > 0)
	return wanted.stacks
}

// WantsStacks reports whether somebody asks for whole stacks.
func WantsStacks() bool { return wanted.every.Load() }

// FollowSites lets calls of a runtime note what is asked for.
func FollowSites(r *hal.Runtime) { AddLines(r, 0) }

// AddLines adds change to the number of captures that ask for lines.
func AddLines(r *hal.Runtime, change int32) {
	wanted.Lock()
	defer wanted.Unlock()
	wanted.lines += change
	asked := int32(0)
	switch {
	case wanted.stacks > 0:
		BlockedAt.Follow(r)
		r.SetSites(site)
	case wanted.lines > 0:
		asked = wanted.lines
		BlockedAt.Follow(nil)
		r.SetSites(line)
	default:
		BlockedAt.Follow(nil)
		r.SetSites(nil)
	}
	atomic.StoreInt32((*int32)(unsafe.Pointer(&C.halstream_lines)), asked)
	atomic.StoreInt32((*int32)(unsafe.Pointer(&C.halstream_stacks)), int32(min(1, wanted.stacks)))
}

// site returns where the calling thread's program is.
func site() uint32 { return uint32(C.halstream_site()) }

// line returns where the calling thread's program is, as far as captures want to know.
func line() uint32 { return uint32(C.halstream_line()) }

// ProgramLine returns the innermost line of the program that the calling thread is at. Python's lock is held.
func ProgramLine() uint32 { return uint32(C.halstream_program_line()) }

// SiteText returns the stack of a site, innermost frame first: a list of records.Frame in JSON; "" if it is unknown.
// Python's lock is held.
func SiteText(site uint32) string {
	if site&C.SITE_GIVEN != 0 {
		return givenText(site)
	}
	c := C.halstream_site_text(C.uint32_t(site))
	if c == nil {
		return ""
	}
	defer C.free(unsafe.Pointer(c))
	return C.GoString(c)
}

// LookWith sets Python's function that is given the sites of calls, by its address; 0 for none. Python's lock is held.
func LookWith(object uint64) {
	C.halstream_look_with(*(*unsafe.Pointer)(unsafe.Pointer(&object)))
}

// lined are the streams on which captures began that ask for lines, with the captures.
var lined struct {
	sync.Mutex
	captures map[*hal.Stream]uint64
}

// BeginLines makes calls note their lines for a capture that is about to begin. The function that it
// returns is to be called when that has failed, or succeeded.
func BeginLines(s *hal.Stream) (begun func(error)) {
	AddLines(s.Device().Runtime(), 1)
	return func(err error) {
		if err != nil {
			AddLines(s.Device().Runtime(), -1)
			return
		}
		lined.Lock()
		defer lined.Unlock()
		if lined.captures == nil {
			lined.captures = map[*hal.Stream]uint64{}
		}
		lined.captures[s] = s.CaptureID()
	}
}

// EndLines ends what BeginLines has begun, if the capture that began on s has ended.
func EndLines(s *hal.Stream) {
	lined.Lock()
	id, ok := lined.captures[s]
	ended := ok && s.CaptureID() != id
	if ended {
		delete(lined.captures, s)
	}
	lined.Unlock()
	if ended {
		AddLines(s.Device().Runtime(), -1)
	}
}
