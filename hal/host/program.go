package host

import (
	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

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

// eventStep is a step of a lane that records an event, or waits for it.
type eventStep struct {
	event   *Event
	records bool
	at      at
}

// reserveMost is up to how many operations a lane keeps memory for, from launch to launch.
const reserveMost = 64

// lane is a stream with the operations that each launch puts on it.
type lane struct {
	on    *Stream
	steps []op
	sites []uint32 // of the nodes, 0 where there is none
	nodes []int    // the number of the node of each step, -1 for a wait for another lane and the end
	base  uint64   // operations ever put on it, when the launch in progress began
	tail  int      // the node put on it last
}

// firstLane is above every number of a stream of the program.
const firstLane = 1 << 32

// at is where a node is: the n-th step of a lane; of no lane if it was left out.
type at struct {
	lane int
	step uint64
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
