package sched

import (
	"math"
	"time"

	"halstream/hal/driver"
)

// fence is the n-th operation of a stream.
type fence struct {
	on  Stream
	seq uint64
}

// needed returns a ready stream that must move before the head operation of s can
// complete; nil if there is none. The chain of streams that wait for one another is
// kept, since it may be long and changes little between two calls.
func (d *deterministic) needed(s Stream) *streamRun {
	if s == nil {
		return nil
	}
	if len(d.chain) > 0 && d.chain[0].on != s {
		d.chain = d.chain[:0]
	}
	for {
		n := len(d.chain)
		if n > 0 && d.chain[n-1].on.Completed() != d.chain[n-1].seq {
			d.chain = d.chain[:n-1] // it has moved: the one before may not wait for it any more
			continue
		}
		next := s
		if n > 0 {
			last := d.chain[n-1].on
			switch last.State() {
			case Ready:
				return d.byStream[last]
			case Stalled, Idle:
				next = last.Holder()
			default:
				return nil
			}
			if next == nil {
				return nil
			}
		}
		d.chain = append(d.chain, fence{next, next.Completed()})
	}
}

// note records a call of the program, once for a wait that consists of slices, and
// reports whether it is a later slice.
func (d *deterministic) note(why Reason, s Stream, thread uint64, limit int64) bool {
	kind := why.String()
	if why == Enqueued && d.added != "" {
		kind = d.added
	}
	d.added = ""
	if why == Blocked && s != nil { // nil: the wait is for something that is reached
		at := fence{s, s.Enqueued()}
		if d.waits[thread] == at {
			return limit == 0
		}
		d.waits[thread] = at
	} else {
		delete(d.waits, thread)
	}
	d.moves++
	if d.logged {
		d.log(kind, s, thread)
	}
	d.policy.called()
	return false
}

// log keeps a call of the program.
func (d *deterministic) log(kind string, s Stream, thread uint64) {
	number := d.threads[thread]
	if number == 0 {
		number = uint32(len(d.threads)) + 1
		d.threads[thread] = number
	}
	c := driver.Call{Thread: number, Kind: kind}
	if l := d.byStream[s]; l != nil {
		c.Stream = l.number
	}
	d.calls = append(d.calls, c)
	d.steps = append(d.steps, driver.Step{Call: uint32(len(d.calls))})
}

// expire moves the time to the first pending timer and fires it. It reports
// false if there is none.
func (d *deterministic) expire() bool {
	t := d.clock.due(math.MaxInt64)
	if t == nil {
		return false
	}
	d.fire(t)
	return true
}

// advance moves the time to a later moment and fires the timers until then.
func (d *deterministic) advance(moment int64) {
	for t := d.clock.due(moment); t != nil; t = d.clock.due(moment) {
		d.fire(t)
	}
	d.clock.now = max(d.clock.now, moment)
}

func (d *deterministic) fire(t *virtualTimer) {
	d.clock.now = max(d.clock.now, t.at)
	d.r.Unlock()
	t.f()
	d.r.Lock()
}

// unattendedTicks is after how many quiet ticks the device moves without a call. The
// program may wait for the device outside the runtime, for instance for a flag that a
// function sets, and real devices move without calls.
const unattendedTicks = 5

func (d *deterministic) runUnattended() {
	tick := time.NewTicker(d.tick)
	defer tick.Stop()
	ticks, seen := 0, 0
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
		}
		d.r.Lock()
		quiet := d.moves == seen && !d.dispatching && len(d.idle) == 0 && (d.ready > 0 || len(d.clock.timers) > 0)
		seen = d.moves
		d.r.Unlock()
		if !quiet || !d.caller.Asleep() {
			ticks = 0
			continue
		}
		if ticks++; ticks < unattendedTicks {
			continue
		}
		ticks = 0
		d.r.Lock()
		if d.moves == seen && !d.dispatching {
			d.unattended = true
			d.dispatch(nil, nil, true, driver.Forever)
			d.unattended = false
		}
		d.r.Unlock()
	}
}
