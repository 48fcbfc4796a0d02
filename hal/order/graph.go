package order

import (
	"slices"

	"halstream/hal"
)

// graphRun is one launch of a graph. Towards other work its nodes are what its stream does there,
// one after another; towards each other only the paths of the graph order them.
type graphRun struct {
	list *hal.NodeList
	// seen has, for each node, last where the latest node that was asked about comes after it.
	seen []uint32
	last uint32
	of   int
	todo []int
}

func newRun(list *hal.NodeList) *graphRun { return &graphRun{list: list, of: -1} }

// path reports whether the node later comes after the node earlier.
func (r *graphRun) path(earlier, later int) bool {
	if earlier >= later {
		return earlier == later
	}
	if slices.Contains(r.list.After(later), earlier) {
		return true
	}
	if r.of != later {
		if r.seen == nil {
			r.seen = make([]uint32, r.list.All())
		}
		r.of = later
		r.last++
		r.mark(later)
	}
	return r.seen[earlier] == r.last
}

// comesAfter is path for nodes of bodies as well. A node in a body has the order of the node with the
// condition towards everything outside of that body. A body comes after its node, which looks at the
// condition first; two bodies of one node have no order.
func (r *graphRun) comesAfter(earlier, later int) bool {
	earlier, later, same := r.level(earlier, later)
	if earlier == later {
		return true
	}
	return same && r.path(earlier, later)
}

// apart reports whether two nodes are in different bodies of one node.
func (r *graphRun) apart(one, two int) bool {
	_, _, same := r.level(one, two)
	return !same
}

// listedLater reports whether the node one was added to its graph after the node two, or, where they
// are in different graphs, what they are in was.
func (r *graphRun) listedLater(one, two int) bool {
	one, two, _ = r.level(one, two)
	return one > two
}

// level returns the two nodes, or the nodes with conditions in whose bodies they are, such that both
// are in the same graph. same is false where there are none, because the two are in different bodies
// of one node.
func (r *graphRun) level(one, two int) (a, b int, same bool) {
	if one < r.list.Len() && two < r.list.Len() {
		return one, two, true
	}
	chain := r.owners(one)
	for {
		for _, at := range chain {
			switch {
			case at == two:
				return two, two, true
			case r.list.Owner(at) == r.list.Owner(two):
				return at, two, r.list.Owner(at) < 0 || r.body(at) == r.body(two)
			}
		}
		two = r.list.Owner(two)
	}
}

// owners returns a node and the nodes whose bodies it is in, from the inside to the outside.
func (r *graphRun) owners(of int) (list []int) {
	for ; of >= 0; of = r.list.Owner(of) {
		list = append(list, of)
	}
	return list
}

// body returns the number of the body that a node of a body is in.
func (r *graphRun) body(of int) int {
	owner := r.list.Node(r.list.Owner(of))
	in := r.list.Inside(of)
	for in.Of != owner { // a graph in the body
		in = in.Outer
	}
	return in.Body
}

// each calls f with every node, those of bodies directly behind the node that has these.
func (r *graphRun) each(f func(i int)) {
	for i := range r.list.Len() {
		r.visit(i, f)
	}
}

// operation returns a node that records or waits for a version of its event, in a launch.
func (r *graphRun) operation(launch *hal.Operation, i int, version uint64) *hal.Operation {
	n := r.list.Node(i)
	return &hal.Operation{Kind: n.Kind(), ID: launch.NodeID(i), Site: n.Site(), Event: n.Event(), Version: version}
}

// visit calls f with a node, and then with those of its bodies.
func (r *graphRun) visit(i int, f func(i int)) {
	f(i)
	for _, member := range r.list.Members(i) {
		r.visit(member, f)
	}
}

// mark notes the nodes that a node comes after.
func (r *graphRun) mark(node int) {
	r.todo = append(r.todo[:0], node)
	for len(r.todo) > 0 {
		at := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		for _, dep := range r.list.After(at) {
			if r.seen[dep] != r.last {
				r.seen[dep] = r.last
				r.todo = append(r.todo, dep)
			}
		}
	}
}

// sequence returns the nodes in an order in which the paths of the graph allow them: first
// those that records of events outside of it come after, last those that come after waits for
// such events. So what waits for the event comes after no more than it has to, and what a
// wait comes before is no more than the graph says, as far as one order can.
func (r *graphRun) sequence() []int {
	n := r.list.Len()
	early, late := make([]bool, n), make([]bool, n)
	for i := n - 1; i >= 0; i-- {
		early[i] = early[i] || r.list.Node(i).Kind() == hal.OpRecord
		if early[i] {
			for _, dep := range r.list.After(i) {
				early[dep] = true
			}
		}
	}
	order := make([]int, 0, n)
	for i := range n {
		late[i] = r.list.Node(i).Kind() == hal.OpWait ||
			slices.ContainsFunc(r.list.After(i), func(dep int) bool { return late[dep] })
		if early[i] {
			order = append(order, i)
		}
	}
	for _, last := range []bool{false, true} {
		for i := range n {
			if !early[i] && late[i] == last {
				order = append(order, i)
			}
		}
	}
	return order
}

// NodeNote is the node of a graph that an access is one of: of the launch that Access is, or,
// where nodes of one graph are compared, a node that was not captured on a stream.
type NodeNote struct {
	Index int // in its graph
	Kind  hal.OperationKind
	Name  string // that the program has given it
	Site  uint32 // of the call that made it
	// Captured: a capture made it of what was enqueued on Stream, the index of a stream of Device.
	Captured bool
	Device   int
	Stream   uint64
	// Inside are the nodes whose graphs and bodies it is in, from the outside to the inside.
	Inside []InsideNote
}

// InsideNote is a node that has a graph or bodies.
type InsideNote struct {
	Index int // in its graph
	Kind  hal.OperationKind
	Body  int // the number of the body, from 0; 0 of a graph
}

// note returns the node of o that a report names, nil where the stream of o says it.
func (o *info) note() *NodeNote {
	if o.run == nil {
		return nil
	}
	in := o.run.list.Inside(o.node)
	if in == nil && o.timeline != nil && o.op != hal.OpLaunchGraph && o.timeline.stream != nil {
		return nil
	}
	n := o.run.list.Node(o.node)
	note := &NodeNote{Index: n.Index(), Kind: n.Kind(), Name: n.Name(), Site: n.Site()}
	if s := n.Stream(); s != nil {
		note.Captured, note.Device, note.Stream = true, n.Device(), s.Index()
	}
	for ; in != nil; in = in.Outer {
		note.Inside = append(note.Inside, InsideNote{Index: in.Of.Index(), Kind: in.Of.Kind(), Body: in.Body})
	}
	slices.Reverse(note.Inside)
	return note
}

func (n *NodeNote) side() nodeSide {
	if n == nil {
		return nodeSide{}
	}
	return nodeSide{n.Site, n.Index + 1}
}
