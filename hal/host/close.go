package host

import (
	"halstream/hal/driver"
	"halstream/hal/park"
)

// closeNS bounds how long Close waits for operations that run in C: a native
// function may never return.
const closeNS = 5_000_000_000

// beginC and endC surround work that runs in C outside an engine of a device.
// The lock is held at both calls, and released in between.
func (e *engine) beginC() { e.runningC++ }

func (e *engine) endC() {
	e.runningC--
	e.wakeClose()
}

// wakeClose wakes a Close that waits for the last work in C.
func (e *engine) wakeClose() {
	if e.closer != nil && e.quietC() {
		e.unpark(e.closer)
		e.closer = nil
	}
}

// quietC reports whether no work runs in C.
func (e *engine) quietC() bool {
	if e.runningC > 0 {
		return false
	}
	for _, d := range e.devices {
		if d.busy > 0 {
			return false
		}
	}
	return true
}

// close drops the work that has not started, lets no more work run in C, and
// waits for what does: it may use memory that is unmapped afterwards. It reports
// whether none is left. A stream keeps moving after close, but copies, fills and
// native functions on it do nothing.
func (e *engine) close() bool {
	e.Lock()
	e.closed = true
	for _, d := range e.devices {
		for _, s := range d.activeStreams() {
			s.abort()
		}
	}
	if e.quietC() {
		e.Unlock()
		return true
	}
	w := park.Get()
	e.closer = w
	e.Unlock()
	quiet := w.Park(closeNS, 0)
	if !quiet {
		e.Lock()
		quiet = e.closer == nil
		e.closer = nil
		e.Unlock()
		if quiet {
			w.Park(driver.Forever, 0) // its permit is on the way
		}
	}
	park.Put(w)
	return quiet
}
