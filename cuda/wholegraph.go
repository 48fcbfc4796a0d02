package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"halstream/hal/driver"
)

// wholeGraph is an executable of the driver: all nodes are work of one device, and a launch is one call.
type wholeGraph struct {
	dev  *Device
	exec C.CUgraphExec
	// lastOn is the stream of the latest launch, and last its place there. The turn of the executable guards them.
	lastOn *Stream
	last   uint64
}

// isWhole reports whether a graph of the driver can have a node: conditional says that the graph has
// nodes with conditions, or is the body of one.
func isWhole(n *driver.GraphNode, conditional bool) bool {
	const farthest = 1<<31 - 1 // from row to row
	switch n.Kind {
	case driver.EmptyNode, driver.DelayNode:
		return true
	case driver.FillNode:
		return n.Fill.On == driver.OnDevice || conditional && n.Fill.On == driver.Pinned
	case driver.CopyNode:
		c := n.Copy
		return within(c.From, c.SrcDevice, n.Device) && within(c.To, c.DstDevice, n.Device) &&
			(c.To == driver.OnDevice || c.From == driver.OnDevice) &&
			c.SrcPitch <= farthest && c.DstPitch <= farthest && c.Width*c.Height > 0
	case driver.KernelNode:
		return !n.Launch.Cooperative && n.Launch.Cluster == [3]uint32{}
	}
	return n.Kind.Conditional() // the bodies have been checked
}

// within reports whether memory is that of a device, or pinned.
func within(where driver.Where, ordinal, device int) bool {
	return where == driver.Pinned || where == driver.OnDevice && ordinal == device
}

// whole returns a graph of the driver, nil where the driver cannot have it.
func (d *Driver) whole(nodes []driver.GraphNode) (w *wholeGraph, err error) {
	const doing = "instantiate"
	if len(nodes) == 0 || C.hs_graphs() == 0 {
		return nil, nil
	}
	dev, conditions := d.devices[nodes[0].Device], conditional(nodes)
	for i := range nodes {
		if nodes[i].Device != dev.ordinal || !isWhole(&nodes[i], conditions) {
			return nil, nil
		}
	}
	return dev.whole(nodes, resetsOf(nodes))
}

// whole returns a graph of the driver with nodes that it can have, in front of which words are reset.
func (d *Device) whole(nodes []driver.GraphNode, resets []driver.GraphCondition) (w *wholeGraph, err error) {
	const doing = "instantiate"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	var graph C.CUgraph
	if err := d.check(C.hs_graph_new(d.ctx(), &graph), doing); err != nil {
		return nil, err
	}
	if err := d.addAll(graph, nodes, resets); err != nil {
		C.hs_graph_drop(d.ctx(), graph)
		return nil, err
	}
	w = &wholeGraph{dev: d}
	if err := d.check(C.hs_graph_exec(d.ctx(), graph, &w.exec), doing); err != nil {
		return nil, err
	}
	return w, nil
}

func (d *Device) addAll(graph C.CUgraph, nodes []driver.GraphNode, resets []driver.GraphCondition) error {
	first := make([]driver.GraphNode, len(resets))
	for i, c := range resets {
		first[i] = driver.GraphNode{Kind: driver.FillNode, GraphWork: &driver.GraphWork{Fill: resetOf(c)}}
	}
	handles, err := d.addNodes(graph, first, nil)
	if err != nil {
		return err
	}
	_, err = d.addNodes(graph, nodes, handles)
	return err
}

// addNodes adds nodes behind others, and returns those that none of them comes after.
func (d *Device) addNodes(graph C.CUgraph, nodes []driver.GraphNode, first []C.CUgraphNode) (ends []C.CUgraphNode, err error) {
	p := newGraphParts(graph, len(nodes), first)
	last := make([]bool, len(nodes))
	for i := range nodes {
		for _, at := range nodes[i].After {
			last[at] = false
		}
		if err := d.addNode(p, &nodes[i]); err != nil {
			return nil, err
		}
		last[i] = true
	}
	if err := p.flush(d); err != nil {
		return nil, err
	}
	for i, handle := range p.made() {
		if last[i] {
			ends = append(ends, handle)
		}
	}
	return ends, nil
}

// addNode adds a node, at the latest when p is flushed.
func (d *Device) addNode(p *graphParts, n *driver.GraphNode) error {
	switch n.Kind {
	case driver.IfNode, driver.WhileNode, driver.SwitchNode:
		if err := p.flush(d); err != nil {
			return err
		}
		return d.addCondition(p.graph, n, p.handlesOf(n.After), p.next())
	case driver.CopyNode:
		p.addCopy(n.After, rowsOf(n.Copy))
	case driver.FillNode:
		p.addFill(n.After, &n.Fill)
	case driver.KernelNode:
		p.addLaunch(n.After, n.Launch)
	case driver.DelayNode:
		f, err := d.delayFunction()
		if err != nil {
			return err
		}
		launch := delayOf(f, n.Delay)
		p.addLaunch(n.After, &launch)
	default:
		p.add(n.After, C.hs_node{kind: C.HS_NODE_EMPTY})
	}
	return nil
}

// addLaunch adds a launch of a kernel behind other nodes.
func (d *Device) addLaunch(graph C.CUgraph, launch driver.Launch, after []C.CUgraphNode, made *C.CUgraphNode) error {
	p := newGraphParts(graph, 1, after)
	p.addLaunch(nil, &launch)
	if err := p.flush(d); err != nil {
		return err
	}
	*made = p.made()[0]
	return nil
}

// launch enqueues a run, at whose end l has ended.
func (w *wholeGraph) launch(s *Stream, l driver.GraphLaunch) error {
	if err := w.enqueue(s); err != nil {
		return err
	}
	w.dev.endings.add(s, w.last, l)
	return nil
}

// enqueue enqueues a run.
func (w *wholeGraph) enqueue(s *Stream) error {
	const doing = "launch graph"
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	if err := s.enqueuedOne(C.hs_graph_launch(s.dev.ctx(), w.exec, s.h), doing); err != nil {
		return err
	}
	w.lastOn, w.last = s, s.enqueued.Load()
	return nil
}

// close gives the executable up; launches that were enqueued still run. The driver destroys one that has
// nodes with conditions only when its launches have ended, and these may wait for the caller. So it is
// destroyed behind them.
func (w *wholeGraph) close() {
	if w.lastOn != nil {
		w.dev.endings.add(w.lastOn, w.last, w)
		return
	}
	w.End()
}

// End implements completionListener: it destroys the executable, whose launches have ended.
func (w *wholeGraph) End() {
	if w.dev.opened() {
		_ = w.dev.check(C.hs_graph_end(w.dev.ctx(), w.exec), "close executable")
	}
}
