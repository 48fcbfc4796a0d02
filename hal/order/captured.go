package order

import "halstream/hal"

// captured compares the nodes of a graph with each other, when its capture ends: those
// without a path between them run at the same time in every launch.
//
// The capture is checked as a program of its own, by a checker of its own, for its nodes
// have no order with work outside of it.
func (c *Checker) captured(op *hal.Operation) {
	one := New()
	caller := &thread{}
	if op.Thread != nil {
		caller.id = op.Thread.ID
	}
	nodes := op.Graph.Nodes()
	points := make([]point, len(nodes))
	for i, n := range nodes {
		s := one.timeline(n.Stream())
		g := gather{clocks: &s.clocks}
		for _, dep := range n.After() { // nodes of a capture come after earlier ones
			if p := &points[dep.Index()]; p.timeline != s {
				g.add(p.stamp, p.clocks)
			}
		}
		node := hal.Operation{ID: op.ID, Seq: uint64(i) + 1, Kind: n.Kind(), Name: n.Name(), Stream: n.Stream(),
			Thread: op.Thread, Site: n.Site(), Token: n.Token()}
		node.Reads, node.Writes = n.Accesses()
		one.perform(s, caller.clocks, other, &node, nil, one.newInfo(other, caller, s, &node))
		points[i] = point{stamp: s.stamp, clocks: s.clocks, timeline: s}
	}
	for _, r := range one.reports.fresh {
		r.Reason = Reason{Why: NoPath, Devices: r.Reason.Devices}
		key, p := keyOf(r), pieceOf(r.Range)
		if !c.known(&key, r.First.ID, r.Second.ID, p) {
			c.add(key, *r, p)
		}
	}
}
