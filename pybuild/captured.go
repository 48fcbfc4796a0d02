package pybuild

// #include "collected.h"
// #include <stdlib.h>
import "C"

import (
	"sync"
	"unsafe"

	"halstream/hal"
)

// lined are the streams on which a capture began that notes the lines of the program, with the
// numbers of the captures. Python's lock does not guard it: a thread of halstream.h may end them.
var lined struct {
	mu      sync.Mutex
	streams map[*hal.Stream]uint64
}

// lostCaptures are the errors of captures that ended as their first streams were closed, by the ids of these, until
// the ends of the captures report them. A program may never end them.
var lostCaptures struct {
	mu   sync.Mutex
	errs map[int64]error
}

const mostLost = 64

func keepLost(id int64, s *hal.Stream) {
	err := s.TakeLost()
	if err == nil {
		return
	}
	lostCaptures.mu.Lock()
	defer lostCaptures.mu.Unlock()
	if lostCaptures.errs == nil || len(lostCaptures.errs) == mostLost {
		lostCaptures.errs = map[int64]error{}
	}
	lostCaptures.errs[id] = err
}

func takeLost(id int64) error {
	lostCaptures.mu.Lock()
	defer lostCaptures.mu.Unlock()
	err := lostCaptures.errs[id]
	delete(lostCaptures.errs, id)
	return err
}

// beginLines makes calls note their lines for a capture that is about to begin. The function that it
// returns is to be called when that has failed, or succeeded.
func beginLines(s *hal.Stream) (begun func(error)) {
	addLines(s.Device().Runtime(), 1)
	return func(err error) {
		if err != nil {
			addLines(s.Device().Runtime(), -1)
			return
		}
		lined.mu.Lock()
		defer lined.mu.Unlock()
		if lined.streams == nil {
			lined.streams = map[*hal.Stream]uint64{}
		}
		lined.streams[s] = s.CaptureID()
	}
}

// endLines ends what beginLines has begun, if the capture that began on s has ended.
func endLines(s *hal.Stream) {
	lined.mu.Lock()
	id, ok := lined.streams[s]
	ended := ok && s.CaptureID() != id
	if ended {
		delete(lined.streams, s)
	}
	lined.mu.Unlock()
	if ended {
		addLines(s.Device().Runtime(), -1)
	}
}

// leaveCaptures ends the part in captures of the streams whose owners were collected since the last call.
func leaveCaptures() {
	for n := C.halstream_take_notes(); n != nil; {
		if s, ok := find(int64(n.id)).(*hal.Stream); ok {
			s.LeaveCapture()
			endLines(s)
		}
		next := n.next
		C.free(unsafe.Pointer(n))
		n = next
	}
}
