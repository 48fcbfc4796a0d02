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

// NewPlacedEvent makes an event as NewEvent does that was recorded without a call, at
// a place of the timeline whose words w are. The caller has seen that no bit of
// [Runtime.Status] was set then, and that the legacy order could not
// move the place. s is the stream, nil if it was closed since.
//
// # Errors: as for NewEvent.
//
// Contract: E3, E4.
func (rt *Runtime) NewPlacedEvent(t *Thread, d *Device, o EventOptions, s *Stream, w *status.Stream, place uint64,
) (*Event, error) {
	on := d.withStatus(s, w)
	if on == nil || w.Reached(place) {
		return rt.NewRecordedEvent(t, d, o)
	}
	e, err := rt.NewEvent(t, d, o)
	if err != nil {
		return nil, err
	}
	e.bound.Load().d.(driver.StatusEvent).RecordedAt(on, place)
	e.recordedOn.Store(s)
	e.version.Add(1)
	return e, nil
}

// withStatus returns the backend's stream with these words: that of s, or if s is nil
// one that was closed with work pending. If it is nil, all of its work is done.
func (d *Device) withStatus(s *Stream, w *status.Stream) driver.Stream {
	if s != nil && s.words == w {
		return s.d
	}
	if known, ok := d.d.(driver.StatusDevice); ok {
		return known.WithStatus(w)
	}
	return nil // of a backend that is in use since then
}

// WaitPlace is Wait for an event that was recorded as NewPlacedEvent says, on a stream
// o of device d, nil if it was closed since.
//
// # Errors: as for Wait.
//
// Contract: E1, E3.
func (s *Stream) WaitPlace(t *Thread, d *Device, o *Stream, w *status.Stream, place uint64) error {
	if err := s.checkEnqueue(t, "wait event"); err != nil {
		return err
	}
	if s.dev.rt.words.Load() != 0 { // since the caller looked
		e, err := s.dev.rt.NewPlacedEvent(t, d, EventOptions{}, o, w, place)
		if err != nil {
			return err
		}
		err = s.Wait(t, e)
		_ = e.Close(t)
		return err
	}
	on := d.withStatus(o, w)
	if on == nil {
		return nil
	}
	return s.settle(t, 0, s.d.(driver.StatusStream).WaitPlace(on, place))
}

// Place returns the place that the latest record stands for, by the words of its
// stream; nil where C code cannot tell whether it is done. The caller made the
// record, and no other thread makes one meanwhile.
func (e *Event) Place() (*status.Stream, uint64) {
	if b := e.bound.Load(); b != nil && e.captured.Load() == nil && !e.byGraphs.Load() {
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
