package cuda

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal/park"
)

// poller is the thread that runs blockers when their streams reach them. It never
// calls the driver. It polls words in pinned memory, in C, at first without a pause and
// then less and less often, and sleeps while no stream has a blocker.
type poller struct {
	mu      sync.Mutex
	active  map[*Stream]struct{} // streams with blockers
	running bool
	closed  bool

	wakeups *C.uint32_t // changes when the list of blockers has changed
	asleep  atomic.Bool
	parker  *park.Parker
	ended   chan struct{}
	asking  atomic.Bool    // a thread queries whether a device was lost
	asks    sync.WaitGroup // those threads

	watch *C.hs_watch // the words that are polled, in C's memory
	room  int
}

func newPoller() *poller {
	return &poller{
		active:  map[*Stream]struct{}{},
		wakeups: (*C.uint32_t)(C.calloc(1, C.sizeof_uint32_t)),
		parker:  park.Get(),
		ended:   make(chan struct{}),
	}
}

// sliceNS is for how many nanoseconds it polls before it queries whether a device
// was lost.
const sliceNS = 50_000_000

// add begins the enqueue of h. It is listed before the driver is called, and two
// threads may call the driver for one stream in another order than they are listed
// in, so as many operations as were ever in flight at once are polled.
func (p *poller) add(h *blocker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := h.s
	h.inFlight = true
	s.inFlight++
	s.maxInFlight = max(s.maxInFlight, s.inFlight)
	s.blockers = append(s.blockers, h)
	p.active[s] = struct{}{}
	if !p.running && !p.closed {
		p.running = true
		go p.work()
	}
}

// added ends the enqueue of h, whose call of the driver has succeeded if ok. It
// reports whether h is enqueued; otherwise h is removed. If the stream has reached h
// already, h is enqueued whatever the call has returned.
func (p *poller) added(h *blocker, ok bool) bool {
	p.mu.Lock()
	s := h.s
	h.inFlight = false
	s.inFlight--
	if !ok || s.dev.IsLost() {
		// It is in no list any more if the stream has reached it: then its slot is in use.
		ok = !p.remove(h)
	}
	p.mu.Unlock()
	if ok {
		p.wake()
	} else {
		h.open() // a function on the driver's thread may wait for it
		s.dev.slots.give(h.slot)
	}
	return ok
}

// remove removes h from its stream's list and reports whether it was there.
func (p *poller) remove(h *blocker) bool {
	s := h.s
	for i, o := range s.blockers {
		if o == h {
			copy(s.blockers[1:i+1], s.blockers[:i])
			s.blockers[0] = nil
			s.blockers = s.blockers[1:]
			if len(s.blockers) == 0 {
				s.blockers = nil
				delete(p.active, s)
			}
			return true
		}
	}
	return false
}

func (p *poller) wake() {
	atomic.AddUint32((*uint32)(p.wakeups), 1)
	if p.asleep.Swap(false) {
		p.parker.Unpark()
	}
}

// opened removes a gate that was opened.
func (p *poller) opened(h *blocker) {
	p.mu.Lock()
	found := p.remove(h)
	p.mu.Unlock()
	if found {
		h.s.dev.slots.give(h.slot)
		p.wake()
	}
}

// anyGate reports whether a stream has a gate that was not opened.
func (p *poller) anyGate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.active {
		for _, h := range s.blockers {
			if h.what == C.HS_GATE {
				return true
			}
		}
	}
	return false
}

// anyBlocked reports whether a stream has an operation for which the host is needed.
func (p *poller) anyBlocked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.active) > 0
}

// collect lists the operations that streams may reach next.
func (p *poller) collect() []*blocker {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*blocker
	for s := range p.active {
		for i, h := range s.blockers {
			if i >= s.maxInFlight {
				break
			}
			if h.what != C.HS_GATE {
				list = append(list, h)
			}
		}
	}
	if len(list) > p.room {
		p.room = 2 * len(list)
		C.free(unsafe.Pointer(p.watch))
		p.watch = (*C.hs_watch)(C.malloc(C.size_t(p.room) * C.sizeof_hs_watch))
	}
	if len(list) > 0 {
		in := unsafe.Slice(p.watch, len(list))
		for i, h := range list {
			in[i].slot, in[i].value = h.slot.p, C.uint32_t(h.value)
		}
	}
	return list
}

func (p *poller) work() {
	defer close(p.ended)
	for {
		wakeupsSeen := atomic.LoadUint32((*uint32)(p.wakeups))
		list := p.collect()
		limit := int64(sliceNS)
		if len(list) == 0 {
			limit = int64(C.HS_POLL_SPIN)
		}
		i := int(C.hs_poll(p.watch, C.int(len(list)), p.wakeups, C.uint32_t(wakeupsSeen), C.int64_t(limit)))
		switch {
		case i >= 0:
			p.arrived(list[i:])
		case atomic.LoadUint32((*uint32)(p.wakeups)) != wakeupsSeen:
		case p.over():
			return
		case len(list) > 0:
			p.ask(list)
		default:
			p.asleep.Store(true)
			if atomic.LoadUint32((*uint32)(p.wakeups)) == wakeupsSeen {
				p.parker.Park(-1, 0)
			}
			p.asleep.Store(false)
		}
	}
}

// over reports whether close was called.
func (p *poller) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// arrived runs the operations that their streams have reached.
func (p *poller) arrived(list []*blocker) {
	for _, h := range list {
		if uint32(C.hs_reached(h.slot.p)) != h.value {
			continue
		}
		p.mu.Lock()
		found := p.remove(h)
		p.mu.Unlock()
		if found {
			h.Run()
		}
	}
}

// ask queries whether a device was lost: its streams reach no operation any more. It
// does so on another thread. A call of the driver may wait for a lock whose holder, a
// free of another library for instance, waits until the device is idle, and the device
// becomes idle only if this thread goes on to complete what holds the streams.
func (p *poller) ask(list []*blocker) {
	if p.asking.Swap(true) {
		return // the query before has not returned
	}
	asked := map[*Device]bool{}
	for _, h := range list {
		asked[h.s.dev] = true
	}
	p.asks.Add(1)
	go func() {
		defer p.asks.Done()
		defer p.asking.Store(false)
		for d := range asked {
			_ = d.probe()
		}
	}()
}

// dropBlockers drops all blockers of a device that was lost, or is being closed,
// and opens them for streams that reach them later.
func (p *poller) dropBlockers(d *Device) {
	p.mu.Lock()
	var dropped []*blocker
	for s := range p.active {
		if s.dev != d {
			continue
		}
		kept := s.blockers[:0:0]
		for _, h := range s.blockers {
			if h.inFlight {
				kept = append(kept, h) // the thread that enqueues it removes it
			} else {
				dropped = append(dropped, h)
			}
		}
		if s.blockers = kept; len(kept) == 0 {
			delete(p.active, s)
		}
	}
	p.mu.Unlock()
	for _, h := range dropped {
		h.Drop()
		h.open() // a function on the driver's thread may wait for it
	}
	p.wake()
}

// close ends the thread, whether or not streams have blockers.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	running := p.running
	p.mu.Unlock()
	if running {
		p.wake()
		<-p.ended
	}
}

// blocked counts the streams of a device that have operations for which the host is needed.
func (p *poller) blocked(d *Device) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for s := range p.active {
		if s.dev == d {
			n++
		}
	}
	return n
}

// titles describes the first blockers of a stream, at most most of them.
func (p *poller) titles(s *Stream, most int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, h := range s.blockers[:min(most, len(s.blockers))] {
		names = append(names, h.Title)
	}
	return names
}
