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

// Flags of the driver's events.
const (
	eventBlockingSync  = C.HS_EVENT_BLOCKING_SYNC
	eventDisableTiming = C.HS_EVENT_DISABLE_TIMING
	eventFlavours      = 4
)

// Event is an event of the program. Records use the same fence event again, as the driver
// allows; only while something on the host still refers to the latest record does the
// next one take another fence event.
type Event struct {
	dev  *Device
	opts driver.EventOptions
	own  vendor.Record // of this runtime
	// shared is the driver's event that other libraries have the handle of: see Handle.
	shared  atomic.Pointer[vendor.FenceEvent]
	sharing sync.Mutex
	records atomic.Uint64        // since then
	set     atomic.Pointer[word] // of a settable event, from its first use

	enqueueLock vendor.EnqueueLock
	waits       vendor.Waits
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

// record records e on a stream.
func (e *Event) record(s *Stream) error {
	if err := e.recordOwn(s); err != nil {
		return err
	}
	return e.recordShared(s) // after it: a handle that is asked for meanwhile stands for this record, too
}

func (e *Event) recordOwn(s *Stream) error {
	d := e.dev
	m := e.own.Latest()
	refs := int64(2) // the event's reference and this one
	if m != nil && s.isLatest(m) {
		refs++
	}
	if m != nil && m.Count() == refs {
		defer m.Release()
		if err := d.check(C.hs_record(d.ctx(), C.CUevent(m.Event), s.h), "record"); err != nil {
			return err
		}
		s.noteRecord(m)
		return nil
	}
	if m != nil {
		m.Release()
	}
	fresh, err := d.newFenceEvent(flagsOf(e.opts).bits(), "record")
	if err != nil {
		return err
	}
	if err := d.check(C.hs_record(d.ctx(), C.CUevent(fresh.Event), s.h), "record"); err != nil {
		fresh.Release()
		return err
	}
	s.noteRecord(fresh)
	e.own.Replace(fresh)
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
	defer m.Release()
	return e.dev.answer(C.hs_event_query(e.dev.ctx(), C.CUevent(m.Event)), "query event")
}

// Point implements driver.Event. No wait for a record would end that has become a node of another library's graph.
func (e *Event) Point() driver.Point {
	var refused *driver.Error
	if _, err := e.Query(); errors.As(err, &refused) && refused.Kind == driver.Capture {
		return refusedPoint{cause: refused}
	}
	if m := e.shared.Load(); m != nil && m.Hold() {
		return e.sharedPoint(m)
	}
	return e.pointOfOwn()
}

func (e *Event) pointOfOwn() driver.Point {
	m := e.own.Latest()
	if m == nil {
		return vendor.ReachedFence()
	}
	return vendor.NewFence(m, nil, 0)
}

// Elapsed implements driver.Event.
func (e *Event) Elapsed(end driver.Event) (int64, error) {
	to := end.(*Event)
	a, b := e.stands(), to.stands()
	if a != nil {
		defer a.Release()
	}
	if b != nil {
		defer b.Release()
	}
	return e.dev.between(a, b, "elapsed")
}

// Time implements driver.Event: nanoseconds since the device was opened, as far
// as the driver's milliseconds of 24 bits tell.
func (e *Event) Time() (int64, error) {
	m := e.stands()
	if m != nil {
		defer m.Release()
	}
	return e.dev.between(e.dev.base(), m, "timestamp")
}

// WaitsPending implements driver.Event.
func (e *Event) WaitsPending() int { return e.waits.Pending() }

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
		m.Release()
	}
	e.own.Replace(nil)
	if l := e.dev.state(); l != nil {
		e.dev.trimFenceEvents(l, vendor.MaxFenceEvents)
	}
}

// Describe implements driver.Event.
func (e *Event) Describe() string {
	m := e.stands()
	if m == nil {
		return fmt.Sprintf("event %d was never recorded", e.opts.ID)
	}
	defer m.Release()
	state := "is pending"
	if done, err := e.dev.answer(C.hs_event_query(e.dev.ctx(), C.CUevent(m.Event)), "query event"); err != nil {
		state = "failed: " + err.Error()
	} else if done {
		state = "is done"
	}
	return fmt.Sprintf("the latest record of event %d %s", e.opts.ID, state)
}

// An event whose handle other libraries have is two events of the driver. The shared one always
// stands for the latest record; threads of this runtime that wait have a fence event of each record, as
// they do for every event, which a later record does not change.

// Handle implements driver.VendorEvent. No call of the driver is needed for an event that was recorded.
func (e *Event) Handle() (uint64, error) {
	const doing = "handle"
	if err := e.dev.usable(doing); err != nil {
		return 0, err
	}
	if m := e.shared.Load(); m != nil {
		return uint64(m.Event), nil
	}
	fresh, err := e.dev.newFenceEvent(flagsOf(e.opts).bits(), doing)
	if err != nil {
		return 0, err
	}
	m := e.beginSharing(fresh)
	if m != fresh {
		fresh.Release()
	}
	return uint64(m.Event), nil
}

// beginSharing makes the fence event of the latest record the shared one, fresh if there is none, and
// returns it.
func (e *Event) beginSharing(fresh *vendor.FenceEvent) *vendor.FenceEvent {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	if m := e.shared.Load(); m != nil {
		return m
	}
	for {
		m := e.own.Latest()
		if m == nil {
			m = fresh
		}
		m.Export()
		e.shared.Store(m)
		if e.own.Is(m) || e.own.Is(nil) {
			return m
		}
		// It was recorded meanwhile: that record may have missed the shared fence event.
		e.shared.Store(nil)
		if m != fresh {
			m.Release()
		}
	}
}

// recordShared records the shared fence event, too, if there is one.
func (e *Event) recordShared(s *Stream) error {
	m := e.shared.Load()
	if m == nil || e.own.Is(m) || !m.Hold() {
		return nil
	}
	defer m.Release()
	e.records.Add(1)
	return e.dev.check(C.hs_record(e.dev.ctx(), C.CUevent(m.Event), s.h), "record")
}

// stands returns the fence event that stands for the latest record of any library, with a reference for the
// caller; nil if there is none.
func (e *Event) stands() *vendor.FenceEvent {
	if m := e.shared.Load(); m != nil && m.Hold() {
		return m
	}
	return e.own.Latest()
}

// sharedPoint is the point of the latest record of a shared event: that of this runtime, and one
// of another library behind it as far as no later one of this runtime has replaced it.
type sharedPoint struct {
	event   *Event
	records uint64
	own     driver.Point
	shared  *vendor.Fence
}

// sharedPoint takes over a reference to the shared fence event.
func (e *Event) sharedPoint(m *vendor.FenceEvent) driver.Point {
	p := &sharedPoint{event: e, records: e.records.Load(), shared: vendor.NewFence(m, nil, 0)}
	p.own = e.pointOfOwn()
	return p
}

// sharedSlice is for how many nanoseconds a wait for the shared fence event does not notice that another
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
			p.Drop()
			return true
		}
		slice, last := int64(sharedSlice), false
		if limit >= 0 {
			left := max(0, limit-clock())
			slice, last = min(slice, left), left <= slice
		}
		if p.shared.Wait(slice) {
			return true
		}
		if last || pause() {
			return false
		}
	}
}

// Drop gives the references up, and reports whether this call did.
func (p *sharedPoint) Drop() bool {
	if own, ok := p.own.(*vendor.Fence); ok {
		own.Drop()
	}
	return p.shared.Drop()
}
