package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"halstream/hal/driver"
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
	turn    turn

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

// NewEvent implements driver.Device. It calls nothing: the driver's event is
// taken at the first record.
func (d *Device) NewEvent(o driver.EventOptions) (driver.Event, error) {
	if err := d.usable("create event"); err != nil {
		return nil, err
	}
	return &Event{dev: d, opts: o}, nil
}

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
	if m != nil && m.refs.Load() == 2 { // the event's reference and this one
		defer m.release()
		return d.check(C.hs_record(d.ctx(), m.event, s.h), "record")
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

// answer converts the result of a query: whether the work is done, or an error.
func (d *Device) answer(s C.hs_status, doing string) (bool, error) {
	if C.hs_code(s) == codeNotReady {
		return false, nil
	}
	err := d.check(s, doing)
	return err == nil, err
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

// between returns the nanoseconds from one mark to another.
func (d *Device) between(a, b *mark, doing string) (int64, error) {
	if err := d.usable(doing); err != nil {
		return 0, err
	}
	if a == nil || b == nil {
		return 0, driver.Errorf(driver.Unrecorded, doing, "an event was never recorded; record both events first")
	}
	var ms C.float
	s := C.hs_elapsed(d.ctx(), a.event, b.event, &ms)
	if C.hs_code(s) == codeNotReady {
		return 0, driver.Errorf(driver.NotReady, doing, "an event is still pending; synchronize it first")
	}
	if err := d.check(s, doing); err != nil {
		return 0, err
	}
	return int64(math.Round(float64(ms) * 1e6)), nil
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
	for clock := stopwatch(); ; {
		left := limit - clock()
		if C.hs_poll(&watch, 1, &wakeups, 0, C.int64_t(max(0, min(left, sliceNS)))) == 0 || p.w.dev.lost.Load() != nil {
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

// stopwatch returns a function that returns the nanoseconds since this call.
func stopwatch() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}
