package host

import (
	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// WorkPending implements driver.Simulator.
func (d *Driver) WorkPending() <-chan struct{} {
	d.eng.Lock()
	defer d.eng.Unlock()
	for _, dev := range d.devices {
		if dev.active != nil {
			return alreadyClosed
		}
	}
	if d.eng.pending == nil {
		d.eng.pending = make(chan struct{})
	}
	return d.eng.pending
}

// alreadyClosed is a channel that is closed.
var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Quiet implements driver.Simulator.
func (d *Driver) Quiet() (quiet bool, mark uint64) {
	const prime = 1099511628211
	d.eng.Lock()
	defer d.eng.Unlock()
	quiet = true
	for _, dev := range d.devices {
		for s := dev.active; s != nil; s = s.next {
			if quiet && s.need() == driver.NeedNothing {
				quiet = false
			}
			for _, n := range []uint64{uint64(dev.ordinal), s.id, s.words.Completed.Load(), s.words.Submitted.Load(), s.pending()} {
				mark = (mark ^ n) * prime
			}
		}
	}
	return quiet, mark
}

// Busy implements driver.Simulator.
func (d *Driver) Busy() []driver.Busy {
	d.eng.Lock()
	defer d.eng.Unlock()
	var found []driver.Busy
	for _, dev := range d.devices {
		for s := dev.active; s != nil; s = s.next {
			found = append(found, s.busy())
		}
	}
	return found
}

// need says what the head operation of a stream with work waits for.
func (s *Stream) need() driver.Need {
	o := s.q.front()
	switch s.state {
	case sched.Running:
		switch o.kind {
		case opLaunch, opBody:
			return driver.NeedStream
		case opCall:
			return driver.NeedFunction
		case opReport:
			return driver.NeedReport
		}
		if w, ok := o.ref.(*nativeWork); ok && w.thread.Load() != 0 {
			return driver.NeedNative
		}
		return driver.NeedNothing
	case sched.Stalled:
	default:
		return driver.NeedNothing // ready, or queued for an engine
	}
	if o.ep != nil && !o.ep.open {
		return driver.NeedOrder
	}
	switch o.kind {
	case opGate:
		return driver.NeedGate
	case opLaunch:
		return driver.NeedStream
	case opWait, opWaitSet:
		if s.limited() {
			return driver.NeedNothing
		}
		if o.kind == opWait {
			return driver.NeedStream
		}
		return driver.NeedEvent
	case opWaitValue:
		if v := o.ref.(*valueOp); v.shared || v.met() {
			return driver.NeedNothing // another process may write it, or somebody did
		}
		return driver.NeedValue
	}
	return driver.NeedNothing
}

func (s *Stream) busy() driver.Busy {
	o := s.q.front()
	b := driver.Busy{
		At:      driver.Place{Device: s.dev.ordinal, Stream: s.id, Seq: s.words.Completed.Load() + 1},
		Title:   s.title(),
		Pending: s.pending(),
		Head:    o.description(),
		Tag:     o.tag,
		Site:    s.site(),
		Need:    s.need(),
	}
	switch b.Need {
	case driver.NeedGate:
		b.Number = o.ref.(*gate).id
	case driver.NeedEvent:
		ev := o.ref.(*Event)
		b.Number = ev.opts.ID
		if ev.recorded && !ev.at.reached() {
			b.On = []driver.Place{ev.at.name()}
		}
	case driver.NeedFunction, driver.NeedReport:
		b.Number = o.arg
	case driver.NeedNative:
		b.Number = uint64(o.ref.(*nativeWork).thread.Load())
	case driver.NeedStream:
		if l := s.started(); l != nil {
			b.On = l.ends()
			return b
		}
		if ev, ok := o.ref.(*Event); ok {
			b.Number = ev.opts.ID
		}
		if o.kind == opLaunch {
			b.Head += ", behind an earlier launch of the same executable"
		}
		b.On = []driver.Place{place{o.on, o.arg}.name()}
	case driver.NeedOrder:
		b.On = s.before()
	case driver.NeedValue:
		b.Number = o.ref.(*valueOp).Addr
	}
	return b
}

// before returns the places that the legacy order puts before the head
// operation of s: the last ones of the epoch that is open.
func (s *Stream) before() []driver.Place {
	var places []driver.Place
	for t := s.dev.active; t != nil; t = t.next {
		if ep := t.q.front().ep; t != s && ep != nil && ep.open {
			places = append(places, place{t, t.words.Completed.Load() + 1}.name())
		}
	}
	return places
}

// description says what an operation is.
func (o *op) description() string {
	switch o.kind {
	case opRecord:
		return "a record of event " + name(o.ref.(*Event).opts.ID)
	case opReset:
		return "a reset of event " + name(o.ref.(*Event).opts.ID)
	case opWait:
		switch ref := o.ref.(type) {
		case *Event:
			return "a wait for event " + name(ref.opts.ID)
		case recordedPlace:
			return o.waitsForPlace()
		}
		return "a wait for a stream"
	case opWaitSet:
		return "a wait for event " + name(o.ref.(*Event).opts.ID)
	case opGate:
		return "gate " + name(o.ref.(*gate).id)
	case opCall, opPass:
		return "a function"
	case opReport, opReportPass:
		return "a report"
	case opWork:
		return title(o.ref.(work))
	case opWriteValue:
		return "a write of a value"
	case opWaitValue:
		return o.ref.(*valueOp).description()
	case opLaunch:
		return "a launch of a graph"
	case opLaneEnd:
		return "the end of a branch of a graph"
	case opBody:
		return "the body of a node of a graph"
	}
	return "an empty operation"
}

// name names the operation at a place. The lock is held.
func (p place) name() driver.Place {
	p = p.launched()
	return driver.Place{Device: p.on.dev.ordinal, Stream: p.on.id, Seq: p.seq}
}

// Missing implements driver.Placed.
func (p point) Missing() []driver.Place {
	p.eng.Lock()
	defer p.eng.Unlock()
	if p.at.reached() {
		return nil
	}
	return []driver.Place{p.at.name()}
}

// Missing implements driver.Placed.
func (a *deviceAll) Missing() []driver.Place {
	a.dev.eng.Lock()
	defer a.dev.eng.Unlock()
	var places []driver.Place
	for _, at := range a.places {
		if !at.reached() {
			places = append(places, at.name())
		}
	}
	return places
}

// Number returns the gate's number in texts.
func (g *gate) Number() uint64 { return g.id }
