package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/vendor"
)

// Flags of the driver's events.
const (
	eventBlockingSync  = C.HS_EVENT_BLOCKING_SYNC
	eventDisableTiming = C.HS_EVENT_DISABLE_TIMING
	eventFlavours      = 4
)

// mark is an event of the driver with a reference count: several points and streams
// refer to its latest record. When the count is 0 it can be recorded again, even
// while its work is pending: cuStreamWaitEvent binds to the record at the call.
type mark struct {
	dev   *Device
	event C.CUevent
	flags uint8
	refs  atomic.Int64
	// shared marks are known to other libraries, so they are not used again.
	shared atomic.Bool
}

// hold adds a reference, and reports false if the count was 0.
func (m *mark) hold() bool { return holdCount(&m.refs) }

func (m *mark) release() {
	if m.refs.Add(-1) == 0 {
		m.dev.marks[m.flags].put(m)
	}
}

// marks is a pool of unused marks of one device and one set of flags. Creating an
// event takes a lock of the driver's for which all threads compete.
type marks struct {
	mu     sync.Mutex
	spare  []*mark
	shared []*mark // that nothing refers to any more
}

// maxSpare bounds how many unused marks a device keeps of each set of flags.
const maxSpare = 4096

func (p *marks) put(m *mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.shared.Load() {
		p.shared = append(p.shared, m)
		return
	}
	p.spare = append(p.spare, m)
}

// has reports whether at least n marks are unused.
func (p *marks) has(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.spare) >= n
}

func (p *marks) take() *mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.spare)
	if n == 0 {
		return nil
	}
	m := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return m
}

// surplus removes and returns the marks beyond most, and those that other libraries knew.
func (p *marks) surplus(most int) []*mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	removed := p.shared
	p.shared = nil
	if len(p.spare) <= most {
		return removed
	}
	removed = append(removed, p.spare[most:]...)
	clear(p.spare[most:])
	p.spare = p.spare[:most]
	return removed
}

// point is a mark that host threads wait for. Once it is reached, so is a place of
// its stream.
type point struct {
	mark    *mark
	stream  *Stream // nil for a whole device
	place   uint64
	covered []streamPlace // what a whole device has reached with it
	spin    int64
	state   atomic.Uint32
}

// streamPlace is a place of a stream.
type streamPlace struct {
	stream *Stream
	place  uint64
}

// States of a point.
const (
	waiting uint32 = iota
	watched        // a finalizer releases the mark if no wait is ever successful
	reached
)

// newPoint returns a point that takes over a reference to m.
func newPoint(m *mark, s *Stream, place uint64) *point {
	return &point{mark: m, stream: s, place: place, spin: s.dev.spin(m.flags)}
}

// Wait implements driver.Point. Every point of a lost device is reached: Lost
// reports that the work was not done.
func (p *point) Wait(limit int64) bool {
	if p.state.Load() == reached {
		return true
	}
	m := p.mark
	if !m.hold() {
		return true // another thread found it reached
	}
	if p.state.Load() == reached { // the mark may have another user by now
		m.release()
		return true
	}
	d := m.dev
	left := limit
	var refused refusals
	for {
		l := d.live.Load()
		if l == nil || d.Unusable() || !l.hold() {
			m.release()
			return d.AwaitTasks(left) && p.finish()
		}
		var s C.hs_status
		if left == 0 {
			s = C.hs_event_query(l.ctx, m.event)
		} else {
			s = C.hs_await(l.ctx, m.event, C.int64_t(left), C.int64_t(p.spin))
		}
		code := int(C.hs_code(s))
		if code == 0 {
			m.release()
			p.finish() // the last one to need the driver's event may be here, if the device is being closed
			l.release(d)
			return true
		}
		l.release(d)
		switch {
		case code != codeNotReady && refused.again(d, p.stream, s, &left):
		case limit >= 0:
			m.release()
			if p.state.CompareAndSwap(waiting, watched) {
				runtime.SetFinalizer(p, func(p *point) { p.drop() })
			}
			return false
		}
	}
}

// refusals are the queries of one wait that failed. A query that fails does not say
// that the work is done: memory that the work uses must not be reused.
type refusals struct {
	clock func() int64 // since the first
}

// refusedMost is for how many nanoseconds every query of a wait may fail. A device whose
// work cannot be seen to end counts as lost then.
const refusedMost = 2_000_000_000

// again decides after a query that failed whether the wait, with *left nanoseconds left,
// queries once more. The error becomes the stream's.
func (r *refusals) again(d *Device, on *Stream, s C.hs_status, left *int64) bool {
	const doing = "synchronize"
	if _ = d.check(s, doing); d.IsLost() {
		return true // the wait ends for that reason
	}
	if on != nil {
		on.Fail(failed(s, doing))
	}
	if *left == 0 {
		return false
	}
	if r.clock == nil {
		r.clock = vendor.Stopwatch()
	}
	before := r.clock()
	if before >= refusedMost {
		_ = d.Lose(failed(s, doing))
		return true
	}
	if pause() && *left > 0 {
		*left = 0
		return false
	}
	if *left > 0 {
		*left = max(0, *left-max(1, r.clock()-before))
	}
	return true
}

// finish makes the point reached, and the places that it covers. It returns true.
func (p *point) finish() bool {
	if !p.drop() {
		return true
	}
	if p.stream != nil {
		p.stream.SetReached(p.place)
	}
	for _, c := range p.covered {
		c.stream.SetReached(c.place)
	}
	return true
}

// share returns a point at the same place with a reference of its own: it remains
// valid when p is dropped because the stream has later work. A finalizer releases
// the reference if no wait is ever successful.
func (p *point) share() *point {
	if !p.mark.hold() {
		return p
	}
	if p.state.Load() == reached { // the mark may have another user by now
		p.mark.release()
		return p
	}
	q := newPoint(p.mark, p.stream, p.place)
	q.state.Store(watched)
	runtime.SetFinalizer(q, func(q *point) { q.drop() })
	return q
}

// drop releases the mark, once, and reports whether this call did.
func (p *point) drop() bool {
	for {
		before := p.state.Load()
		if before == reached {
			return false
		}
		if p.state.CompareAndSwap(before, reached) {
			p.mark.release()
			return true
		}
	}
}

// reachedPoint is a point that is always reached.
type reachedPoint struct{}

func (reachedPoint) Wait(int64) bool { return true }

// endings are launches of the driver's graphs that have not ended as far as is known, and
// executables of the driver that are destroyed then. Only these wait for the end, so no call of the
// driver asks for it.
type endings struct {
	streams atomic.Int64 // that have such launches
	mu      sync.Mutex
	queues  map[*Stream]*endingQueue
	spare   *endingQueue
}

// endingQueue are the launches on one stream, in its order.
type endingQueue struct {
	list []ending
	head int // how many of the list have ended
}

// ending is launches that end when the stream has got to a place.
type ending struct {
	place uint64
	count int
	l     completionListener
}

// completionListener is notified when launches have completed.
type completionListener interface {
	// End is called once for each launch, when the stream has got past it.
	End()
}

// add adds a launch that ends when s has got to a place. Launches in a row that are the same one to
// the caller end with the last of them: a program that launches a graph over and over before it waits
// has one entry.
func (p *endings) add(s *Stream, place uint64, l completionListener) {
	p.mu.Lock()
	q := p.queues[s]
	if q == nil {
		if p.queues == nil {
			p.queues = map[*Stream]*endingQueue{}
		}
		if q = p.spare; q == nil {
			q = &endingQueue{}
		}
		p.spare = nil
		p.queues[s] = q
		p.streams.Add(1)
	}
	if n := len(q.list); n > q.head && q.list[n-1].l == l {
		q.list[n-1].count++
		q.list[n-1].place = max(q.list[n-1].place, place)
	} else {
		q.list = append(q.list, ending{place, 1, l})
	}
	p.mu.Unlock()
	if s.Reached(place) { // before it was in the list, or the device is lost
		p.collect(s)
	}
}

// collect ends the launches on s that are known to be done. It is called where the stream has got further.
func (p *endings) collect(s *Stream) {
	if p.streams.Load() == 0 {
		return
	}
	p.mu.Lock()
	q := p.queues[s]
	if q == nil {
		p.mu.Unlock()
		return
	}
	from := q.head
	for q.head < len(q.list) && s.Reached(q.list[q.head].place) {
		q.head++
	}
	done := q.list[from:q.head]
	if q.head == len(q.list) {
		delete(p.queues, s)
		p.streams.Add(-1)
		if len(done) == 1 { // as nearly always
			one := done[0]
			q.list, q.head = q.list[:0], 0
			p.spare = q
			p.mu.Unlock()
			one.end()
			return
		}
	}
	if q.head > mostEnded && q.head > len(q.list)/2 {
		q.list, q.head = slices.Clone(q.list[q.head:]), 0
	}
	p.mu.Unlock()
	for i := range done {
		done[i].end()
	}
}

// mostEnded is how many launches that have ended a queue may hold beside as many that have not.
const mostEnded = 64

func (e *ending) end() {
	for range e.count {
		e.l.End()
	}
}

// endAll ends all launches: the device was lost, or is closed. The driver would wait for the work of an
// executable that is still pending; it releases that one with the context.
func (p *endings) endAll() {
	p.mu.Lock()
	queues := p.queues
	p.queues = nil
	p.streams.Store(0)
	p.mu.Unlock()
	for s, q := range queues {
		for _, e := range q.list[q.head:] {
			if _, executable := e.l.(*wholeGraph); !executable || s.Reached(e.place) {
				e.end()
			}
		}
	}
}
