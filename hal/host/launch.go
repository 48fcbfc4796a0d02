package host

import (
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// executable is a graph that can be launched.
type executable struct {
	eng  *engine
	drv  *Driver
	prog *program
	last place // of the launch that was enqueued last
}

// launch is one run of an executable. It is what an opLaunch refers to.
type launch struct {
	driver.GraphLaunch
	prog *program
	// left is how many lanes have not ended, while the run is in progress.
	left int
	// body is what this is a run of, nil for a whole graph.
	body *bodyRun
	// at is the operation of the launch, number how many launches of its program were enqueued before.
	at     place
	number uint64
	// waits are the records that the nodes wait for, one for each element of the program's events.
	waits []place
	// dropped says that the launch will not run.
	dropped bool
}

// Instantiate implements driver.GraphDriver.
func (d *Driver) Instantiate(nodes []driver.GraphNode) (driver.Executable, error) {
	return &executable{eng: d.eng, drv: d, prog: d.program(nodes)}, nil
}

// Update implements driver.Executable. Launches that were enqueued before keep their nodes.
func (x *executable) Update(nodes []driver.GraphNode, commit func() bool) error {
	prog := x.drv.program(nodes)
	x.eng.Lock()
	defer x.eng.Unlock()
	if !commit() {
		return driver.ErrUpdated
	}
	x.prog = prog
	return nil
}

// Close implements driver.Executable: there is nothing to give up.
func (x *executable) Close() {}

// Launch implements driver.Executable.
func (x *executable) Launch(stream driver.Stream, l driver.GraphLaunch) error {
	s, e := stream.(*Stream), x.eng
	e.Lock()
	defer e.Unlock()
	if e.closed {
		l.End()
		return errClosed("launch graph")
	}
	if !l.Current() {
		l.End()
		return driver.ErrUpdated
	}
	run := &launch{GraphLaunch: l, prog: x.prog, at: place{s, s.words.Submitted.Load() + 1}}
	run.enqueue()
	o := op{kind: opLaunch, tag: l.Tag(), ref: run}
	if x.last.on != nil && x.last.on != s && !x.last.reached() {
		o.on, o.arg = x.last.on, x.last.seq
	}
	x.last = run.at
	e.add(s, &o)
	if !e.parallel.Load() {
		x.prog.number(e.sched)
	}
	e.point(sched.Enqueued, s, nil, 0)
	return nil
}

// begin puts the nodes of a launch, the head operation of s, on the lanes of its program,
// and reports whether there are any: s stays at the launch until they have ended. The
// lock is held.
func (l *launch) begin(s *Stream) bool {
	p := l.prog
	p.queue, p.running = p.queue[1:], l
	l.Begin()
	for _, c := range p.resets {
		atomic.StoreUint32(wordAt(c.Addr), c.Initial)
	}
	if !l.spread(s) {
		p.running = nil
		l.End()
		return false
	}
	return true
}

// spread puts the nodes of a run, whose operation is the head of s, on the lanes of its program,
// and reports whether there are any. The lock is held.
func (l *launch) spread(s *Stream) bool {
	e := s.eng
	lanes := l.prog.lanes
	l.left = len(lanes)
	if l.left == 0 {
		return false
	}
	for i := range lanes {
		lanes[i].base = lanes[i].on.words.Submitted.Load()
		lanes[i].on.extra().parent = s
	}
	var runs []driver.NodeRun
	if l.body == nil {
		runs = l.NodeRuns()
	}
	tag := l.Tag() // 0 where nobody listens
	for i := range lanes {
		lane := &lanes[i]
		for j := range lane.steps {
			o := lane.steps[j]
			var run driver.NodeRun
			if node := lane.nodes[j]; node >= 0 && runs != nil {
				run = runs[node]
			}
			switch o.kind {
			case opWait:
				o.arg += lanes[o.tag].base
			case opCall:
				o.ref = l.GraphLaunch
				if run.Sink != nil {
					o.ref = run.Sink
				}
			case opRecord:
				o.on, o.arg = lane.on, lane.on.words.Submitted.Load()+1
			case opWaitSet:
				l.bindWait(&o)
			case opWork:
				switch w := o.ref.(type) {
				case *copyWork:
					w.share.taken.Store(0)
					w.share.done.Store(0)
					w.Before = run.Before
				case *nativeWork:
					w.Before, w.After = run.Before, run.After
				}
			case opBody:
				o.ref = newBodyRun(o.ref.(*body), l.GraphLaunch)
			case opLaneEnd:
				o.ref = l
			}
			if o.tag = run.Tag; l.body != nil && tag != 0 && lane.nodes[j] >= 0 {
				o.tag = tag + 1 + driver.Tag(lane.nodes[j])
			}
			e.add(lane.on, &o)
		}
	}
	return true
}

// laneEnded counts a lane of a launch as ended; after the last one the launch is done.
// The lock is held.
func (e *engine) laneEnded(l *launch, lane *Stream) {
	s := lane.parent()
	lane.extras.parent = nil
	l.left--
	if l.left > 0 {
		return
	}
	if b := l.body; b == nil {
		l.prog.running = nil
		e.passDropped(l.prog)
		l.End()
	} else if b.kind == driver.WhileNode {
		e.ready(s) // which looks at the condition again
		return
	}
	e.finish(s)
	e.advance(s)
}

// inBody reports whether s is a lane of a body in progress.
func (s *Stream) inBody() bool {
	if p := s.parent(); p != nil {
		l := p.started()
		return l != nil && l.body != nil
	}
	return false
}

// lane returns a lane of the run in progress that has not ended. The lock is held.
func (l *launch) lane() *Stream {
	for i := range l.prog.lanes {
		if on := l.prog.lanes[i].on; on.parent() != nil && on.state != sched.Idle {
			return on
		}
	}
	return nil
}

// started reports whether the head operation of s is a launch in progress.
func (s *Stream) started() *launch {
	if s.state != sched.Running {
		return nil
	}
	switch ref := s.q.front().ref.(type) {
	case *launch:
		return ref
	case *bodyRun:
		return &ref.run
	}
	return nil
}

// ends returns the places at which the lanes of the run in progress end. The lock is held.
func (l *launch) ends() []driver.Place {
	var places []driver.Place
	for i := range l.prog.lanes {
		lane := &l.prog.lanes[i]
		if on := lane.on; on.parent() != nil {
			places = append(places, place{on, lane.base + uint64(len(lane.steps))}.name())
		}
	}
	return places
}

// site returns where the program made the node that a lane is at, 0 for another stream. The
// lock is held.
func (s *Stream) site() uint32 {
	if _, lane, at := s.step(); lane != nil {
		return lane.sites[at]
	}
	return 0
}

// step returns the run that a lane belongs to and the step that it is at; nil for another stream. The
// lock is held.
func (s *Stream) step() (*launch, *lane, uint64) {
	p := s.parent()
	if p == nil {
		return nil, nil, 0
	}
	l := p.started()
	if l == nil {
		return nil, nil, 0
	}
	for i := range l.prog.lanes {
		lane := &l.prog.lanes[i]
		if at := s.words.Completed.Load() - lane.base; lane.on == s && at < uint64(len(lane.sites)) {
			return l, lane, at
		}
	}
	return nil, nil, 0
}

// node says which node of a launch a lane is at, and what that does. The lock is held.
func (s *Stream) node(depth int) string {
	l, lane, at := s.step()
	if lane == nil || lane.nodes[at] < 0 {
		return s.head(depth)
	}
	titles, node := l.GraphLaunch, lane.nodes[at]
	s.eng.titles = append(s.eng.titles, func() string { return titles.NodeTitle(node) })
	return titleMark + ", " + s.head(depth)
}
