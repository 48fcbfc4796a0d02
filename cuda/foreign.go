package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"

	"halstream/hal/driver"
)

// External implements driver.VendorDevice.
func (d *Device) External(handle uint64) (driver.Stream, error) {
	const doing = "use external stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	if handle == 0 || handle == legacyHandle {
		return d.legacy, nil
	}
	if handle == perThreadHandle {
		return nil, driver.Errorf(driver.InvalidHandle, doing,
			"2 means another stream on each thread; ask for the per-thread default stream on the thread that uses it")
	}
	if d.spares.has(C.CUstream(handle)) {
		return nil, driver.Errorf(driver.InvalidHandle, doing,
			"the stream with the handle %#x was closed; use handles only while their streams are open", handle)
	}
	if C.hs_mapped(C.uint64_t(handle)) == 0 {
		// A driver does not check what it is given: it reads the memory that the handle points to.
		return nil, driver.Errorf(driver.InvalidHandle, doing,
			"handle %#x is no stream of this process that is alive: no memory of the process is there", handle)
	}
	var of C.CUcontext
	var flags C.uint32_t
	var priority C.int
	s := C.hs_stream_facts(d.ctx(), C.CUstream(handle), &of, &flags, &priority)
	if err := d.check(s, doing); err != nil {
		e := err.(*driver.Error)
		if d.lost.Load() == nil && e.Code != codeNotSupported {
			e.Kind = driver.InvalidHandle
			e.Text = fmt.Sprintf("handle %#x is no stream of this process that is alive; its owner may have destroyed it (%s)",
				handle, e.Text)
		}
		return nil, e
	}
	if of != d.ctx() {
		return nil, driver.Errorf(driver.WrongDevice, doing,
			"stream %#x belongs to another device or context than device %d", handle, d.ordinal)
	}
	level := min(max(0, int(priority)-d.state().greatest), d.Priorities()-1)
	made := &Stream{dev: d, h: C.CUstream(handle), level: uint8(level), external: true,
		ordered: flags&nonBlockingStream == 0}
	d.streams.add(made)
	return made, nil
}

// PerThread implements driver.VendorDevice. The handle means another stream on
// each thread, so other threads query a mark that is recorded behind its work.
func (d *Device) PerThread(o driver.StreamOptions) (driver.Stream, error) {
	if err := d.usable("per-thread default stream"); err != nil {
		return nil, err
	}
	s := &Stream{dev: d, h: perThreadHandle, id: o.ID, level: o.Level, ordered: true, external: true, owner: C.hs_self()}
	d.streams.add(s)
	return s, nil
}

// usable refuses work on a lost device, and on another thread's default stream.
func (s *Stream) usable(doing string) error {
	if err := s.dev.usable(doing); err != nil {
		return err
	}
	if s.owner != 0 && s.owner != C.hs_self() {
		return driver.Errorf(driver.InvalidHandle, doing,
			"this is the per-thread default stream of another thread; give it work on that thread, or use a stream of your own")
	}
	return nil
}

// borrowed reports whether the stream belongs to another library, which may destroy it at any
// moment, or to another thread. A driver that is given the handle of a destroyed stream may
// crash, so only a call of the program for this very stream may pass it.
func (s *Stream) borrowed() bool { return s.external && s.h != legacyHandle }

// countOne counts an operation that the driver has accepted. On a borrowed stream it
// records a mark behind it.
func (s *Stream) countOne() {
	s.enqueued.Add(1)
	if !s.borrowed() {
		return
	}
	if p := s.pointOfBorrowed(); p != nil {
		s.mu.Lock()
		old := s.last
		s.last = p
		s.mu.Unlock()
		if old != nil {
			old.drop()
		}
	}
}

// pointOfBorrowed returns a point behind all work of the stream, nil if the driver refuses it. A
// capture has no work that could be pending: it makes no mark.
func (s *Stream) pointOfBorrowed() *point {
	const doing = "keep place"
	d := s.dev
	place := s.enqueued.Load()
	m, err := d.newMark(eventDisableTiming, doing)
	if err != nil {
		return nil
	}
	var captured C.int
	if d.check(C.hs_record_behind(d.ctx(), m.event, s.h, &captured), doing) != nil {
		m.release()
		return nil
	}
	if captured != 0 {
		m.release()
		return s.reachedPoint()
	}
	return newPoint(m, s, place)
}

// behind returns a point behind all work on the stream that this runtime knows of, for calls
// that the program does not make for this stream; nil if these may pass the handle, too.
func (s *Stream) behind() *point {
	if p := s.endWithoutHandle(); p != nil || !s.borrowed() {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return s.reachedPoint()
	}
	return s.last.share()
}

// pending reports whether the stream has work that is not done, as far as this runtime knows.
func (s *Stream) pending() bool {
	if p := s.behind(); p != nil {
		return !p.Wait(0)
	}
	done, _, err := s.look()
	return !done && err == nil
}

// endWithoutHandle returns a point behind all work of a stream whose handle the
// calling thread cannot use, because the stream is closed or is another thread's
// default stream; nil if the handle can be used.
func (s *Stream) endWithoutHandle() *point {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail != nil || s.owner == 0 || s.owner == C.hs_self() {
		return s.tail
	}
	if s.last == nil {
		return s.reachedPoint()
	}
	return s.last.share()
}

// end returns the point behind all work of a closed stream, nil of an open one.
func (s *Stream) end() *point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tail
}

// reachedPoint returns a point of s that is reached.
func (s *Stream) reachedPoint() *point {
	p := &point{stream: s, mark: &mark{dev: s.dev}}
	p.state.Store(reached)
	return p
}
