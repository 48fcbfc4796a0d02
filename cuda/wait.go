package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"time"

	"halstream/hal/driver"
)

// Reset implements driver.Stream.
func (s *Stream) Reset(e driver.Event, tag driver.Tag) (err error) {
	if err := s.beginEnqueue("reset event"); err != nil {
		return err
	}
	defer s.endEnqueue()
	ev := e.(*Event)
	f := s.follow(tag, &ev.turn)
	defer func() { f.end(s.dev.drv, err) }()
	return s.setWord(ev, 0, "reset event")
}

func (s *Stream) setWord(e *Event, value uint32, doing string) error {
	w, err := e.word(doing)
	if err != nil {
		return err
	}
	return s.enqueuedOne(C.hs_word_write(s.dev.ctx(), s.h, w.slot.dev, C.uint32_t(value)), doing)
}

// Wait implements driver.Stream.
func (s *Stream) Wait(e driver.Event, limit int64, tag driver.Tag) (err error) {
	const doing = "wait event"
	d := s.dev
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	ev := e.(*Event)
	f := s.follow(tag, &ev.turn)
	defer func() { f.end(d.drv, err) }()
	if ev.opts.Settable || limit != driver.Forever {
		if err := s.waitSlow(ev, limit, doing); err != nil {
			return err
		}
	} else {
		m := ev.stands()
		if m == nil {
			return nil // never recorded: nothing to wait for
		}
		err := s.enqueuedOne(C.hs_wait(d.ctx(), s.h, m.event), doing)
		m.release()
		if err != nil {
			return err
		}
	}
	if ev.opts.Counted {
		return s.countWait(ev)
	}
	return nil
}

// waitSlow waits for a settable event, or with a limit: then a host thread waits on
// behalf of the stream, which is held meanwhile.
func (s *Stream) waitSlow(e *Event, limit int64, doing string) error {
	var w *word
	if e.opts.Settable {
		var err error
		if w, err = e.word(doing); err != nil {
			return err
		}
		if limit == driver.Forever {
			if err := s.enqueuedOne(C.hs_word_wait(s.dev.ctx(), s.h, w.slot.dev, 1), doing); err != nil {
				return err
			}
			s.awaitsHostAt(s.enqueued.Load())
			return nil
		}
	}
	var at driver.Point = &wordPoint{w}
	if w == nil {
		at = e.Point()
		if r, ok := at.(driver.RefusedPoint); ok {
			return r.Refused()
		}
	}
	release := func() {
		if p, ok := at.(interface{ drop() bool }); ok {
			p.drop()
		}
	}
	look := func() {
		if !s.dev.waitWithin(at, limit, release) {
			s.fail(driver.Errorf(driver.Timeout, doing, "wait for event %d passed its limit of %v",
				e.opts.ID, time.Duration(limit)))
		}
	}
	// It is no task: the wait for an event of a lost device waits for tasks.
	h := &held{what: C.HS_HOLD, title: fmt.Sprintf("wait for event %d with a limit", e.opts.ID), drop: release}
	h.run = func() {
		go func() {
			look()
			h.end()
		}()
	}
	err := s.hold(h, doing)
	if err != nil {
		release()
	}
	return err
}

// graceNS is how much longer than its limit a wait may take to answer.
const graceNS = 10_000_000

// waitWithin waits for a point, and counts one as not reached whose query has not
// answered when the limit has passed: the query may wait for a lock of the driver's whose
// holder waits for the stream that this wait holds. Such a query may return after the device
// was closed, so it keeps what it uses, the point included, which is given up by release.
func (d *Device) waitWithin(at driver.Point, limit int64, release func()) bool {
	if p, ok := at.(*wordPoint); ok {
		return p.Wait(limit) // it reads a word, and calls no driver
	}
	l := d.live.Load()
	if l == nil || !l.hold() {
		return false // the device was closed
	}
	answer := make(chan bool, 1)
	go func() {
		defer l.release(d)
		answer <- at.Wait(limit)
		release()
	}()
	late := time.NewTimer(time.Duration(limit + graceNS))
	defer late.Stop()
	select {
	case done := <-answer:
		return done
	case <-late.C:
		return false
	}
}

// WaitStream implements driver.Stream.
func (s *Stream) WaitStream(o driver.Stream, tag driver.Tag) (err error) {
	const doing = "wait stream"
	other := o.(*Stream)
	if other == s {
		return nil
	}
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	if err := other.dev.usable(doing); err != nil {
		return err
	}
	f := s.follow(tag, &other.turn)
	defer func() { f.end(s.dev.drv, err) }()
	tail := other.endWithoutHandle()
	if tail == nil && !other.enter() {
		tail = other.end() // closed meanwhile
	}
	if tail != nil {
		if !tail.mark.hold() {
			return nil
		}
		defer tail.mark.release()
		if tail.state.Load() == reached { // the mark may have another user by now
			return nil
		}
		return s.enqueuedOne(C.hs_wait(s.dev.ctx(), s.h, tail.mark.event), doing)
	}
	defer other.leave()
	m, err := other.dev.newMark(eventDisableTiming, doing)
	if err != nil {
		return err
	}
	defer m.release()
	if err := s.enqueuedOne(C.hs_wait_stream(s.dev.ctx(), s.h, other.dev.ctx(), other.h, m.event), doing); err != nil {
		return err
	}
	other.noteRecord(m)
	return nil
}
