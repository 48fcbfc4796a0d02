package ascend

/*
#include "calls.h"
*/
import "C"

import "halstream/hal/driver"

// join brings a stream in order with the legacy default stream before its next operation: an ordered stream
// comes after what was enqueued on the legacy one, and that one after what was enqueued on all ordered streams. AscendCL's
// default stream has no such order, so waits are enqueued, for work that was not seen to be done. joined is how far
// an ordered stream, or the legacy one with regard to it, has come.
func (s *Stream) join(doing string) error {
	d := s.dev
	switch {
	case s.legacy:
		for _, o := range d.streams.all() {
			if o.ordered {
				if err := s.comeAfter(o, &o.legacyJoined, doing); err != nil {
					return err
				}
			}
		}
	case s.ordered:
		return s.comeAfter(d.legacy, &s.joined, doing)
	}
	return nil
}

// orderedDone reports whether the ordered streams have no work: the legacy default stream waits for it.
func (d *Device) orderedDone() (bool, error) {
	for _, o := range d.streams.all() {
		if o.ordered && o.reached.Load() < o.enqueued.Load() {
			if done, err := o.Query(); !done || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// comeAfter makes later work of s start after all work of o, unless seen says that it does already.
func (s *Stream) comeAfter(o *Stream, seen *counter, doing string) error {
	place := o.enqueued.Load()
	if seen.Load() >= place || o.reached.Load() >= place {
		return nil
	}
	m, err := o.behind(doing)
	if m == nil || err != nil {
		return err
	}
	defer m.release()
	if err := s.dev.check(C.na_wait(s.dev.ctx(), s.h, m.event), doing); err != nil {
		return err
	}
	for {
		before := seen.Load()
		if before >= place || seen.CompareAndSwap(before, place) {
			return nil
		}
	}
}

// behind returns a mark behind all work of a stream, with a reference for the caller; nil if the work is known
// to be done.
func (s *Stream) behind(doing string) (*mark, error) {
	if s.begin(doing) == nil {
		defer s.finish()
		return s.recordMark(false, doing)
	}
	if err := s.dev.usable(doing); err != nil {
		return nil, err
	}
	s.mu.Lock()
	tail := s.tail
	s.mu.Unlock()
	if tail == nil {
		// Another thread closes it at this moment: then its work and this call overlap as well.
		return nil, driver.Errorf(driver.Closed, doing, "the stream was closed; use another one")
	}
	if tail.state.Load() == reached || !tail.mark.hold() {
		return nil, nil
	}
	if tail.state.Load() == reached { // the mark may have another user by now
		tail.mark.release()
		return nil, nil
	}
	return tail.mark, nil
}
