package pybuild

import (
	"sync"

	"halstream/bindings/python"
	"halstream/hal"
)

// StreamBeginCapture makes a stream the origin of a capture. With lines the nodes keep where the
// program made the calls.
func StreamBeginCapture(id, mode int64, lines bool) (zero int64, err error) {
	return beginCapture(id, mode, lines, (*hal.Stream).BeginCapture)
}

// StreamBeginOwnCapture is StreamBeginCapture with lines, also for the default stream of a framework that
// has its own, for which the legacy default stream stands.
func StreamBeginOwnCapture(id, mode int64) (zero int64, err error) {
	return beginCapture(id, mode, true, (*hal.Stream).BeginOwnCapture)
}

func beginCapture(id, mode int64, lines bool, begin func(*hal.Stream, *hal.Thread, hal.CaptureMode) error) (zero int64, err error) {
	return onStream(id, "begin capture", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		if mode < 0 || mode > 255 {
			mode = 255
		}
		if !lines {
			return nothing(begin(s, t, hal.CaptureMode(mode)))
		}
		begun := python.BeginLines(s)
		err := begin(s, t, hal.CaptureMode(mode))
		begun(err)
		return nothing(err)
	})
}

// StreamEndCapture ends a capture and returns the id of its graph.
func StreamEndCapture(id int64) (graph int64, err error) {
	if err := takeLost(id); err != nil {
		return 0, raise(err)
	}
	return onStream(id, "end capture", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		g, err := s.EndCapture(t)
		python.EndLines(s)
		if err != nil {
			return 0, err
		}
		return insert(g), nil
	})
}

// StreamCaptureState returns whether a stream captures, as hal.CaptureState.
func StreamCaptureState(id int64) (state int64, err error) {
	return onStream(id, "query capture", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		state, err := s.IsCapturing(t)
		return int64(state), err
	})
}

// StreamCheckNotCaptured refuses a call of a dialect that cannot be captured, where a stream captures.
func StreamCheckNotCaptured(id int64, op, remedy string) (zero int64, err error) {
	return onStream(id, op, func(t *hal.Thread, s *hal.Stream) (int64, error) {
		return nothing(s.CheckNotCaptured(t, op, remedy))
	})
}

// StreamRecordExternal records an event as an external one.
func StreamRecordExternal(id, eventID int64) (zero int64, err error) {
	return externally(id, eventID, "record", (*hal.Stream).RecordExternal)
}

// StreamWaitExternal makes later work wait for an external event.
func StreamWaitExternal(id, eventID int64) (zero int64, err error) {
	return externally(id, eventID, "wait event", (*hal.Stream).WaitExternal)
}

func externally(id, eventID int64, op string, enqueue func(*hal.Stream, *hal.Thread, *hal.Event) error) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, op)
	if err != nil {
		return 0, err
	}
	e, err := event(eventID, op)
	if err != nil {
		return 0, err
	}
	err = enqueue(s, t, e)
	return enqueued(t, s, err)
}

// CaptureModeExchange sets the calling thread's mode and returns what it was.
func CaptureModeExchange(mode int64) (before int64, err error) {
	defer guard(&err)
	if mode < 0 || mode > 255 {
		mode = 255
	}
	was, err := caller().ExchangeCaptureMode(hal.CaptureMode(mode))
	return int64(was), raise(err)
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
