package host

import (
	"time"

	"halstream/hal/driver"
)

// needed finds a ready lane that must run before the head operation of s can
// end; nil if there is none. The way to it is kept: most of it is the same when
// it is asked for again, and it may be long.
func (d *deterministic) needed(s *Stream) *lane {
	if s == nil {
		return nil
	}
	if s.legacy && s.state == idle {
		// Its state includes that of the streams ordered with it.
		for t := s.dev.active; t != nil; t = t.next {
			if t.ordered {
				s = t
				break
			}
		}
	}
	if len(d.way) > 0 && d.way[0].on != s {
		d.way = d.way[:0]
	}
	for {
		n := len(d.way)
		if n > 0 && d.way[n-1].on.completed.Load() != d.way[n-1].seq {
			d.way = d.way[:n-1] // it has moved: whoever waits for it may not any more
			continue
		}
		next := s
		if n > 0 {
			last := d.way[n-1].on
			switch last.state {
			case ready:
				return d.byOwn[last]
			case blocked:
				next = holder(last)
			default:
				return nil
			}
			if next == nil {
				return nil
			}
		}
		d.way = append(d.way, place{next, next.completed.Load()})
	}
}

// holder returns a stream that must move before the head operation of the
// blocked stream s can run, nil if that waits for something else.
func holder(s *Stream) *Stream {
	o := s.q.front()
	if o.ep == nil || o.ep.open {
		if o.kind == opWait {
			return o.on
		}
		return nil
	}
	// The legacy order puts the work of the open epoch before it.
	var best *Stream
	for t := s.dev.active; t != nil; t = t.next {
		if t == s {
			continue
		}
		if h := t.q.front(); h.ep == nil || !h.ep.open {
			continue
		}
		if t.state == ready {
			return t
		}
		if t.state == blocked && t.q.front().kind == opWait {
			best = t
		}
	}
	return best
}

// note keeps a call of the program, once for a wait that looks in slices, and
// reports whether it is such another look.
func (d *deterministic) note(why Reason, s *Stream, thread uint64, limit int64) bool {
	number := d.known[thread]
	if number == 0 {
		number = uint32(len(d.known)) + 1
		d.known[thread] = number
	}
	c := driver.Call{Thread: number, Kind: why.String()}
	if s != nil {
		if l := d.byOwn[s]; l != nil {
			c.Stream = l.number
		}
	}
	if why == Enqueued && d.added != "" {
		c.Kind = d.added
	}
	d.added = ""
	if why == Blocked {
		at := place{s, s.submitted.Load()}
		if d.waits[thread] == at {
			return limit == 0
		}
		d.waits[thread] = at
	} else {
		delete(d.waits, thread)
	}
	d.calls = append(d.calls, c)
	d.steps = append(d.steps, driver.Step{Call: uint32(len(d.calls))})
	if p, ok := d.policy.(*pct); ok {
		p.ran(&p.host)
	}
	return false
}

// all is the point of a device under a deterministic schedule: one call,
// whatever is pending. The engine's lock is held.
func (d *Device) all() driver.Point {
	a := &deviceAll{dev: d}
	for s := d.active; s != nil; s = s.next {
		a.places = append(a.places, place{s, s.submitted.Load()})
	}
	return a
}

type deviceAll struct {
	dev    *Device
	places []place
}

func (a *deviceAll) reached() bool {
	for _, at := range a.places {
		if !at.reached() {
			return false
		}
	}
	return true
}

// Wait implements driver.Point.
func (a *deviceAll) Wait(limit int64) bool {
	e := a.dev.eng
	e.Lock()
	defer e.Unlock()
	s := a.dev.default_
	if len(a.places) > 0 {
		s = a.places[0].on
	}
	e.sched.Point(Blocked, s, a.reached, limit)
	return a.reached()
}

// after notes a limit of a wait.
func (d *deterministic) after(ns int64, s *Stream, seq uint64, v *Event) {
	d.timers = append(d.timers, limit{d.clock.now + ns, s, seq, v})
}

// expire lets the wait whose limit comes first go on, of those that have begun
// to wait, and reports whether there was one.
func (d *deterministic) expire() bool {
	first := -1
	kept := d.timers[:0]
	for _, t := range d.timers {
		if t.s.completed.Load() >= t.seq {
			continue // passed in time
		}
		kept = append(kept, t)
		if t.s.state == blocked && t.s.completed.Load()+1 == t.seq && (first < 0 || t.at < kept[first].at) {
			first = len(kept) - 1
		}
	}
	d.timers = kept
	if first < 0 {
		return false
	}
	t := kept[first]
	d.timers = append(kept[:first], kept[first+1:]...)
	d.clock.now = max(d.clock.now, t.at)
	before := t.s.completed.Load()
	d.eng.expired(t.s, t.seq, t.v)
	return t.s.completed.Load() > before
}

// Where the program waits for the device without asking the runtime (for a flag
// that a function sets, say), the device goes on by itself, as real ones do,
// once no thread of the program has done anything for a while.
var aloneTick = 50 * time.Millisecond

const aloneTicks = 5

func (d *deterministic) goOn() {
	tick := time.NewTicker(aloneTick)
	defer tick.Stop()
	calm, seen := 0, 0
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
		}
		d.r.Lock()
		quiet := len(d.steps) == seen && !d.moving && len(d.idle) == 0 && (d.ready > 0 || len(d.timers) > 0)
		seen = len(d.steps)
		d.r.Unlock()
		if !quiet || !d.caller.Asleep() {
			calm = 0
			continue
		}
		if calm++; calm < aloneTicks {
			continue
		}
		calm = 0
		d.r.Lock()
		if len(d.steps) == seen && !d.moving {
			d.alone = true
			d.move(nil, nil, true, driver.Forever)
			d.alone = false
		}
		d.r.Unlock()
	}
}
