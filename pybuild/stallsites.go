package pybuild

// #include "sites.h"
import "C"

import (
	"sync/atomic"

	"halstream/hal"
	"halstream/hal/driver"
)

// Gates, and waits for events that may never be recorded, are what programs hang
// on most, and they are rare: where those were made is kept always. They are
// guarded by Python's lock.
var (
	gateSites = map[uint64]uint32{}
	waitSites = map[uint64]*eventWaits{} // by event
)

// eventWaits are the sites of the waits for one event, by stream. Streams that
// passed theirs are removed each time the number of entries reaches pruneAt.
type eventWaits struct {
	sites   map[*hal.Stream]uint32
	pruneAt int
}

const leastPruneAt = 16

// prune removes the streams that wait for nothing.
func (w *eventWaits) prune() {
	for s := range w.sites {
		if s.Idle() {
			delete(w.sites, s)
		}
	}
	w.pruneAt = max(leastPruneAt, 2*len(w.sites))
}

// numbered is a gate that has a number.
type numbered interface{ Number() uint64 }

func keepGate(g driver.Gate) {
	if n, ok := g.(numbered); ok {
		gateSites[n.Number()] = uint32(C.halstream_site())
	}
}

func dropGate(g driver.Gate) {
	if n, ok := g.(numbered); ok {
		delete(gateSites, n.Number())
	}
}

// keepWait notes where s was made to wait for e.
func keepWait(s *hal.Stream, e *hal.Event) {
	if e.Options().Kind != hal.Future {
		return
	}
	of := waitSites[e.ID()]
	if of == nil {
		of = &eventWaits{sites: map[*hal.Stream]uint32{}, pruneAt: leastPruneAt}
		waitSites[e.ID()] = of
	}
	if len(of.sites) >= of.pruneAt {
		of.prune()
	}
	of.sites[s] = uint32(C.halstream_site())
}

func dropWaits(e *hal.Event) { delete(waitSites, e.ID()) }

// recentMost is of how many operations the sites are kept while somebody wants
// them; a power of two.
const recentMost = 1 << 16

// recent are the sites of the latest operations, by number modulo recentMost:
// number above, site below.
var recent atomic.Pointer[[recentMost]atomic.Uint64]

// recentOf is the runtime they are of, nil while nobody wants them.
var (
	recentOf   *hal.Runtime
	stopRecent func()
)

// keepRecent begins or ends to keep them.
func keepRecent(r *hal.Runtime, on bool) {
	if on && recentOf == r {
		return
	}
	if recentOf != nil {
		stopRecent()
		recentOf = nil
		recent.Store(nil)
	}
	if !on {
		return
	}
	recentOf = r
	table := new([recentMost]atomic.Uint64)
	recent.Store(table)
	stopRecent = r.Listen(func(o hal.Operation) {
		if !o.Host {
			table[o.ID%recentMost].Store(uint64(o.ID)<<32 | uint64(o.Site))
		}
	})
}

// siteOf returns where the head operation of a stream was enqueued, 0 if nobody
// knows.
func siteOf(b driver.Busy) uint32 {
	switch b.Need {
	case driver.NeedGate:
		return gateSites[b.Number]
	case driver.NeedEvent:
		of := waitSites[b.Number]
		if of == nil {
			break
		}
		for s, site := range of.sites {
			if s.Device().Ordinal() == b.At.Device && s.Index() == b.At.Stream {
				return site
			}
		}
	}
	return recentSite(b.Tag)
}

func recentSite(tag driver.Tag) uint32 {
	table := recent.Load()
	if table == nil || tag == 0 {
		return 0
	}
	if kept := table[tag%recentMost].Load(); uint32(kept>>32) == tag {
		return uint32(kept)
	}
	return 0
}
