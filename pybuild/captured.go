package pybuild

// #include "calls.h"
// #include "collected.h"
// #include "dispatch.h"
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

// captureList returns the list to which C code adds functions, records and waits of a capture.
func captureList() *hal.CapturedCalls { return (*hal.CapturedCalls)(C.halstream_capture_list()) }

// openList lets C code add functions, records and waits of a stream to the list, where lane is not negative.
func openList(id int64, lane int, fresh bool) {
	if lane >= 0 {
		C.halstream_capture_takes(C.int64_t(id), C.uint32_t(lane), C.int(truth(fresh)))
	}
}

// filled are addresses at which fills of captures have begun, by their places. Python's lock guards it.
var filled [1 << C.HALSTREAM_ADDRESS_BITS]struct {
	address uint64
	capture int64
}

// fillCaptured is a fill on a stream with an id, in a capture with a number. Where the same memory is filled again, C code
// adds more of that to the list: to tell it so takes nearly as long as a fill.
func fillCaptured(t *hal.Thread, s *hal.Stream, id, capture int64, dst uint64, value uint32, size uint8, count uint64) error {
	before := &filled[dst*C.HALSTREAM_ADDRESS_FACTOR>>(64-C.HALSTREAM_ADDRESS_BITS)]
	if before.address != dst || before.capture != capture {
		before.address, before.capture = dst, capture
		return s.Fill(t, dst, value, size, count)
	}
	f, err := s.CaptureFill(t, dst, value, size, count, captureList())
	openList(id, f.Lane, f.Fresh)
	if f.Size != 0 {
		C.halstream_capture_fills(C.uint64_t(dst), C.uint64_t(f.Start), C.uint64_t(f.Size), C.uint32_t(f.Block), C.int(truth(f.FreshBlocks)))
	}
	return err
}

// recordCaptured records an event that only C code knows in the capture of the stream with an id, and tells it
// which place that is. It reports false with nothing done if the stream does not capture, or an event is needed.
func recordCaptured(t *hal.Thread, s *hal.Stream, id int64) (bool, error) {
	if s.CaptureID() == 0 {
		return false, nil // as nearly always
	}
	list, number := captureList(), C.halstream_capture_number()
	lane, fresh, captured, err := s.CaptureRecord(t, uint64(number), list)
	openList(id, lane, fresh)
	if captured && err == nil {
		C.halstream_recorded = C.halstream_place{nil, number, C.uint64_t(list.Capture)}
	}
	return captured, err
}

// EventCaptured makes an event whose latest record C code has made, with a number in a capture.
func EventCaptured(ordinal, capture, number, flags int64) (id int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	e, err := rt.NewCapturedEvent(caller(), d, eventOptions(flags), uint64(capture), uint64(number))
	if err != nil {
		return 0, raise(err)
	}
	return insert(e), nil
}

// StreamWaitCaptured is StreamWaitEvent for an event as EventCaptured makes one.
func StreamWaitCaptured(id, capture, number int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "wait event")
	if err != nil {
		return 0, err
	}
	lane, fresh, captured, err := s.CaptureWait(t, uint64(capture), uint64(number), captureList())
	openList(id, lane, fresh)
	if !captured && err == nil {
		err = s.WaitCaptured(t, uint64(capture), uint64(number))
	}
	return enqueued(t, s, err)
}
