package hal

import (
	"fmt"
	"slices"
)

// What an update of an executable may not change.

// refuseUpdate is the error of an update to a graph that differs in more than what its nodes do.
func refuseUpdate(format string, args ...any) error {
	return captureError(codeUpdate, "update executable", format+"; instantiate the new graph", args...)
}

// differs returns the error of an update to v.
func (v *version) differs(before *version) error {
	if !slices.Equal(v.memory.allocates, before.memory.allocates) || !slices.Equal(v.memory.frees, before.memory.frees) {
		return refuseUpdate("the nodes that allocate or free memory cannot change, whose address is that of one graph")
	}
	if was, is := len(before.graph.nodes), len(v.graph.nodes); was != is {
		return refuseUpdate("the topology changed: the number of nodes is %d, and was %d", is, was)
	}
	return before.differ(&v.nodeTable)
}

// differ returns the error of an update of nodes to others.
func (t *nodeTable) differ(to *nodeTable) error {
	for i := range min(len(t.nodes), len(to.nodes)) {
		a, b := &t.nodes[i], &to.nodes[i]
		what := to.from[i].title() + to.inside[i].text()
		switch was, is := t.from[i].Kind(), to.from[i].Kind(); {
		case !t.inside[i].same(to.inside[i]):
			return refuseUpdate("the topology changed%s: it has more or fewer nodes", deeper(t.inside[i], to.inside[i]).text())
		case was != is:
			return refuseUpdate("the type of %s changed from %s to %s", t.from[i].title()+t.inside[i].text(), was, is)
		case !slices.Equal(a.After, b.After):
			return refuseUpdate("the topology changed: %s comes after other nodes", what)
		case a.Device != b.Device:
			return refuseUpdate("%s moved from device %d to device %d", what, a.Device, b.Device)
		}
		if len(t.bodies[i]) != len(to.bodies[i]) {
			return refuseUpdate("%s has %d bodies, and had %d", what, len(to.bodies[i]), len(t.bodies[i]))
		}
		for k, body := range to.bodies[i] {
			if err := t.bodies[i][k].differ(body); err != nil {
				return err
			}
		}
	}
	if len(t.nodes) != len(to.nodes) { // in a body, or in a graph at its end
		longer := t
		if len(to.nodes) > len(t.nodes) {
			longer = to
		}
		at := longer.inside[min(len(t.nodes), len(to.nodes))]
		return refuseUpdate("the topology changed%s: it has more or fewer nodes", at.text())
	}
	return nil
}

// same reports whether two places inside of nodes are the same.
func (in *Inside) same(other *Inside) bool {
	if in == nil || other == nil {
		return in == other
	}
	return in.Of.index == other.Of.index && in.Body == other.Body && in.Outer.same(other.Outer)
}

// deeper returns the place that is inside of more nodes.
func deeper(a, b *Inside) *Inside {
	for x, y := a, b; ; x, y = x.Outer, y.Outer {
		switch {
		case x == nil:
			return b
		case y == nil:
			return a
		}
	}
}

// text says where a node is, behind its title: "" in the graph itself.
func (in *Inside) text() string {
	switch {
	case in == nil:
		return ""
	case in.Of.child != nil:
		return " in the graph of " + in.Of.title() + in.Outer.text()
	}
	return fmt.Sprintf(" in body %d of %s", in.Body, in.Of.title()) + in.Outer.text()
}
