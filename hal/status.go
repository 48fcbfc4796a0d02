package hal

import (
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/status"
)

// What C code of the process may know of streams and events without a call.

// Status returns the words by which C code sees how far s is, nil where there are
// none.
func (s *Stream) Status() *status.Stream { return s.words }

// keepStatus keeps the words of a new stream whose backend has them.
func (s *Stream) keepStatus() {
	if known, ok := s.d.(driver.StatusStream); ok {
		s.words = known.Status()
		if s.ctx != nil || s.opts.BlockHost {
			s.words.Special.Or(status.Bound)
		}
	}
}

// noteClosed marks the words of a stream that is closed.
func (s *Stream) noteClosed() {
	if s.words != nil {
		s.words.Special.Or(status.Closed)
	}
}

// NewRecordedEvent makes an event as NewEvent does that was recorded without a call,
// on a stream of d that had no work: the caller has seen that no bit of
// [Runtime.Status] was set then, and the stream's words.
//
// # Errors: as for NewEvent.
//
// Contract: E1, E3.
func (rt *Runtime) NewRecordedEvent(t *Thread, d *Device, o EventOptions) (*Event, error) {
	e, err := rt.NewEvent(t, d, o)
	if err != nil {
		return nil, err
	}
	e.bound.Load().d.(driver.StatusEvent).Recorded()
	e.version.Add(1)
	return e, nil
}

// Place returns the place that the latest record stands for, by the words of its
// stream; nil where C code cannot tell whether it is done. The caller made the
// record, and no other thread makes one meanwhile.
func (e *Event) Place() (*status.Stream, uint64) {
	if b := e.bound.Load(); b != nil {
		if known, ok := b.d.(driver.StatusEvent); ok {
			return known.Place()
		}
	}
	return nil, 0
}

// Status returns the word that is 0 while C code may answer calls from the words
// of streams, and has bits of package status where it may not: each call is to
// enter the core then.
func (rt *Runtime) Status() *atomic.Uint32 { return rt.words }

// noteSchedule sets the bits that the backend and its schedule give.
func (rt *Runtime) noteSchedule() {
	if rt.sim == nil {
		rt.words.Or(status.Foreign)
	} else if rt.sim.Deterministic() {
		rt.words.Or(status.Stepped)
	} else {
		rt.words.And(^uint32(status.Stepped))
	}
}
