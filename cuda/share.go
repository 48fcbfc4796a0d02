package cuda

/*
#include "calls.h"
*/
import "C"

import "halstream/hal/driver"

// An event whose handle other libraries have is two events of the driver. The shared one always
// stands for the latest record; threads of this runtime that wait have a mark of each record, as
// they do for every event, which a later record does not change.

// Handle implements driver.VendorEvent. No call of the driver is needed for an event that was recorded.
func (e *Event) Handle() (uint64, error) {
	const doing = "handle"
	if err := e.dev.usable(doing); err != nil {
		return 0, err
	}
	if m := e.shared.Load(); m != nil {
		return uint64(m.event), nil
	}
	fresh, err := e.dev.newMark(flagsOf(e.opts).bits(), doing)
	if err != nil {
		return 0, err
	}
	m := e.beginSharing(fresh)
	if m != fresh {
		fresh.release()
	}
	return uint64(m.event), nil
}

// beginSharing makes the mark of the latest record the shared one, fresh if there is none, and
// returns it.
func (e *Event) beginSharing(fresh *mark) *mark {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	if m := e.shared.Load(); m != nil {
		return m
	}
	for {
		m := e.latest()
		if m == nil {
			m = fresh
		}
		m.shared.Store(true)
		e.shared.Store(m)
		if now := e.cur.Load(); now == m || now == nil {
			return m
		}
		// It was recorded meanwhile: that record may have missed the shared mark.
		e.shared.Store(nil)
		if m != fresh {
			m.release()
		}
	}
}

// recordShared records the shared mark, too, if there is one.
func (e *Event) recordShared(s *Stream) error {
	m := e.shared.Load()
	if m == nil || m == e.cur.Load() || !m.hold() {
		return nil
	}
	defer m.release()
	e.records.Add(1)
	return e.dev.check(C.hs_record(e.dev.ctx(), m.event, s.h), "record")
}

// stands returns the mark that stands for the latest record of any library, with a reference for the
// caller; nil if there is none.
func (e *Event) stands() *mark {
	if m := e.shared.Load(); m != nil && m.hold() {
		return m
	}
	return e.latest()
}

// sharedPoint is the point of the latest record of a shared event: that of this runtime, and one
// of another library behind it as far as no later one of this runtime has replaced it.
type sharedPoint struct {
	event   *Event
	records uint64
	own     driver.Point
	mark    *point
}

// sharedPoint takes over a reference to the shared mark.
func (e *Event) sharedPoint(m *mark) driver.Point {
	p := &sharedPoint{event: e, records: e.records.Load(), mark: &point{mark: m, spin: e.dev.spin(m.flags)}}
	p.own = e.pointOfOwn()
	return p
}

// sharedSlice is for how many nanoseconds a wait for the shared mark does not notice that another
// record has replaced the one that it is for.
const sharedSlice = 5_000_000

// Wait implements driver.Point.
func (p *sharedPoint) Wait(limit int64) bool {
	clock := stopwatch()
	if !p.own.Wait(limit) {
		return false
	}
	for {
		if p.event.records.Load() != p.records {
			p.drop()
			return true
		}
		slice, last := int64(sharedSlice), false
		if limit >= 0 {
			left := max(0, limit-clock())
			slice, last = min(slice, left), left <= slice
		}
		if p.mark.Wait(slice) {
			return true
		}
		if last || C.hs_pause() != 0 {
			return false
		}
	}
}

// drop gives the references up, and reports whether this call did.
func (p *sharedPoint) drop() bool {
	if own, ok := p.own.(*point); ok {
		own.drop()
	}
	return p.mark.drop()
}
