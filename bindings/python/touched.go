package python

// #include "caller.h"
// #include "touched.h"
import "C"

import "halstream/hal"

// FollowTouches lets the main thread report what it touches while pages are watched at the line of the access: otherwise
// the next call of the runtime does.
func FollowTouches(on bool) {
	if on {
		hal.TellTouches(C.halstream_touched)
	} else {
		hal.TellTouches(nil)
	}
}

// halstreamTouched is called by C code on a thread of Python's that has touched memory just now, between two instructions.
//
//export halstreamTouched
func halstreamTouched() {
	if r := Current(); r != nil {
		r.ReportTouchedHere(Caller())
	}
}
