package host

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// closeLimit is how long Close waits for running work.
const closeLimit = 2 * time.Second

// closed is the scheduler of an engine that was closed: it implements sched.Scheduler
// and runs nothing.
type closed struct{}

func (closed) Attach(sched.Runner)                {}
func (closed) Clock(real sched.Clock) sched.Clock { return real }
func (closed) Parallel() bool                     { return true }
func (closed) Added(sched.Stream, string)         {}

func (closed) Numbered(sched.Stream)                                {}
func (closed) Ready(sched.Stream)                                   {}
func (closed) Point(sched.Reason, sched.Stream, func() bool, int64) {}
func (closed) Unlocking() bool                                      { return false }
func (closed) Unlocked()                                            {}
func (closed) Run() driver.Run                                      { return driver.Run{} }
func (closed) Close()                                               {}

// errClosed is the error of a call on a backend that was closed.
func errClosed(doing string) error {
	return driver.Errorf(driver.Closed, doing, "the backend was closed; open it again")
}

// Close implements driver.Driver. Work that has not started is dropped, and
// threads that wait for it continue. A copy, a fill or a native function that runs
// uses memory of the devices, so Close waits for its end; if that takes longer than
// closeLimit, the memory stays mapped until the process ends.
func (d *Driver) Close() {
	e := d.eng
	e.Lock()
	if e.closed {
		e.Unlock()
		return
	}
	e.closed = true
	before := e.sched
	e.use(closed{}, e.spec)
	e.Unlock()
	before.Close()

	e.Lock()
	for _, dev := range d.devices {
		dev.abort()
		for _, w := range dev.idle {
			w.ended = true
			e.unpark(w.parker)
		}
		dev.idle = nil
	}
	d.runDropped()
	e.Unlock()
	ended := d.waitForEngines(time.Now().Add(closeLimit))
	e.Lock()
	for _, dev := range d.devices {
		for _, s := range dev.activeStreams() {
			e.releaseThreads(s)
		}
	}
	e.Unlock()
	if !ended {
		return
	}
	d.pinned.unmap()
	for _, dev := range d.devices {
		dev.memory.unmap()
	}
}

// runDropped completes the head operations that abort turned into empty ones.
// The lock is held.
func (d *Driver) runDropped() {
	for again := true; again; {
		again = false
		for _, dev := range d.devices {
			for _, s := range dev.activeStreams() {
				if s.state == sched.Ready {
					d.eng.run(s)
					again = true
				}
			}
		}
	}
}

// waitForEngines waits until no thread works on memory for a stream, and
// reports false if one still does at the deadline.
func (d *Driver) waitForEngines(deadline time.Time) bool {
	e := d.eng
	e.Lock()
	defer e.Unlock()
	for _, dev := range d.devices {
		for _, s := range dev.activeStreams() {
			if s.state != sched.Running || s.q.front().kind != opWork {
				continue
			}
			w := park.Get()
			s.waiting.add(waiter{seq: s.words.Completed.Load() + 1, parker: w})
			e.Unlock()
			woken := w.Park(max(0, int64(time.Until(deadline))), 0)
			e.Lock()
			if !woken && s.waiting.take(w) {
				park.Put(w)
				return false
			}
			if !woken {
				e.Unlock()
				w.Park(driver.Forever, 0) // another thread is about to unpark it
				e.Lock()
			}
			park.Put(w)
		}
	}
	return true
}

// releaseThreads wakes the threads that wait for a stream which a function of the
// program still holds: no thread may be left to complete that function.
func (e *engine) releaseThreads(s *Stream) {
	for _, w := range s.waiting {
		e.release(w)
	}
	s.waiting = nil
}

// activeStreams returns the streams with work, as a copy: streams that move change
// the list of the device.
func (d *Device) activeStreams() []*Stream {
	var streams []*Stream
	for s := d.active; s != nil; s = s.next {
		streams = append(streams, s)
	}
	return streams
}
