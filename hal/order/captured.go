package order

import "halstream/hal"

// compare compares the nodes of a graph with each other: when its capture ends, and when an
// executable is made of it. Those without a path between them run at the same time in every
// launch.
//
// The graph is checked as a program of its own, by a checker of its own, for its nodes
// have no order with work outside of it.
func (c *Checker) compare(op *hal.Operation) {
	one := New()
	one.comparing = true
	caller := &thread{}
	if op.Thread != nil {
		caller.id = op.Thread.ID
	}
	all := newRun(op.Nodes)
	all.each(all.inOrder(), func(i int) {
		n := op.Nodes.Node(i)
		on := &timeline{dev: &device{ordinal: n.Device()}} // of a node that no stream has made
		if n.Stream() != nil {
			on = one.timeline(n.Stream())
		}
		node := hal.Operation{ID: op.ID, Kind: n.Kind(), Name: n.Name(), Site: n.Site(), Token: n.Token()}
		in := one.newInfo(other, caller, on, &node)
		in.stamp, in.run, in.node, in.ready = stamp{slot: 1, seq: 1}, all, i, true
		one.touchNode(in, n)
	})
	for _, r := range one.reports.fresh {
		r.Reason = Reason{Why: NoPath, Devices: r.Reason.Devices}
		key := keyOf(r)
		captured := key // as it was reported at the end of the capture of a graph that is a node now
		captured.a.node, captured.b.node = nodeSide{}, nodeSide{}
		if c.reports.seen[key] == nil && c.reports.seen[captured] == nil { // else it was compared before
			if p := pieceOf(r.Range); !c.known(&key, r.First.ID, r.Second.ID, p) {
				c.add(key, *r, p)
			}
		}
	}
}

// compared notes that the nodes of an executable were compared.
func (c *Checker) compared(op *hal.Operation) {
	l := c.launches[op.Exec]
	l.compared = op.Nodes
	c.launches[op.Exec] = l
}

// touchNode handles what a node accesses. One that is a graph, or has a condition, is listed with
// the nodes of its graphs.
func (c *Checker) touchNode(in *info, n *hal.Node) {
	reads, writes := n.Accesses()
	switch word := n.Condition(); {
	case n.Kind() == "graph":
		return
	case word.Size > 0:
		reads, writes = []hal.Range{word}, nil
	}
	for _, r := range reads {
		c.touch(in, pieceOf(r), false, false)
	}
	for _, r := range writes {
		c.touch(in, pieceOf(r), true, false)
	}
}
