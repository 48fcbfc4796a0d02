package hal

import (
	"halstream/hal/driver"
	"halstream/hal/park"
)

// NodeList is the nodes of a graph in the order and form in which an executable runs
// them: each comes after those that it depends on, and a node that is a graph is followed
// by the nodes of that graph. Behind all of them are the nodes of bodies, which a launch may
// run once, often or not at all. It never changes.
type NodeList struct {
	nodes  []*Node // without those of bodies
	listed []listed
	// branches are the numbers of the nodes' branches.
	branches []int
}

// listed is a node in a list.
type listed struct {
	node   *Node
	inside *Inside
	after  []int
	// owner is the node with a condition whose body the node is in, -1 for none, and members
	// are the nodes of its own bodies, each behind those that it depends on.
	owner   int
	members []int
}

// Inside says in which node's graph a node is, where that is not the graph itself.
type Inside struct {
	// Of is a node that is a graph or has a condition, in its graph, and Body the number of the
	// body, from 0.
	Of   *Node
	Body int
	// Outer says where Of is, nil if it is in the graph itself.
	Outer *Inside
}

// NodeList returns the nodes as an executable of the graph would run them now.
func (g *Graph) NodeList() *NodeList {
	v := g.version()
	defer v.keep.release()
	return v.list()
}

// list returns the nodes with what they come after.
func (v *version) list() *NodeList {
	l := &NodeList{nodes: v.from, listed: make([]listed, 0, len(v.nodes))}
	l.add(&v.nodeTable, -1)
	l.branch()
	return l
}

// add lists nodes and those of their bodies, and notes them as members of their owner.
func (l *NodeList) add(t *nodeTable, owner int) {
	base := len(l.listed)
	for i, n := range t.from {
		one := listed{node: n, inside: t.inside[i], after: t.nodes[i].After, owner: owner}
		if owner >= 0 {
			one.after = make([]int, len(t.nodes[i].After))
			for k, dep := range t.nodes[i].After {
				one.after[k] = base + dep
			}
			l.listed[owner].members = append(l.listed[owner].members, base+i)
		}
		l.listed = append(l.listed, one)
	}
	for i := range t.from {
		for _, body := range t.bodies[i] {
			l.add(body, base+i)
		}
	}
}

// listOnce is list, the same each time.
func (v *version) listOnce() *NodeList {
	v.listed.Do(func() { v.nodeList = v.list() })
	return v.nodeList
}

// notify notifies the listeners that x runs v from now on, which was made of g.
func (x *GraphExec) notify(t *Thread, kind OperationKind, g *Graph, v *version) {
	if x.rt.listened() {
		x.rt.notifyHost(Operation{Kind: kind, Stream: x.rt.devices[0].legacy, Thread: t, Graph: g, Exec: x, Nodes: v.listOnce()})
	}
}

// Len returns how many nodes each launch runs.
func (l *NodeList) Len() int { return len(l.nodes) }

// All returns how many nodes there are with those of bodies, whose numbers begin with Len.
func (l *NodeList) All() int { return len(l.listed) }

// Node returns the i-th node. A node that is a graph is there twice, before and behind
// the nodes of that graph, without accesses of its own.
func (l *NodeList) Node(i int) *Node { return l.listed[i].node }

// After returns the numbers of the nodes that the i-th one comes after, which are lower. Of a
// node in a body they are in that body.
func (l *NodeList) After(i int) []int { return l.listed[i].after }

// Owner returns the number of the node with a condition in one of whose bodies the i-th node is,
// the innermost one; -1 if there is none.
func (l *NodeList) Owner(i int) int { return l.listed[i].owner }

// Members returns the numbers of the nodes in the bodies of the i-th node, without those of
// bodies in these, body by body, each node behind those that it comes after.
func (l *NodeList) Members(i int) []int { return l.listed[i].members }

// Inside says in which node's graph the i-th node is, nil for one of the graph itself.
func (l *NodeList) Inside(i int) *Inside { return l.listed[i].inside }

// Branch returns the number of the i-th node's branch, from 0: nodes of one branch follow
// each other.
func (l *NodeList) Branch(i int) int { return l.branches[i] }

// branch puts each node on the branch of the first node before it that nothing follows there
// yet, and else on a new one.
func (l *NodeList) branch() {
	l.branches = make([]int, len(l.nodes))
	var tails []int // the last node of each branch
	for i := range l.nodes {
		on := -1
		for _, dep := range l.listed[i].after {
			if b := l.branches[dep]; tails[b] == dep {
				on = b
				break
			}
		}
		if on < 0 {
			on = len(tails)
			tails = append(tails, i)
		}
		l.branches[i], tails[on] = on, i
	}
}

// Event returns the event that a node records or waits for, nil for other nodes.
func (n *Node) Event() *Event { return n.event }

// Device returns the ordinal of the device that the node runs on.
func (n *Node) Device() int { return n.device }

// NodeID returns the number of the i-th node of a launch, which identifies its execution. A node of a
// body has one number for all of its executions in the launch.
func (o *Operation) NodeID(i int) uint32 { return o.ID + 1 + uint32(i) }

// numbers returns the first of n numbers of operations in a row, none of which is 0.
func (l *listeners) numbers(n int) uint32 {
	for {
		last := l.ids.Add(uint32(n))
		if first := last - uint32(n) + 1; first != 0 && first <= last {
			return first
		}
	}
}

// announceLaunch announces a launch of v, whose nodes get numbers of their own, and
// prepares what watches them.
func (l *launched) announceLaunch(t *Thread, x *GraphExec) {
	rt := l.dev.rt
	v := l.v
	nodes := v.listOnce()
	o := Operation{ID: rt.listeners.numbers(1 + nodes.All()), Kind: OpLaunchGraph, Thread: t, Exec: x,
		Reads: v.reads, Writes: v.writes, Nodes: nodes}
	l.tag = o.ID
	l.runs = make([]driver.NodeRun, len(v.nodes))
	var notified []func()
	for i := range l.runs {
		id, n := o.NodeID(i), v.from[i]
		run := &l.runs[i]
		run.Tag = id
		switch n.kind {
		case driver.CallNode:
			if w := rt.newWideWatch(id, Accesses{Reads: n.reads, Writes: n.writes}); w != nil {
				run.Sink = nodeSink{l, w}
			}
		case driver.NativeNode:
			if w := rt.newWideWatch(id, Accesses{Reads: n.reads, Writes: n.writes}); w != nil {
				run.Before, run.After = w.onThread()
			}
		case driver.CopyNode:
			c := n.spec.Copy
			if src := n.blocks[0]; src == nil || src.Kind != Pinned {
				break
			}
			from, _ := span(c.Src, c.SrcPitch, c.Width, c.Height)
			before, after := rt.watchSource(id, CopySpec{Dst: c.Dst, Src: c.Src, DstPitch: c.DstPitch, SrcPitch: c.SrcPitch,
				Width: c.Width, Height: c.Height}, from, n.blocks[0].ownMemory())
			run.Before = before
			if after != nil {
				notified = append(notified, after)
			}
		}
	}
	if len(notified) > 0 {
		o.afterNotify = func() {
			for _, f := range notified {
				f()
			}
		}
	}
	l.announce(&o)
}

// NodeRuns implements driver.GraphLaunch.
func (l *launched) NodeRuns() []driver.NodeRun { return l.runs }

// NodeTitle implements driver.GraphLaunch.
func (l *launched) NodeTitle(index int) string { return l.v.listOnce().Node(index).title() }

// bindEvents gives a launch that gets its place in the order the versions of the events that
// its nodes record and wait for. The notifier's mu is held.
func (o *Operation) bindEvents() {
	for i, n := range o.Nodes.nodes {
		switch {
		case n.event == nil:
			continue
		case n.kind == driver.RecordNode:
			o.NodeVersions = append(o.NodeVersions, NodeVersion{i, n.event.version.Add(1)})
		default:
			o.NodeVersions = append(o.NodeVersions, NodeVersion{i, n.event.version.Load()})
		}
	}
}

// NodeVersion is the version of the event that a node of a launch records, or waits for.
type NodeVersion struct {
	Node    int
	Version uint64
}

// nodeSink is the driver.Sink of a watched function of a launch.
type nodeSink struct {
	*launched
	w *watch
}

// Ready implements driver.Sink.
func (x nodeSink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return x.dev.rt.Funcs.push(level, readyFunc{token: token, stream: x.Stream, c: c, watch: x.w})
}
