package hal

import "halstream/hal/driver"

// BackendStream returns the backend's stream of s.
func BackendStream(s *Stream) driver.Stream { return s.d }

// ContextStreams returns the number of streams that a context keeps.
func ContextStreams(c *Context) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Wake counts n more threads as woken in Next, which do not run yet.
func Wake(n int32) { waking.Add(n) }

// Extents is the list of memory that launches are given.
func (rt *Runtime) Extents() []driver.Extent { return rt.memory.extents() }

// HandInBeforeItsPlace announces a native function on s, and hands in what it accesses as a driver's thread does that
// runs it before the thread that enqueues it has given it its place in the order; that comes last.
func HandInBeforeItsPlace(s *Stream, t *Thread, accesses Range) (id uint32) {
	rt := s.dev.rt
	id = s.announce(&Operation{Kind: OpNative, Thread: t, HandsIn: true})
	rt.handIn(rt.handsInTo(true), id, &handedIn{})(&handedIn{writes: []Range{accesses}})
	rt.listeners.notifier.end(id, false, rt.listeners.notify)
	return id
}

// RecordPlaces is how many records of an event of several processes may be pending.
const RecordPlaces = recordPlaces

// RecordElsewhere records the event as another process does, and returns the number of the record.
// Its number is 0 for one of which nothing is known.
func (e *Event) RecordElsewhere(process int) uint64 {
	page := e.shared.Load().page
	number := page.latest.Load()&numberMask + 1
	page.latest.Store(uint64(process)<<numberBits | number)
	return number
}

// EndElsewhere ends such a record.
func (e *Event) EndElsewhere(number uint64) { e.shared.Load().page.place(number).Store(number) }
