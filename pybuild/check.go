package pybuild

import (
	"sync"
	"sync/atomic"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/order"
)

// Bits of the flags of CheckStart; the same numbers are in _checks/sanitize.py.
const checkObserve = 1

// check is the one check of a process: a checker that follows the runtime, and
// what people want to know of its reports besides.
type check struct {
	flags   int64
	checker *order.Checker
	stop    func()
	rt      *hal.Runtime

	mu      sync.Mutex
	last    *hal.Thread // the latest that is known
	id      uint32      // of the latest operation
	found   []finding
	taken   int64
	streams map[streamKey]uint32 // where they were made
	blocks  map[uint64]uint32    // where live memory was allocated, by its start
	sizes   [sizesKept]size
	events  [eventsKept]*hal.Event
	past    order.Stats // of checkers before, on other backends

	seen atomic.Uint64 // reports collected, as the checker counts them
}

const (
	// sizesKept is for how many operations it is known how much they move.
	sizesKept = 1 << 14
	// eventsKept is how many events of the latest records are known.
	eventsKept = 1 << 10
	// streamsKept bounds for how many streams it is known where they were made.
	streamsKept = 1 << 16
)

type size struct {
	id    uint32
	bytes uint64
}

type streamKey struct {
	device int
	index  uint64
}

// finding is a report with the memory it is about.
type finding struct {
	order.Report
	kind          hal.MemoryKind
	start, size   uint64 // of the block, or of what an operation works on
	site          uint32 // where the block was allocated
	first, second uint64 // bytes that the operations move
}

// checking is nil unless a check is on.
var checking *check

// CheckStart begins to look for accesses that nothing orders. The runtime need
// not be open yet. Flag 1 asks for what functions write without saying so,
// under deterministic schedules. There is one check at a time.
func CheckStart(flags int64) (zero int64, err error) {
	defer guard(&err)
	if checking != nil {
		return 0, raise(driver.Errorf(driver.InvalidValue, "start check", "a check is on already; stop it first"))
	}
	checking = &check{flags: flags, streams: map[streamKey]uint32{}, blocks: map[uint64]uint32{}}
	positions++
	if rt != nil {
		followCheck(rt)
	}
	return 0, nil
}

// CheckStop ends it; reports that were not taken are lost. Again does nothing.
func CheckStop() (zero int64, err error) {
	defer guard(&err)
	if checking == nil {
		return 0, nil
	}
	checking.leave()
	checking = nil
	if positions--; rt != nil {
		setSites(rt)
	}
	return 0, nil
}

// CheckFlags changes the flags of the check that is on.
func CheckFlags(flags int64) (zero int64, err error) {
	defer guard(&err)
	if c := checking; c != nil && c.flags != flags {
		c.flags = flags
		if c.checker != nil && c.rt.Name() == "host" {
			c.inspect()
		}
	}
	return 0, nil
}

// followCheck makes the check, if one is on, follow a runtime.
func followCheck(r *hal.Runtime) {
	setSites(r)
	if checking == nil {
		return
	}
	checking.leave()
	checking.follow(r)
}

func (c *check) follow(r *hal.Runtime) {
	checker := order.New()
	c.rt, c.checker = r, checker
	c.seen.Store(0)
	c.stop = r.Listen(func(o hal.Operation) { c.handle(checker, o) })
	c.inspect()
}

// inspect asks for what the flags want to be found when operations run.
func (c *check) inspect() {
	checker := c.checker
	i := &hal.Inspector{Source: checker.Source, Refilled: func(id uint32, source hal.Range) {
		checker.Refilled(id, source)
		c.collect(checker, nil)
	}}
	if c.flags&checkObserve != 0 && c.rt.Name() == "host" { // elsewhere the host sees no device's memory
		i.Observed = func(id uint32, changed []hal.Range) {
			checker.Observed(id, changed)
			c.collect(checker, nil)
		}
	}
	c.rt.SetInspector(i)
}

// leave ends what follow began.
func (c *check) leave() {
	if c.checker == nil {
		return
	}
	c.rt.SetInspector(nil)
	c.stop()
	c.finish()
	s := c.checker.Stats()
	c.past.Operations += s.Operations
	c.past.Reports += s.Reports
	c.past.Dropped += s.Dropped
	c.checker = nil
}

// handle is told every operation, on any thread.
func (c *check) handle(checker *order.Checker, o hal.Operation) {
	c.mu.Lock()
	if o.Thread != nil {
		c.last = o.Thread
	} else {
		o.Thread = c.last // what the garbage collector gives back is given back on some thread
	}
	c.id = o.ID
	switch o.Kind {
	case "record":
		c.events[o.Event.ID()%eventsKept] = o.Event
	case "copy", "fill":
		if len(o.Writes) > 0 {
			c.sizes[o.ID%sizesKept] = size{o.ID, o.Writes[0].Size}
		}
	case "new stream":
		if len(c.streams) == streamsKept {
			clear(c.streams)
		}
		c.streams[streamKey{o.Stream.Device().Ordinal(), o.Stream.Index()}] = o.Site
	case "new memory", "allocate":
		for _, r := range o.Writes {
			c.blocks[r.Start] = o.Site
		}
	}
	c.mu.Unlock()
	checker.Handle(o)
	if checker.Found() != c.seen.Load() {
		c.collect(checker, &o)
	}
	if o.Kind == "free memory" {
		c.mu.Lock()
		for _, r := range o.Writes {
			delete(c.blocks, r.Start)
		}
		c.mu.Unlock()
	}
}

// collect takes new reports while what they are about still exists. o is the
// operation that brought them, nil if it is not known.
func (c *check) collect(checker *order.Checker, o *hal.Operation) {
	n := checker.Found()
	for _, r := range checker.Take() {
		f := finding{Report: r}
		at := r.Range.Start
		f.kind, f.start, f.size, _ = c.rt.Lookup(at)
		if f.kind == hal.Pageable && o != nil {
			for _, list := range [][]hal.Range{o.Reads, o.Writes} {
				for _, a := range list {
					if at-a.Start < a.Size {
						f.start, f.size = a.Start, a.Size
					}
				}
			}
			if o.Kind == "free" { // it is not known any more
				f.kind = hal.DeviceMemory
			}
		}
		c.mu.Lock()
		if !c.stands(f.Reason.Record) {
			f.Reason.Record = nil
		}
		f.site = c.blocks[f.start]
		for i, a := range []order.Access{r.First, r.Second} {
			if s := c.sizes[a.ID%sizesKept]; s.id == a.ID {
				*[]*uint64{&f.first, &f.second}[i] = s.bytes
			}
		}
		c.found = append(c.found, f)
		c.mu.Unlock()
	}
	c.seen.Store(n)
}

// stands reports whether a record is still its event's latest one, so that a
// wait for the event now is a wait for it.
func (c *check) stands(record *order.Note) bool {
	if record == nil || record.Event == 0 {
		return false
	}
	e := c.events[record.Event%eventsKept]
	return e != nil && e.ID() == record.Event && e.Version() == record.Version && !e.Closed() &&
		e.Options().Kind != hal.Future && !e.Options().NotWaitable
}

func (c *check) finish() {
	c.checker.Finish()
	c.collect(c.checker, nil)
}

// CheckTake returns what was found since the last call: a list of findingRecord.
// With finish, waits for a record that was never enqueued are given up first.
func CheckTake(finish int64) (findings string, err error) {
	defer guard(&err)
	list := []findingRecord{}
	c := checking
	if c == nil {
		return encode(list), nil
	}
	if c.checker != nil {
		if finish != 0 {
			c.checker.Finish()
		}
		c.collect(c.checker, nil)
	}
	c.mu.Lock()
	found := c.found
	c.found = nil
	c.taken += int64(len(found))
	c.mu.Unlock()
	for i := range found {
		list = append(list, found[i].record())
	}
	return encode(list), nil
}

// CheckFound returns how many reports wait to be taken, but for some that only
// CheckTake finds.
func CheckFound() (n int64, err error) {
	defer guard(&err)
	if checking == nil {
		return 0, nil
	}
	checking.mu.Lock()
	defer checking.mu.Unlock()
	return int64(len(checking.found)), nil
}

// CheckForget says that a range is no longer the memory it was: what worked on
// it has nothing to do with what will.
func CheckForget(addr, n uint64) (zero int64, err error) {
	defer guard(&err)
	if c := checking; c != nil && c.checker != nil {
		c.checker.Handle(hal.Operation{ID: c.id, Kind: "new memory", Host: true, Thread: caller(),
			Writes: []hal.Range{{Start: addr, Size: n}}})
	}
	return 0, nil
}
