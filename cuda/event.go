package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// Event is an event of the program. Records use the same mark again, as the driver
// allows; only while something on the host still refers to the latest record does the
// next one take another mark.
type Event struct {
	dev  *Device
	opts driver.EventOptions
	cur  atomic.Pointer[mark]
	// shared is the driver's event that other libraries have the handle of: see share.go.
	shared  atomic.Pointer[mark]
	sharing sync.Mutex
	records atomic.Uint64        // since then
	set     atomic.Pointer[word] // of a settable event, from its first use

	enqueueLock vendor.EnqueueLock

	waitsMu sync.Mutex
	waits   []*point // behind the enqueued waits that may be pending
}

func (o flagsOf) bits() uint8 {
	var f uint8
	if !o.Timing {
		f |= eventDisableTiming
	}
	if o.BlockingSync {
		f |= eventBlockingSync
	}
	return f
}

type flagsOf driver.EventOptions

// latest returns the mark of the latest record with a reference for the caller, nil
// if there is none.
func (e *Event) latest() *mark {
	for {
		m := e.cur.Load()
		if m == nil {
			return nil
		}
		if m.hold() {
			if e.cur.Load() == m {
				return m
			}
			m.release() // it was replaced meanwhile, and may belong to another event
		}
	}
}

// record records e on a stream.
func (e *Event) record(s *Stream) error {
	if err := e.recordOwn(s); err != nil {
		return err
	}
	return e.recordShared(s) // after it: a handle that is asked for meanwhile stands for this record, too
}

func (e *Event) recordOwn(s *Stream) error {
	d := e.dev
	m := e.latest()
	refs := int64(2) // the event's reference and this one
	if m != nil && s.isLatest(m) {
		refs++
	}
	if m != nil && m.refs.Load() == refs {
		defer m.release()
		if err := d.check(C.hs_record(d.ctx(), m.event, s.h), "record"); err != nil {
			return err
		}
		s.noteRecord(m)
		return nil
	}
	if m != nil {
		m.release()
	}
	fresh, err := d.newMark(flagsOf(e.opts).bits(), "record")
	if err != nil {
		return err
	}
	if err := d.check(C.hs_record(d.ctx(), fresh.event, s.h), "record"); err != nil {
		fresh.release()
		return err
	}
	s.noteRecord(fresh)
	if old := e.cur.Swap(fresh); old != nil {
		old.release()
	}
	return nil
}

// Query implements driver.Event.
func (e *Event) Query() (bool, error) {
	if err := e.dev.usable("query event"); err != nil {
		return false, err
	}
	m := e.stands()
	if m == nil {
		return true, nil
	}
	defer m.release()
	return e.dev.answer(C.hs_event_query(e.dev.ctx(), m.event), "query event")
}

// Point implements driver.Event. No wait for a record would end that has become a node of another library's graph.
func (e *Event) Point() driver.Point {
	var refused *driver.Error
	if _, err := e.Query(); errors.As(err, &refused) && refused.Kind == driver.Capture {
		return refusedPoint{cause: refused}
	}
	if m := e.shared.Load(); m != nil && m.hold() {
		return e.sharedPoint(m)
	}
	return e.pointOfOwn()
}

func (e *Event) pointOfOwn() driver.Point {
	m := e.latest()
	if m == nil {
		return reachedPoint{}
	}
	return &point{mark: m, spin: e.dev.spin(m.flags)}
}

// Elapsed implements driver.Event.
func (e *Event) Elapsed(end driver.Event) (int64, error) {
	to := end.(*Event)
	a, b := e.stands(), to.stands()
	if a != nil {
		defer a.release()
	}
	if b != nil {
		defer b.release()
	}
	return e.dev.between(a, b, "elapsed")
}

// Time implements driver.Event: nanoseconds since the device was opened, as far
// as the driver's milliseconds of 24 bits tell.
func (e *Event) Time() (int64, error) {
	m := e.stands()
	if m != nil {
		defer m.release()
	}
	return e.dev.between(e.dev.base(), m, "timestamp")
}

// WaitsPending implements driver.Event.
func (e *Event) WaitsPending() int {
	e.waitsMu.Lock()
	list := e.waits
	e.waits = nil
	e.waitsMu.Unlock()
	var left []*point
	for _, p := range list {
		if !p.Wait(0) {
			left = append(left, p)
		}
	}
	e.waitsMu.Lock()
	e.waits = append(e.waits, left...)
	e.waitsMu.Unlock()
	return len(left)
}

// word returns the number that says whether a settable event is set.
func (e *Event) word(doing string) (*word, error) {
	if w := e.set.Load(); w != nil {
		return w, nil
	}
	w, err := e.dev.newWord(doing)
	if err != nil {
		return nil, err
	}
	if !e.set.CompareAndSwap(nil, w) {
		w.dev.slots.give(w.slot) // no stream uses it yet
	}
	return e.set.Load(), nil
}

// wordPoint is reached when a settable event is set.
type wordPoint struct{ w *word }

// Wait implements driver.Point.
func (p *wordPoint) Wait(limit int64) bool {
	var wakeups C.uint32_t
	watch := C.hs_watch{slot: p.w.slot.p, value: 1}
	for clock := vendor.Stopwatch(); ; {
		left := limit - clock()
		if C.hs_poll(&watch, 1, &wakeups, 0, C.int64_t(max(0, min(left, sliceNS)))) == 0 || p.w.dev.IsLost() {
			return true
		}
		if left <= 0 {
			return false
		}
	}
}

// Close implements driver.Event.
func (e *Event) Close() {
	if m := e.shared.Swap(nil); m != nil {
		m.release()
	}
	if m := e.cur.Swap(nil); m != nil {
		m.release()
	}
	if l := e.dev.state(); l != nil {
		e.dev.trimMarks(l, maxSpare)
	}
}

// Describe implements driver.Event.
func (e *Event) Describe() string {
	m := e.stands()
	if m == nil {
		return fmt.Sprintf("event %d was never recorded", e.opts.ID)
	}
	defer m.release()
	state := "is pending"
	if done, err := e.dev.answer(C.hs_event_query(e.dev.ctx(), m.event), "query event"); err != nil {
		state = "failed: " + err.Error()
	} else if done {
		state = "is done"
	}
	return fmt.Sprintf("the latest record of event %d %s", e.opts.ID, state)
}

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
	clock := vendor.Stopwatch()
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
		if last || pause() {
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
