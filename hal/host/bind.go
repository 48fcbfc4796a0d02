package host

import "halstream/hal/driver"

// program returns the program of the nodes of an executable.
func (d *Driver) program(nodes []driver.GraphNode) *program {
	p := d.compile(nodes, 0)
	if len(p.events) == 0 {
		return p
	}
	for i := range p.lanes {
		x := p.lanes[i].on.extra()
		x.program, x.steps = p, uint64(len(p.lanes[i].steps))
	}
	return p
}

// enqueue gives a launch its place behind the earlier ones of its program, and binds its events: as outside of
// a graph a record stands from the call on, and a wait is for the record that is the latest one then. The launches
// of a program run in the order of the calls and put the same operations on its lanes each time, so the
// places are known although the nodes are not there yet. The lock is held.
func (l *launch) enqueue() {
	p := l.prog
	l.number = p.launches
	p.launches++
	p.queue = append(p.queue, l)
	for i, step := range p.events {
		ev := step.event
		switch {
		case step.records:
			ev.at, ev.recorded = l.placeOf(step), true
		case ev.at.on != nil && !ev.at.reached():
			if l.waits == nil {
				l.waits = make([]place, len(p.events))
			}
			l.waits[i] = ev.at
			ev.waits++
		}
	}
}

// placeOf returns the place of a step in this launch.
func (l *launch) placeOf(step eventStep) place {
	lane := &l.prog.lanes[step.at.lane]
	return place{lane.on, lane.on.first + l.number*uint64(len(lane.steps)) + step.at.step}
}

// bindWait completes the wait *o of a node, which waits for nothing where the record was reached meanwhile.
func (l *launch) bindWait(o *op) {
	ev, at := o.ref.(*Event), place{}
	if l.waits != nil {
		at = l.waits[o.arg]
	}
	switch {
	case !at.reached():
		*o = op{kind: opWait, on: at.on, arg: at.seq, ref: ev, limit: driver.Forever}
		return
	case at.on != nil:
		ev.waits--
	}
	*o = op{kind: opNop}
}

// launchBehind returns the operation that has to end before the launch *o begins: that of an earlier launch of
// the same executable. It is of no stream if there is none.
func (o *op) launchBehind() place {
	if at := (place{o.on, o.arg}); !at.reached() {
		return at
	}
	l := o.ref.(*launch)
	switch p := l.prog; {
	case p.running != nil:
		return p.running.at
	case p.queue[0] != l: // one between the two was dropped
		return p.queue[0].at
	}
	return place{}
}

// dropLaunch makes a launch one that will not run. Who waits for records of it goes on when the
// earlier launches have ended. The lock is held.
func (e *engine) dropLaunch(l *launch) {
	l.dropped = true
	for i, at := range l.waits {
		if at.on != nil {
			l.prog.events[i].event.waits--
		}
	}
	e.passDropped(l.prog)
	l.End()
}

// passDropped lets the lanes of a program pass the operations of the launches that are next and were
// dropped. The lock is held.
func (e *engine) passDropped(p *program) {
	for p.running == nil && len(p.queue) > 0 && p.queue[0].dropped {
		l := p.queue[0]
		p.queue = p.queue[1:]
		for i := range p.lanes {
			on := p.lanes[i].on
			for range p.lanes[i].steps {
				on.words.Submitted.Add(1)
				if !e.parallel.Load() {
					e.sched.Added(on, "") // no call of the program
				}
			}
			e.releaseUntil(on, on.words.Completed.Add(uint64(len(p.lanes[i].steps))))
		}
		for _, step := range p.events {
			if step.records {
				at := l.placeOf(step)
				e.stamp(&op{kind: opRecord, on: at.on, arg: at.seq, ref: step.event})
			}
		}
	}
}

// launched returns the place where a launch is that has not begun, for a place on one of its lanes; else p.
func (p place) launched() place {
	if p.on == nil || p.on.extras == nil || p.on.extras.program == nil {
		return p
	}
	number := (p.seq - p.on.first - 1) / p.on.extras.steps
	for _, l := range p.on.extras.program.queue {
		if l.number == number {
			return l.at
		}
	}
	return p
}
