package cuda

/*
#include "calls.h"
*/
import "C"

import "halstream/hal/driver"

// Last implements driver.Stream.
func (s *Stream) Last() uint64 { return s.enqueued.Load() }

// Mark implements driver.Stream.
func (s *Stream) Mark(tag driver.Tag) uint64 {
	f := s.follow(tag, nil)
	defer f.end(s.dev.drv, nil)
	s.countOne()
	place := s.enqueued.Load()
	s.Keep()
	return place
}

// Keep implements driver.VendorStream. If the driver refuses the mark, Reached becomes
// true later than it could. No mark is recorded on the legacy default stream, where it
// would make all ordered streams wait for each other, nor on a stream that another library
// captures: a query of the mark would break that capture.
func (s *Stream) Keep() {
	d := s.dev
	if s.h == legacyHandle || d.usable("keep place") != nil || s.endWithoutHandle() != nil {
		return
	}
	if !s.enter() {
		return
	}
	defer s.leave()
	place := s.enqueued.Load()
	if !s.mayKeep() {
		return
	}
	m, err := d.newMark(eventDisableTiming, "keep place")
	if err != nil {
		return
	}
	var captured C.int
	if d.check(C.hs_record_behind(d.ctx(), m.event, s.h, &captured), "keep place") != nil || captured != 0 {
		m.release()
		return
	}
	s.noteRecord(m)
	s.mu.Lock()
	s.kept = append(s.kept, keptMark{place, m})
	many := len(s.kept) > maxKept
	s.mu.Unlock()
	if many {
		s.queryKept()
	}
}

// maxKept is how many marks a stream keeps before it queries which were reached.
const maxKept = 64

// spareForOthers is how many unused marks a stream that keeps many leaves for other calls.
const spareForOthers = 64

// mayKeep reports whether there are marks enough, or few are kept: the driver may wait for the
// device to make one, and the work behind the kept ones may wait for what the caller enqueues next.
func (s *Stream) mayKeep() bool {
	s.mu.Lock()
	many := len(s.kept) >= maxKept
	s.mu.Unlock()
	return !many || s.dev.marks[eventDisableTiming].has(spareForOthers)
}

// Reached implements driver.Stream.
func (s *Stream) Reached(place uint64) bool {
	if s.reached.Load() >= place || s.dev.unusable() {
		return true
	}
	for {
		before := s.wanted.Load()
		if before >= place || s.wanted.CompareAndSwap(before, place) {
			return false
		}
	}
}

// At implements driver.Stream.
func (s *Stream) At(place uint64) driver.Point {
	if tail := s.endWithoutHandle(); tail != nil {
		return tail
	}
	s.mu.Lock()
	for _, k := range s.kept {
		if k.place >= place && k.mark.hold() {
			s.mu.Unlock()
			return newPoint(k.mark, s, k.place)
		}
	}
	s.mu.Unlock()
	return s.Point()
}

// queryKept queries which kept marks were reached, in their order.
func (s *Stream) queryKept() {
	d := s.dev
	for {
		s.mu.Lock()
		if len(s.kept) == 0 {
			s.mu.Unlock()
			return
		}
		first := s.kept[0]
		held := first.mark.hold()
		s.mu.Unlock()
		if !held {
			return
		}
		done := s.reached.Load() >= first.place || d.unusable()
		if !done {
			done, _ = d.answer(C.hs_event_query(d.ctx(), first.mark.event), "look at place")
			done = done || d.lost.Load() != nil
		}
		if done {
			s.setReached(first.place)
			s.mu.Lock()
			mine := len(s.kept) > 0 && s.kept[0] == first
			if mine {
				s.kept[0] = keptMark{}
				s.kept = s.kept[1:]
			}
			s.mu.Unlock()
			if mine {
				first.mark.release()
			}
		}
		first.mark.release()
		if !done {
			return
		}
	}
}

// refresh queries how far the stream is if Reached has answered false since.
func (s *Stream) refresh() {
	s.queryKept()
	wanted := s.wanted.Load()
	if s.reached.Load() >= wanted {
		return
	}
	if tail := s.behind(); tail != nil {
		tail.Wait(0)
		return
	}
	if done, captured, _ := s.look(); done || captured {
		return // another library's capture would take a mark, and break when that is queried
	}
	s.mu.Lock()
	covered := false
	for _, k := range s.kept {
		covered = covered || k.place >= wanted
	}
	s.mu.Unlock()
	if !covered {
		s.Keep()
	}
}

// Refresh implements driver.VendorDriver.
func (d *Driver) Refresh() {
	for _, dev := range d.devices {
		if dev.opened() {
			for _, s := range dev.streams.all() {
				s.refresh()
			}
		}
	}
}

// countWait adds a wait of s for e, which was just enqueued, to the event's count.
func (s *Stream) countWait(e *Event) error {
	if s.Captured() {
		return nil // it is a node of another library's graph, and pending in no launch that this runtime knows of
	}
	p, err := s.point("wait event")
	if err != nil {
		return err
	}
	e.waitsMu.Lock()
	e.waits = append(e.waits, p)
	e.waitsMu.Unlock()
	return nil
}
