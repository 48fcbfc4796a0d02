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
	last fence // of the latest launch
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
	run := &launch{GraphLaunch: l, prog: x.prog, at: fence{s, s.submitted.Load() + 1}}
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

// program is a graph in the form in which the host device runs it: branches, each a stream
// that the device makes for the graph. Nodes on one branch follow each other; a node that
// comes after one on another branch waits for it as streams wait for events. So branches
// run as streams do, under every schedule.
type program struct {
	branches []branch
	// end is the number behind those of the nodes and of all bodies in them.
	end int
	// resets are the conditions whose value is set when a launch begins, also those of bodies.
	resets []driver.GraphCondition
	// events are the steps that record events and wait for them, in the order of the nodes.
	events []eventStep
	// launches is how many launches were enqueued. Those that have not begun are in the queue,
	// in the order of the calls; running is the one in progress, nil if there is none.
	launches uint64
	queue    []*launch
	running  *launch
}

// branch is a stream with the operations that each launch puts on it.
type branch struct {
	on    *Stream
	steps []op
	sites []uint32 // of the nodes, 0 where there is none
	nodes []int    // the number of the node of each step, -1 for a wait for another branch and the end
	base  uint64   // the last sequence number before the launch in progress
	tail  int      // the last node, while the branch is compiled
}

// eventStep is a step of a branch that records an event, or waits for it.
type eventStep struct {
	event   *Event
	records bool
	at      position
}

// position is where a node is in a program: the n-th step of a branch, counted from 1. The branch
// of a node that was left out is -1.
type position struct {
	branch int
	step   uint64
}

// firstBranch is above the identifiers of all streams that the runtime makes.
const firstBranch = 1 << 32

// reserveMost bounds for how many operations a branch keeps memory from launch to launch.
const reserveMost = 64

// program returns the program of the nodes of an executable, whose launches can record events.
func (d *Driver) program(nodes []driver.GraphNode) *program {
	p := d.compile(nodes, 0)
	if len(p.events) == 0 {
		return p
	}
	for i := range p.branches {
		x := p.branches[i].on.rareState()
		x.program, x.steps = p, uint64(len(p.branches[i].steps))
	}
	return p
}

// compile assigns nodes to branches. They are numbered from first on, and the nodes of their bodies behind them.
func (d *Driver) compile(nodes []driver.GraphNode, first int) *program {
	p := &program{end: first + len(nodes)}
	positions := make([]position, len(nodes))
	after := leaveOut(nodes)
	latest := map[int]uint64{}
	for i := range nodes {
		n := &nodes[i]
		if after[i] == nil && n.Kind == driver.EmptyNode {
			positions[i].branch = -1
			continue
		}
		dev := d.devices[n.Device]
		on := -1
		for _, dep := range after[i] {
			l := positions[dep].branch
			if p.branches[l].tail == dep && p.branches[l].on.dev == dev && p.branches[l].on.level == n.Level {
				on = l
				break
			}
		}
		if on < 0 {
			on = len(p.branches)
			s := &Stream{eng: d.eng, dev: dev}
			s.level, s.id = n.Level, firstBranch+d.eng.branches.Add(1)
			p.branches = append(p.branches, branch{on: s})
		}
		for _, dep := range after[i] {
			if b := positions[dep]; b.branch != on {
				latest[b.branch] = max(latest[b.branch], b.step)
			}
		}
		for _, dep := range after[i] { // in the order of the nodes, so that runs are repeatable
			if l := positions[dep].branch; latest[l] > 0 {
				p.add(on, op{kind: opWait, on: p.branches[l].on, arg: latest[l], tag: driver.Tag(l), limit: driver.Forever}, -1, n.Site)
				delete(latest, l)
			}
		}
		if n.Kind.Conditional() {
			p.add(on, p.body(d, n), first+i, n.Site)
		} else {
			p.add(on, nodeOp(n, p.branches[on].on), first+i, n.Site)
		}
		p.branches[on].tail = i
		positions[i] = position{on, uint64(len(p.branches[on].steps))}
		if n.Kind == driver.RecordNode || n.Kind == driver.WaitNode {
			p.branches[on].steps[positions[i].step-1].arg = uint64(len(p.events))
			p.events = append(p.events, eventStep{n.Event.(*Event), n.Kind == driver.RecordNode, positions[i]})
		}
	}
	for l := range p.branches {
		p.add(l, op{kind: opBranchEnd}, -1, 0)
		if n := len(p.branches[l].steps); n <= reserveMost {
			p.branches[l].on.q.reserve(n)
		}
	}
	return p
}

// body returns the operation of a node with a condition.
func (p *program) body(d *Driver, n *driver.GraphNode) op {
	b := &body{kind: n.Kind, condition: n.Condition.Addr}
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

// number gives the branches their numbers in the schedule's run, those of bodies behind the others, so that the
// numbers do not depend on when a launch or a body begins. The lock is held.
func (p *program) number(to sched.Scheduler) {
	for i := range p.branches {
		to.Numbered(p.branches[i].on)
	}
	for i := range p.branches {
		for _, o := range p.branches[i].steps {
			if b, ok := o.ref.(*body); ok {
				for _, prog := range b.progs {
					prog.number(to)
				}
			}
		}
	}
}

// add puts the operation of a node, -1 for none, at the end of a branch.
func (p *program) add(on int, o op, node int, site uint32) {
	l := &p.branches[on]
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

// nodeOp returns the operation of a node on its branch. launch.spread completes it.
func nodeOp(n *driver.GraphNode, on *Stream) op {
	switch n.Kind {
	case driver.CallNode:
		return op{kind: opCall, arg: n.Token}
	case driver.NativeNode, driver.KernelNode:
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
	// left is how many branches have not ended, while the run is in progress.
	left int
	// body is what this is a run of, nil for a whole graph.
	body *bodyRun
	// at is the operation of the launch, number how many launches of its program were enqueued before.
	at     fence
	number uint64
	// waits are the records that the nodes wait for, one for each element of the program's events.
	waits []fence
	// dropped says that the launch will not run.
	dropped bool
}

// enqueue puts a launch behind the earlier ones of its program, and binds its events: as outside of
// a graph a record counts from the call on, and a wait is for the record that is the latest one then. The launches
// of a program run in the order of the calls and put the same operations on its branches each time, so the
// sequence numbers are fixed although the nodes are enqueued later. The lock is held.
func (l *launch) enqueue() {
	p := l.prog
	l.number = p.launches
	p.launches++
	p.queue = append(p.queue, l)
	for i, step := range p.events {
		ev := step.event
		switch {
		case step.records:
			ev.at, ev.recorded = l.fenceOf(step), true
		case ev.at.on != nil && !ev.at.reached():
			if l.waits == nil {
				l.waits = make([]fence, len(p.events))
			}
			l.waits[i] = ev.at
			ev.waits++
		}
	}
}

// fenceOf returns the fence of a step in this launch.
func (l *launch) fenceOf(step eventStep) fence {
	branch := &l.prog.branches[step.at.branch]
	return fence{branch.on, l.number*uint64(len(branch.steps)) + step.at.step}
}

// bindWait completes the wait *o of a node: an empty operation if the record was reached meanwhile.
func (l *launch) bindWait(o *op) {
	ev, at := o.ref.(*Event), fence{}
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

// launchBefore returns the fence that has to be reached before the launch *o begins: that of an earlier launch of
// the same executable. Its stream is nil if there is none.
func (o *op) launchBefore() fence {
	if at := (fence{o.on, o.arg}); !at.reached() {
		return at
	}
	l := o.ref.(*launch)
	switch p := l.prog; {
	case p.running != nil:
		return p.running.at
	case p.queue[0] != l: // one between the two was dropped
		return p.queue[0].at
	}
	return fence{}
}

// begin puts the nodes of a launch, the head operation of s, on the branches of its program,
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

// spread puts the nodes of a run, whose operation is the head of s, on the branches of its program,
// and reports whether there are any. The lock is held.
func (l *launch) spread(s *Stream) bool {
	e := s.eng
	branches := l.prog.branches
	l.left = len(branches)
	if l.left == 0 {
		return false
	}
	for i := range branches {
		branches[i].base = branches[i].on.submitted.Load()
		branches[i].on.rareState().parent = s
	}
	var runs []driver.NodeRun
	if l.body == nil {
		runs = l.NodeRuns()
	}
	tag := l.Tag() // 0 where nobody listens
	for i := range branches {
		branch := &branches[i]
		for j := range branch.steps {
			o := branch.steps[j]
			var run driver.NodeRun
			if node := branch.nodes[j]; node >= 0 && runs != nil {
				run = runs[node]
			}
			switch o.kind {
			case opWait:
				o.arg += branches[o.tag].base
			case opCall:
				o.ref = l.GraphLaunch
				if run.Sink != nil {
					o.ref = run.Sink
				}
			case opRecord:
				o.on, o.arg = branch.on, branch.on.submitted.Load()+1
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
			case opBranchEnd:
				o.ref = l
			}
			if o.tag = run.Tag; l.body != nil && tag != 0 && branch.nodes[j] >= 0 {
				o.tag = tag + 1 + driver.Tag(branch.nodes[j])
			}
			e.add(branch.on, &o)
		}
	}
	return true
}

// branchEnded counts a branch of a launch as ended; after the last one the launch is done.
// The lock is held.
func (l *launch) branchEnded(branch *Stream) {
	s, e := branch.parent(), branch.eng
	branch.rare.parent = nil
	l.left--
	if l.left > 0 {
		return
	}
	if b := l.body; b == nil {
		l.prog.running = nil
		l.prog.passDropped()
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
	for i := range l.prog.branches {
		branch := l.prog.branches[i].on
		if branch.parent() == nil || branch.state == sched.Idle {
			continue
		}
		if r, ok := branch.q.front().ref.(*bodyRun); ok {
			r.stopped = true
			r.run.stop()
		}
	}
}

// drop marks a launch as one that will not run. Streams and threads that wait for its records continue when the
// earlier launches have ended. The lock is held.
func (l *launch) drop() {
	l.dropped = true
	for i, at := range l.waits {
		if at.on != nil {
			l.prog.events[i].event.waits--
		}
	}
	l.prog.passDropped()
	l.End()
}

// passDropped completes the operations of the next launches of a program, as long as they are dropped ones.
// The lock is held.
func (p *program) passDropped() {
	for p.running == nil && len(p.queue) > 0 && p.queue[0].dropped {
		l := p.queue[0]
		p.queue = p.queue[1:]
		for i := range p.branches {
			on := p.branches[i].on
			e := on.eng
			for range p.branches[i].steps {
				on.submitted.Add(1)
				if !e.parallel.Load() {
					e.sched.Added(on, "") // no call of the program
				}
			}
			e.releaseUntil(on, on.completed.Add(uint64(len(p.branches[i].steps))))
		}
		for _, step := range p.events {
			if step.records {
				at := l.fenceOf(step)
				step.event.eng.stamp(&op{kind: opRecord, on: at.on, arg: at.seq, ref: step.event})
			}
		}
	}
}

// pendingBranch returns a branch of the run in progress that has not ended, nil if all have. The lock is held.
func (l *launch) pendingBranch() *Stream {
	for i := range l.prog.branches {
		if on := l.prog.branches[i].on; on.parent() != nil && on.state != sched.Idle {
			return on
		}
	}
	return nil
}

// ends returns the last operation of each branch of the run in progress. The lock is held.
func (l *launch) ends() []driver.Fence {
	var fences []driver.Fence
	for i := range l.prog.branches {
		branch := &l.prog.branches[i]
		if on := branch.on; on.parent() != nil {
			fences = append(fences, fence{on, branch.base + uint64(len(branch.steps))}.named())
		}
	}
	return fences
}

// launched returns the fence of the launch itself for a fence on a branch of a launch that has not begun, else
// the fence unchanged. The lock is held.
func (p fence) launched() fence {
	if p.on == nil || p.on.rare == nil || p.on.rare.program == nil {
		return p
	}
	number := (p.seq - 1) / p.on.rare.steps
	for _, l := range p.on.rare.program.queue {
		if l.number == number {
			return l.at
		}
	}
	return p
}

// body is what a node with a condition may run, and the address of the condition.
type body struct {
	kind      driver.GraphNodeKind
	progs     []*program
	condition uint64
}

// choose returns the program that a value of the condition selects, nil if it selects none.
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

// bodyRun is a body in one launch. It is what an opBody refers to, on a branch of that launch; the
// body has branches of its own.
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

// begin reads the condition and puts the nodes that are to run on their branches. It reports whether
// there are any. The lock is held.
func (r *bodyRun) begin(s *Stream) bool {
	value := atomic.LoadUint32(wordAt(r.condition))
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

// wordAt returns the condition at an address of pinned memory.
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

// inBody reports whether s is a branch of a body in progress.
func (s *Stream) inBody() bool {
	if p := s.parent(); p != nil {
		l := p.started()
		return l != nil && l.body != nil
	}
	return false
}

// loops returns the loops that a branch is in, the innermost first, and the streams that run them. The lock is held.
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

// site returns the call site of the node that a branch is at, 0 for another stream. The
// lock is held.
func (s *Stream) site() uint32 {
	if _, branch, at := s.step(); branch != nil {
		return branch.sites[at]
	}
	return 0
}

// step returns the run that a branch belongs to and the step that it is at; nil for another stream. The
// lock is held.
func (s *Stream) step() (*launch, *branch, uint64) {
	p := s.parent()
	if p == nil {
		return nil, nil, 0
	}
	l := p.started()
	if l == nil {
		return nil, nil, 0
	}
	for i := range l.prog.branches {
		branch := &l.prog.branches[i]
		if at := s.completed.Load() - branch.base; branch.on == s && at < uint64(len(branch.sites)) {
			return l, branch, at
		}
	}
	return nil, nil, 0
}

// node says which node of a launch a branch is at, and what that does. The lock is held.
func (s *Stream) node(depth int) string {
	l, branch, at := s.step()
	if branch == nil || branch.nodes[at] < 0 {
		return s.head(depth)
	}
	titles, node := l.GraphLaunch, branch.nodes[at]
	s.eng.titles = append(s.eng.titles, func() string { return titles.NodeTitle(node) })
	return titleMark + ", " + s.head(depth)
}
