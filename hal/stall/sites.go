package stall

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal"
	"halstream/hal/driver"
)

const (
	// leastPruneAt is at how many entries waits for an event are first looked through.
	leastPruneAt = 16
	// recentMost is of how many operations the sites are kept; a power of two.
	recentMost = 1 << 16
)

// Sites knows where the program enqueued what streams are blocked by. Gates, and
// waits for events that may never be recorded, are what programs are blocked by
// most, and they are rare: their sites are always kept. The sites of other
// operations are kept while a runtime is followed. Its methods may be called on any
// thread.
type Sites struct {
	site func() uint32

	mu       sync.Mutex
	gates    map[uint64]uint32      // of closed gates, by number
	waits    map[uint64]*eventWaits // of waits for settable events, by event
	followed *hal.Runtime
	stop     func()

	recent atomic.Pointer[recentSites] // nil while no runtime is followed
}

// recentSites are the sites of the latest operations, by number modulo recentMost:
// the number in the upper half, the site in the lower.
type recentSites [recentMost]atomic.Uint64

// eventWaits are the sites of the waits for one event, by stream. Streams whose
// waits have ended are removed each time the number of entries reaches pruneAt.
type eventWaits struct {
	sites   map[*hal.Stream]uint32
	pruneAt int
}

// NewSites returns an empty table. site returns where the calling thread's program
// is, as the function of [hal.Runtime.SetSites] does.
func NewSites(site func() uint32) *Sites {
	return &Sites{site: site, gates: map[uint64]uint32{}, waits: map[uint64]*eventWaits{}}
}

// numbered is a gate that has a number.
type numbered interface{ Number() uint64 }

// GateMade notes where a closed gate was made.
func (s *Sites) GateMade(g driver.Gate) {
	if n, ok := g.(numbered); ok {
		site := s.site()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gates[n.Number()] = site
	}
}

// GateOpened forgets a gate.
func (s *Sites) GateOpened(g driver.Gate) {
	if n, ok := g.(numbered); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.gates, n.Number())
	}
}

// Gates returns the closed gates, in the order in which they were made.
func (s *Sites) Gates() []Object {
	s.mu.Lock()
	gates := make([]Object, 0, len(s.gates))
	for number, site := range s.gates {
		gates = append(gates, Object{Kind: "gate", Number: number, Site: site})
	}
	s.mu.Unlock()
	slices.SortFunc(gates, func(a, b Object) int { return cmp.Compare(a.Number, b.Number) })
	return gates
}

// AnyGate reports whether a gate is closed.
func (s *Sites) AnyGate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.gates) > 0
}

// WaitMade notes where a stream was made to wait for an event.
func (s *Sites) WaitMade(stream *hal.Stream, e *hal.Event) {
	if e.Options().Kind != hal.Future {
		return
	}
	site := s.site()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.waits[e.ID()]
	if of == nil {
		of = &eventWaits{sites: map[*hal.Stream]uint32{}, pruneAt: leastPruneAt}
		s.waits[e.ID()] = of
	}
	of.sites[stream] = site
	if len(of.sites) > of.pruneAt {
		s.pruneLocked(of)
	}
}

// pruneLocked removes the streams that have no pending work. The caller holds mu,
// which is free while backends are asked.
func (s *Sites) pruneLocked(of *eventWaits) {
	before := maps.Clone(of.sites)
	s.mu.Unlock()
	maps.DeleteFunc(before, func(stream *hal.Stream, _ uint32) bool { return !stream.Idle() })
	s.mu.Lock()
	for stream, site := range before {
		if of.sites[stream] == site {
			delete(of.sites, stream)
		}
	}
	of.pruneAt = max(leastPruneAt, 2*len(of.sites))
}

// EventClosed forgets the waits for an event.
func (s *Sites) EventClosed(e *hal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, e.ID())
}

// Follow keeps the sites of the latest operations of a runtime, and of no other
// one; nil ends that.
func (s *Sites) Follow(rt *hal.Runtime) {
	s.mu.Lock()
	if s.followed == rt {
		s.mu.Unlock()
		return
	}
	stop := s.stop
	s.followed, s.stop = rt, nil
	s.recent.Store(nil)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	if rt == nil {
		return
	}
	recent := new(recentSites)
	stop = rt.Listen(func(o hal.Operation) {
		if !o.Host {
			recent[o.ID%recentMost].Store(uint64(o.ID)<<32 | uint64(o.Site))
		}
	})
	s.mu.Lock()
	current := s.followed == rt && s.stop == nil
	if current {
		s.stop = stop
		s.recent.Store(recent)
	}
	s.mu.Unlock()
	if !current { // another call has replaced it meanwhile
		stop()
	}
}

// Of returns where the first operation of a stream was enqueued, 0 if that is not
// known.
func (s *Sites) Of(b driver.Busy) uint32 {
	if b.Site != 0 {
		return b.Site
	}
	s.mu.Lock()
	switch b.Need {
	case driver.NeedGate:
		defer s.mu.Unlock()
		return s.gates[b.Number]
	case driver.NeedEvent:
		if of := s.waits[b.Number]; of != nil {
			for stream, site := range of.sites {
				if stream.Device().Ordinal() == b.At.Device && stream.Index() == b.At.Stream {
					s.mu.Unlock()
					return site
				}
			}
		}
	}
	s.mu.Unlock()
	recent := s.recent.Load()
	if recent == nil || b.Tag == 0 {
		return 0
	}
	if kept := recent[b.Tag%recentMost].Load(); uint32(kept>>32) == uint32(b.Tag) {
		return uint32(kept)
	}
	return 0
}
