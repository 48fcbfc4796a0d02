package hal

import (
	"sync"
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

// NoteRecorded makes known that e was recorded, without a call, on a stream of d that
// had no work, as for [Runtime.NewRecordedEvent].
//
// # Errors: [ErrClosed], [ErrWrongDevice].
//
// Contract: E3, E4.
func (e *Event) NoteRecorded(d *Device) error {
	b, err := e.bind(d)
	if err != nil {
		return err
	}
	b.(driver.StatusEvent).Recorded()
	e.recordedOn.Store(nil)
	e.version.Add(1)
	return nil
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

// scheduleChanges counts the calls that are about to change the schedule.
type scheduleChanges struct {
	mu sync.Mutex
	n  int
}

// beginSchedule makes calls enter the core while the schedule changes.
func (rt *Runtime) beginSchedule() {
	rt.changes.mu.Lock()
	defer rt.changes.mu.Unlock()
	rt.changes.n++
	rt.words.Or(status.Stepped)
}

// endSchedule ends beginSchedule. While another thread changes the schedule the bit
// stays set: its schedule may be in force before it gets here.
func (rt *Runtime) endSchedule() {
	rt.changes.mu.Lock()
	defer rt.changes.mu.Unlock()
	rt.changes.n--
	if rt.changes.n == 0 && !rt.sim.Deterministic() {
		rt.words.And(^uint32(status.Stepped))
	}
}
