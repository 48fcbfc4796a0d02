package host

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/touch"
)

// executable is a graph that can be launched.
type executable struct {
	eng  *engine
	drv  *Driver
	prog *program
	last place // of the launch that was enqueued last
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
	s.seal()
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

// program is a graph in the form in which the host device runs it: lanes, each a stream
// that the device makes for the graph. Nodes on one lane follow each other; a node that
// comes after one on another lane waits for it as streams wait for events. So branches
// run as streams do, under every schedule.
type program struct {
	lanes []lane
	// end is the number behind those of the nodes and of all bodies in them.
	end int
	// resets are the words that are set when a launch begins, also those of bodies.
	resets []driver.GraphCondition
	// events are the steps that record events and wait for them, in the order of the nodes.
	events []eventStep
	// launches is how many launches were enqueued. Those that have not begun are in the queue,
	// in the order of the calls; running is the one in progress, nil if there is none.
	launches uint64
	queue    []*launch
	running  *launch
}

// lane is a stream with the operations that each launch puts on it.
type lane struct {
	on    *Stream
	steps []op
	sites []uint32 // of the nodes, 0 where there is none
	nodes []int    // the number of the node of each step, -1 for a wait for another lane and the end
	base  uint64   // operations ever put on it, when the launch in progress began
	tail  int      // the node put on it last
}

// eventStep is a step of a lane that records an event, or waits for it.
type eventStep struct {
	event   *Event
	records bool
	at      at
}

// at is where a node is: the n-th step of a lane; of no lane if it was left out.
type at struct {
	lane int
	step uint64
}

// firstLane is above every number of a stream of the program.
const firstLane = 1 << 32

// reserveMost is up to how many operations a lane keeps memory for, from launch to launch.
const reserveMost = 64

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

// compile assigns nodes to lanes. They are numbered from first on, and the nodes of their bodies behind them.
func (d *Driver) compile(nodes []driver.GraphNode, first int) *program {
	p := &program{end: first + len(nodes)}
	places := make([]at, len(nodes))
	after := leaveOut(nodes)
	latest := map[int]uint64{}
	for i := range nodes {
		n := &nodes[i]
		if after[i] == nil && n.Kind == driver.EmptyNode {
			places[i].lane = -1
			continue
		}
		dev := d.devices[n.Device]
		on := -1
		for _, dep := range after[i] {
			l := places[dep].lane
			if p.lanes[l].tail == dep && p.lanes[l].on.dev == dev && p.lanes[l].on.level == n.Level {
				on = l
				break
			}
		}
		if on < 0 {
			on = len(p.lanes)
			s := dev.newStream()
			s.level, s.id = n.Level, firstLane+d.eng.lanes.Add(1)
			p.lanes = append(p.lanes, lane{on: s})
		}
		for _, dep := range after[i] {
			if b := places[dep]; b.lane != on {
				latest[b.lane] = max(latest[b.lane], b.step)
			}
		}
		for _, dep := range after[i] { // in the order of the nodes, so that runs are repeatable
			if l := places[dep].lane; latest[l] > 0 {
				p.add(on, op{kind: opWait, on: p.lanes[l].on, arg: latest[l], tag: driver.Tag(l), limit: driver.Forever}, -1, n.Site)
				delete(latest, l)
			}
		}
		if n.Kind.Conditional() {
			p.add(on, p.body(d, n), first+i, n.Site)
		} else {
			p.add(on, nodeOp(n, p.lanes[on].on), first+i, n.Site)
		}
		p.lanes[on].tail = i
		places[i] = at{on, uint64(len(p.lanes[on].steps))}
		if n.Kind == driver.RecordNode || n.Kind == driver.WaitNode {
			p.lanes[on].steps[places[i].step-1].arg = uint64(len(p.events))
			p.events = append(p.events, eventStep{n.Event.(*Event), n.Kind == driver.RecordNode, places[i]})
		}
	}
	for l := range p.lanes {
		p.add(l, op{kind: opLaneEnd}, -1, 0)
		if n := len(p.lanes[l].steps); n <= reserveMost {
			p.lanes[l].on.q.reserve(n)
		}
	}
	return p
}

// body returns the operation of a node with a condition.
func (p *program) body(d *Driver, n *driver.GraphNode) op {
	b := &body{kind: n.Kind, word: n.Condition.Addr}
	if n.Condition.Resets {
		p.resets = append(p.resets, n.Condition)
	}
	for _, nodes := range n.Bodies {
		prog := d.compile(nodes, p.end)
		p.end = prog.end
		p.resets = append(p.resets, prog.resets...)
		b.progs = append(b.progs, prog)
	}
	return op{kind: opBody, ref: b}
}

// number gives the lanes their numbers in the run, those of bodies behind the others, so that the numbers do
// not depend on when a launch or a body begins. The lock is held.
func (p *program) number(to sched.Scheduler) {
	for i := range p.lanes {
		to.Numbered(p.lanes[i].on)
	}
	for i := range p.lanes {
		for _, o := range p.lanes[i].steps {
			if b, ok := o.ref.(*body); ok {
				for _, prog := range b.progs {
					prog.number(to)
				}
			}
		}
	}
}

func (p *program) add(on int, o op, node int, site uint32) {
	l := &p.lanes[on]
	l.steps, l.nodes, l.sites = append(l.steps, o), append(l.nodes, node), append(l.sites, site)
}

// leaveOut returns what each node comes after once empty nodes are left out: those that
// come after at most one node, or before at most one, so that no more edges result. The
// entry of such a node is nil, that of every other node is not.
func leaveOut(nodes []driver.GraphNode) [][]int {
	before := make([]int, len(nodes)) // how many nodes come after each
	for i := range nodes {
		for _, dep := range nodes[i].After {
			before[dep]++
		}
	}
	after := make([][]int, len(nodes))
	left := make([][]int, len(nodes)) // of nodes left out: what comes before them
	for i := range nodes {
		n := &nodes[i]
		list := n.After
		for k, dep := range n.After {
			if after[dep] != nil {
				continue
			}
			list = append([]int{}, n.After[:k]...)
			for _, dep := range n.After[k:] {
				if after[dep] != nil {
					list = append(list, dep)
				} else {
					list = append(list, left[dep]...)
				}
			}
			break
		}
		if n.Kind == driver.EmptyNode && (len(list) <= 1 || before[i] <= 1) {
			left[i] = list
			continue
		}
		if list == nil {
			list = []int{}
		}
		after[i] = list
	}
	return after
}

// nodeOp returns the operation of a node on its lane. begin completes it.
func nodeOp(n *driver.GraphNode, on *Stream) op {
	switch n.Kind {
	case driver.CallNode:
		return op{kind: opCall, arg: n.Token}
	case driver.NativeNode:
		return op{kind: opWork, ref: &nativeWork{Native: *n.Native, stream: on}}
	case driver.CopyNode:
		w := copyWork(*n.Copy)
		return op{kind: opWork, ref: &w}
	case driver.FillNode:
		w := fillWork(n.Fill)
		return op{kind: opWork, ref: &w}
	case driver.DelayNode:
		return op{kind: opWork, ref: delayWork{n.Delay}}
	case driver.RecordNode:
		return op{kind: opRecord, ref: n.Event.(*Event)}
	case driver.WaitNode:
		return op{kind: opWaitSet, ref: n.Event.(*Event)}
	}
	return op{kind: opNop}
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

// stop ends the bodies of a run, at whichever depth, when they have ended once. The lock is held.
func (l *launch) stop() {
	for i := range l.prog.lanes {
		lane := l.prog.lanes[i].on
		if lane.parent() == nil || lane.state == sched.Idle {
			continue
		}
		if r, ok := lane.q.front().ref.(*bodyRun); ok {
			r.stopped = true
			r.run.stop()
		}
	}
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

// lane returns a lane of the run in progress that has not ended. The lock is held.
func (l *launch) lane() *Stream {
	for i := range l.prog.lanes {
		if on := l.prog.lanes[i].on; on.parent() != nil && on.state != sched.Idle {
			return on
		}
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

// body is what a node with a condition may run, and the address of the word that it looks at.
type body struct {
	kind  driver.GraphNodeKind
	progs []*program
	word  uint64
}

// choose returns the program that a value of the word selects, nil if it selects none.
func (b *body) choose(value uint32) *program {
	i := uint64(value)
	if b.kind != driver.SwitchNode { // the first one unless the value is 0
		i = 0
		if value == 0 {
			i = 1
		}
	}
	if i >= uint64(len(b.progs)) {
		return nil
	}
	return b.progs[i]
}

// bodyRun is a body in one launch. It is what an opBody refers to, on a lane of that launch; the
// body has lanes of its own.
type bodyRun struct {
	*body
	run launch
	// stopped says that the stream was aborted, or a function in the body has failed: the body does
	// not run again.
	stopped bool
	// faulty is the error of a loop if a function has failed in the present run of its body, and nothing
	// has changed the condition, which was value, by its end.
	faulty *driver.Error
	value  uint32
}

func newBodyRun(b *body, l driver.GraphLaunch) *bodyRun {
	r := &bodyRun{body: b}
	r.run = launch{GraphLaunch: l, prog: b.progs[0], body: r}
	return r
}

// begin looks at the condition and puts the nodes that are to run on their lanes. It reports whether
// there are any. The lock is held.
func (r *bodyRun) begin(s *Stream) bool {
	value := atomic.LoadUint32(wordAt(r.word))
	prog := r.choose(value)
	if r.stopped || prog == nil {
		return false
	}
	if r.faulty != nil && value == r.value {
		s.fail(r.faulty)
		return false
	}
	r.faulty, r.value = nil, value
	r.run.prog = prog
	return r.run.spread(s)
}

// wordAt returns the word at an address of pinned memory.
func wordAt(addr uint64) *uint32 {
	at := touch.Alias(addr)
	return *(**uint32)(unsafe.Pointer(&at))
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

// inBody reports whether s is a lane of a body in progress.
func (s *Stream) inBody() bool {
	if p := s.parent(); p != nil {
		l := p.started()
		return l != nil && l.body != nil
	}
	return false
}

// loops returns the loops that a lane is in, the innermost first, with their operations. The lock is held.
func (s *Stream) loops() (runs []*bodyRun, on []*Stream) {
	for p := s.parent(); p != nil; p = p.parent() {
		if r, ok := p.q.front().ref.(*bodyRun); ok && r.kind == driver.WhileNode {
			runs, on = append(runs, r), append(on, p)
		}
	}
	return runs, on
}

// Loops implements driver.LoopCompleter.
func (s *Stream) Loops() (function uint32, loops []uint32) {
	s.eng.Lock()
	defer s.eng.Unlock()
	_, on := s.loops()
	for _, p := range on {
		loops = append(loops, p.site())
	}
	return s.site(), loops
}

// Faulty implements driver.LoopCompleter.
func (s *Stream) Faulty(loops []*driver.Error) {
	s.eng.Lock()
	defer s.eng.Unlock()
	runs, _ := s.loops()
	for i, r := range runs {
		if i < len(loops) && r.faulty == nil {
			r.faulty = loops[i]
		}
	}
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
