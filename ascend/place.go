package ascend

/*
#include "calls.h"
*/
import "C"

import "halstream/hal/driver"

// Last implements driver.Stream.
func (s *Stream) Last() uint64 { return s.enqueued.Load() }

// Mark implements driver.Stream.
func (s *Stream) Mark(tag driver.Tag) uint64 {
	held := s.dev.drv.follow(tag)
	defer s.dev.drv.followed(tag, held, nil)
	if s.begin("mark") == nil {
		_ = s.join("mark") // where it is refused, the next operation tries again
		s.finish()
	}
	place := s.enqueued.Add(1)
	s.Keep()
	return place
}

// Keep implements driver.VendorStream. If the library refuses the mark, Reached becomes true later than it could.
func (s *Stream) Keep() {
	const doing = "keep place"
	if s.begin(doing) != nil {
		return
	}
	defer s.finish()
	place := s.enqueued.Load()
	m, err := s.recordMark(false, doing)
	if err != nil {
		return
	}
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

// Reached implements driver.Stream.
func (s *Stream) Reached(place uint64) bool {
	if s.reached.Load() >= place || s.dev.lost.Load() != nil || s.dev.ended.Load() {
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
	s.mu.Lock()
	for _, k := range s.kept {
		if k.place >= place && k.mark.hold() {
			s.mu.Unlock()
			return &point{mark: k.mark, stream: s, place: k.place}
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
			done, _ = d.answer(C.na_event_query(first.mark.event), "look at place")
		}
		if done {
			s.setReached(first.place)
			s.mu.Lock()
			mine := len(s.kept) > 0 && s.kept[0] == first
			if mine {
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
	place := s.enqueued.Load() // before the query: another thread may enqueue behind it
	if done, _ := s.Query(); done {
		s.setReached(place)
		return
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
		if dev != nil && dev.opened() {
			for _, s := range dev.streams.all() {
				s.refresh()
			}
		}
	}
}

// awaitsHostAt notes that the operation at a place waits for something that the program may have to do, and makes
// Reached exact for it.
func (s *Stream) awaitsHostAt(place uint64) {
	for {
		before := s.hostWait.Load()
		if before >= place {
			return
		}
		if s.hostWait.CompareAndSwap(before, place) {
			s.Keep()
			return
		}
	}
}

// AwaitsHost implements driver.VendorDriver. A wait for a value that another stream writes counts, too: the library
// does not say what ends a wait.
func (d *Driver) AwaitsHost() bool {
	if d.reports.Load() > 0 || d.arrivals.anyGate() {
		return true
	}
	for _, dev := range d.devices {
		if dev == nil || !dev.opened() {
			continue
		}
		for _, s := range dev.streams.all() {
			place := s.hostWait.Load()
			if s.Reached(place) {
				continue
			}
			if s.refresh(); !s.Reached(place) {
				return true
			}
		}
	}
	return false
}
