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

// poller is the one thread that sees which held places the streams have come
// to. It looks at words in pinned memory, in C, without a pause at first and
// less and less often later, and sleeps while no stream holds any.
type poller struct {
	mu      sync.Mutex
	active  map[*Stream]struct{} // with held places
	running bool
	closed  bool

	poke   *C.uint32_t // changes when there is something new to look at
	asleep atomic.Bool
	bed    *park.Parker
	ended  chan struct{}

	watch *C.hs_watch // what the thread looks at, in C's memory
	room  int
}

func newPoller() *poller {
	return &poller{
		active: map[*Stream]struct{}{},
		poke:   (*C.uint32_t)(C.calloc(1, C.sizeof_uint32_t)),
		bed:    park.Get(),
		ended:  make(chan struct{}),
	}
}

// sliceNS is how long it looks before it asks whether a device was lost.
const sliceNS = 50_000_000

// add begins the enqueue of h. It is listed before the driver is called: two
// threads may call for one stream in the other order than they are listed in,
// so as many places as were ever under way at once are looked at.
func (p *poller) add(h *held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := h.s
	h.flying = true
	s.flying++
	s.mostFlying = max(s.mostFlying, s.flying)
	s.holds = append(s.holds, h)
	p.active[s] = struct{}{}
	if !p.running && !p.closed {
		p.running = true
		go p.work()
	}
}

// landed ends the enqueue of h. It reports false if h was not enqueued, or the
// device was lost meanwhile: then h is forgotten. It reports true if the stream
// has come to h.
func (p *poller) landed(h *held, ok bool) bool {
	p.mu.Lock()
	s := h.s
	h.flying = false
	s.flying--
	if !ok || s.dev.lost.Load() != nil {
		// Still in the list, unless the stream has come to it already: then it was
		// enqueued, and its slot is in use, whatever the call has answered.
		ok = !p.remove(h)
	}
	p.mu.Unlock()
	if ok {
		p.wake()
	} else {
		h.open() // for a thread of the driver's that waits
		s.dev.slots.give(h.slot)
	}
	return ok
}

// remove takes h out of its stream's list and reports whether it was there.
func (p *poller) remove(h *held) bool {
	s := h.s
	for i, o := range s.holds {
		if o == h {
			copy(s.holds[1:i+1], s.holds[:i])
			s.holds[0] = nil
			s.holds = s.holds[1:]
			if len(s.holds) == 0 {
				s.holds = nil
				delete(p.active, s)
			}
			return true
		}
	}
	return false
}

func (p *poller) wake() {
	atomic.AddUint32((*uint32)(p.poke), 1)
	if p.asleep.Swap(false) {
		p.bed.Unpark()
	}
}

// opened forgets a gate that was opened.
func (p *poller) opened(h *held) {
	p.mu.Lock()
	there := p.remove(h)
	p.mu.Unlock()
	if there {
		h.s.dev.slots.give(h.slot)
		p.wake()
	}
}

// collect lists the places that streams may come to next.
func (p *poller) collect() []*held {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*held
	for s := range p.active {
		for i, h := range s.holds {
			if i >= s.mostFlying {
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
		poked := atomic.LoadUint32((*uint32)(p.poke))
		list := p.collect()
		limit := int64(sliceNS)
		if len(list) == 0 {
			limit = int64(C.HS_POLL_SPIN)
		}
		i := int(C.hs_poll(p.watch, C.int(len(list)), p.poke, C.uint32_t(poked), C.int64_t(limit)))
		switch {
		case i >= 0:
			p.arrived(list[i:])
		case atomic.LoadUint32((*uint32)(p.poke)) != poked:
		case p.over():
			return
		case len(list) > 0:
			ask(list)
		default:
			p.asleep.Store(true)
			if atomic.LoadUint32((*uint32)(p.poke)) == poked {
				p.bed.Park(-1, 0)
			}
			p.asleep.Store(false)
		}
	}
}

// over reports whether close was called; abandon drops what is left then.
func (p *poller) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// arrived runs what the streams have come to.
func (p *poller) arrived(list []*held) {
	for _, h := range list {
		if uint32(C.hs_reached(h.slot.p)) != h.value {
			continue
		}
		p.mu.Lock()
		there := p.remove(h)
		p.mu.Unlock()
		if there {
			h.run()
		}
	}
}

// ask finds out whether a device was lost: no stream of it comes to anything then.
func ask(list []*held) {
	asked := map[*Device]bool{}
	for _, h := range list {
		if d := h.s.dev; !asked[d] {
			asked[d] = true
			_ = d.probe()
		}
	}
}

// abandon drops all held places of a device that was lost, or is being closed.
// Its streams pass those that they have not come to.
func (p *poller) abandon(d *Device) {
	p.mu.Lock()
	var gone []*held
	for s := range p.active {
		if s.dev != d {
			continue
		}
		kept := s.holds[:0:0]
		for _, h := range s.holds {
			if h.flying {
				kept = append(kept, h) // its own call ends it
			} else {
				gone = append(gone, h)
			}
		}
		if s.holds = kept; len(kept) == 0 {
			delete(p.active, s)
		}
	}
	p.mu.Unlock()
	for _, h := range gone {
		h.drop()
		h.open() // for a thread of the driver's that waits
	}
	p.wake()
}

// close ends the thread, whether or not streams still hold something.
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

// titles returns what a stream comes to next, at most that many.
func (p *poller) titles(s *Stream, most int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, h := range s.holds[:min(most, len(s.holds))] {
		names = append(names, h.title)
	}
	return names
}
