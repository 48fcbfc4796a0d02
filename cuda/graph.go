package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"slices"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/park"
	"halstream/hal/vendor"
)

// executable is a graph whose launches enqueue its nodes on streams of its own, a branch on each.
type executable struct {
	drv *Driver
	// enqueueLock is taken by a launch until all of its nodes are enqueued.
	enqueueLock vendor.EnqueueLock
	now         *plan
	// last is behind the launch before, which was on the stream lastOn.
	last   *Event
	lastOn *Stream
	// updated says that the next launch has to wait for last, whatever stream it is on.
	updated bool
}

// plan is what the launches of an executable enqueue until its next update.
type plan struct {
	nodes   []driver.GraphNode
	branch  []int // of each node
	streams []*Stream
	// ends are behind the nodes that nodes of other branches wait for, nil for the others.
	ends []*Event
	// whole is the driver's graph, nil if the driver cannot have all nodes: then there are
	// branches.
	whole *wholeGraph
	// parts are the driver's graphs for the nodes of branches that have a condition, nil for others,
	// and resets what a launch sets in front of them.
	parts  map[int]*wholeGraph
	resets []driver.GraphCondition
}

// Instantiate implements driver.GraphDriver.
func (d *Driver) Instantiate(nodes []driver.GraphNode) (driver.Executable, error) {
	p, err := d.plan(nodes)
	if err != nil {
		return nil, err
	}
	return &executable{drv: d, now: p}, nil
}

// begin takes the enqueue lock.
func (x *executable) begin() {
	for !x.enqueueLock.TryLock() {
		pause()
	}
}

// Update implements driver.Executable.
func (x *executable) Update(nodes []driver.GraphNode, commit func() bool) error {
	p, err := x.drv.plan(nodes)
	if err != nil {
		return err
	}
	x.begin()
	before := x.now
	if before.whole != nil && x.lastOn != nil {
		if err := x.markLast(x.lastOn); err != nil {
			x.enqueueLock.Unlock()
			p.close()
			return err
		}
		x.updated = true
	}
	if !commit() {
		x.enqueueLock.Unlock()
		p.close()
		return driver.ErrUpdated
	}
	x.now = p
	x.enqueueLock.Unlock()
	before.close()
	return nil
}

// Close implements driver.Executable. Launches that were enqueued still run.
func (x *executable) Close() {
	x.begin()
	defer x.enqueueLock.Unlock()
	x.now.close()
	if x.last != nil {
		x.last.Close()
	}
}

// divide puts nodes into branches: a node continues the branch of one that it comes after and
// that no other node has continued, on the same device and with the same priority.
func divide(nodes []driver.GraphNode) (branch []int, first []int) {
	continued := make([]bool, len(nodes))
	branch = make([]int, len(nodes))
	for i, n := range nodes {
		at := slices.IndexFunc(n.After, func(k int) bool {
			return !continued[k] && nodes[k].Device == n.Device && nodes[k].Level == n.Level
		})
		if at < 0 {
			branch[i] = len(first)
			first = append(first, i)
			continue
		}
		continued[n.After[at]] = true
		branch[i] = branch[n.After[at]]
	}
	return branch, first
}

func (d *Driver) plan(nodes []driver.GraphNode) (p *plan, err error) {
	if err := d.checkConditions(nodes); err != nil {
		return nil, err
	}
	nodes = placed(nodes)
	p = &plan{nodes: nodes}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.whole, err = d.whole(nodes); p.whole != nil || err != nil {
		return p, err
	}
	branch, first := divide(nodes)
	p.branch, p.ends = branch, make([]*Event, len(nodes))
	for _, i := range first {
		s, err := d.devices[nodes[i].Device].NewStream(driver.StreamOptions{Level: nodes[i].Level})
		if err != nil {
			return p, err
		}
		p.streams = append(p.streams, s.(*Stream))
	}
	p.resets = resetsOf(nodes)
	for i, n := range nodes {
		if n.Kind.Conditional() {
			alone := n
			alone.After = nil
			part, err := d.devices[n.Device].whole([]driver.GraphNode{alone}, nil)
			if err != nil {
				return p, err
			}
			if p.parts == nil {
				p.parts = map[int]*wholeGraph{}
			}
			p.parts[i] = part
		}
		for _, k := range n.After {
			if branch[k] == branch[i] || p.ends[k] != nil {
				continue
			}
			e, err := d.devices[nodes[k].Device].NewEvent(driver.EventOptions{})
			if err != nil {
				return p, err
			}
			p.ends[k] = e.(*Event)
		}
	}
	return p, nil
}

// close gives the streams and events up; their work is done first.
func (p *plan) close() {
	if p.whole != nil {
		p.whole.close()
		p.whole = nil
	}
	for _, part := range p.parts {
		part.close()
	}
	for _, s := range p.streams {
		s.Close()
	}
	for _, e := range p.ends {
		if e != nil {
			e.Close()
		}
	}
	p.streams, p.ends, p.parts = nil, nil, nil
}

// Launch implements driver.Executable.
func (x *executable) Launch(on driver.Stream, l driver.GraphLaunch) error {
	const doing = "launch graph"
	s := on.(*Stream)
	x.begin()
	defer x.enqueueLock.Unlock()
	if !l.Current() {
		l.End()
		return driver.ErrUpdated
	}
	if err := s.beginLaunch(doing); err != nil {
		l.End()
		return err
	}
	defer s.endLaunch()
	if x.now.whole == nil && s.Captured() {
		l.End()
		return capturedElsewhere(doing)
	}
	f := s.follow(l.Tag(), nil)
	if x.now.whole != nil {
		err := x.launchWhole(s, l)
		f.End(err)
		return err
	}
	err := x.afterLast(s)
	if err == nil {
		err = x.now.enqueue(s, l)
	}
	if err == nil {
		err = x.markLast(s)
	}
	// The launch ends when the stream gets here, however much of it was enqueued.
	if failed := s.block(&blocker{what: C.HS_PASS, Blocker: vendor.Blocker{Title: "the end of a graph", Run: l.End, Drop: l.End}}, doing); failed != nil {
		l.End()
		if err == nil {
			err = failed
		}
	}
	f.End(err)
	return err
}

// launchWhole launches the driver's graph. The driver lets the launches of an executable run one at
// a time, but knows nothing of those before an update.
func (x *executable) launchWhole(s *Stream, l driver.GraphLaunch) error {
	ends := false // when it is done
	defer func() {
		if !ends {
			l.End()
		}
	}()
	if x.updated {
		if err := s.Wait(x.last, driver.Forever, 0); err != nil {
			return err
		}
		x.updated = false
	}
	if err := x.now.lookAtSources(s, l); err != nil {
		return err
	}
	x.lastOn = s
	w := x.now.whole
	if w.dev == s.dev {
		err := w.launch(s, l)
		ends = err == nil
		return err
	}
	// From a stream of another device.
	if x.now.streams == nil {
		stream, err := w.dev.NewStream(driver.StreamOptions{})
		if err != nil {
			return err
		}
		x.now.streams = []*Stream{stream.(*Stream)}
	}
	stream := x.now.streams[0]
	if err := stream.WaitStream(s, 0); err != nil {
		return err
	}
	if err := w.launch(stream, l); err != nil {
		return err
	}
	ends = true
	return s.WaitStream(stream, 0)
}

// afterLast makes a stream wait for the launch before, if that was on another one.
func (x *executable) afterLast(s *Stream) error {
	if !x.updated && (x.lastOn == nil || x.lastOn == s) {
		return nil
	}
	x.updated = false
	return s.Wait(x.last, driver.Forever, 0)
}

func (x *executable) markLast(s *Stream) error {
	if x.last == nil || x.lastOn.dev != s.dev {
		if x.last != nil {
			x.last.Close()
		}
		e, err := s.dev.NewEvent(driver.EventOptions{})
		if err != nil {
			return err
		}
		x.last = e.(*Event)
	}
	x.lastOn = s
	return s.Record(x.last, 0)
}

func (p *plan) enqueue(s *Stream, l driver.GraphLaunch) error {
	for _, c := range p.resets {
		if err := s.Fill(resetOf(c)); err != nil {
			return err
		}
	}
	for _, stream := range p.streams {
		if err := stream.WaitStream(s, 0); err != nil {
			return err
		}
	}
	for i := range p.nodes {
		if err := p.enqueueNode(i, s, l); err != nil {
			return err
		}
	}
	for _, stream := range p.streams {
		if err := s.WaitStream(stream, 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) enqueueNode(i int, s *Stream, l driver.GraphLaunch) error {
	n, stream := &p.nodes[i], p.streams[p.branch[i]]
	for _, k := range n.After {
		if p.branch[k] == p.branch[i] {
			continue
		}
		if err := stream.Wait(p.ends[k], driver.Forever, 0); err != nil {
			return err
		}
	}
	if part := p.parts[i]; part != nil {
		if err := part.enqueue(stream); err != nil {
			return err
		}
	} else if err := stream.run(n, beforeOf(l, i), launching{l, stream, s}); err != nil {
		return err
	}
	if p.ends[i] == nil {
		return nil
	}
	return stream.Record(p.ends[i], 0)
}

// launching is a launch as a branch of it sees it.
type launching struct {
	driver.GraphLaunch
	stream, on *Stream
}

// Begin implements driver.GraphLaunch. What fails on the branch from now on fails the stream of the
// launch.
func (l launching) Begin() {
	l.stream.ReportBy(&l.on.Progress)
	l.GraphLaunch.Begin()
}

// Ready implements driver.Sink.
func (l launching) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	l.Begin()
	return l.GraphLaunch.Ready(token, level, c)
}

// wholeGraph is an executable of the driver: all nodes are work of one device, and a launch is one call.
type wholeGraph struct {
	dev  *Device
	exec C.CUgraphExec
	// lastOn is the stream of the latest launch, and last its sequence number there. The enqueue lock of the executable guards them.
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
	w.dev.launches.add(s, w.last, l)
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
	w.lastOn, w.last = s, s.Last()
	return nil
}

// close gives the executable up; launches that were enqueued still run. The driver destroys one that has
// nodes with conditions only when its launches have ended, and these may wait for the caller. So it is
// destroyed behind them.
func (w *wholeGraph) close() {
	if w.lastOn != nil {
		w.dev.launches.add(w.lastOn, w.last, w)
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

// graphParts are nodes that are about to become those of a graph of the driver: C code adds as many as
// possible in one call, as each call of it gives Python's lock up and looks for the context.
type graphParts struct {
	graph C.CUgraph
	// handles are those of the nodes that the others come after, and behind these `first` ones those of the nodes.
	handles []C.CUgraphNode
	first   int
	added   int // nodes, with those that are not flushed
	// What is not flushed: the nodes, the indices in handles that they come after, and the arguments of kernels.
	nodes []C.hs_node
	after []C.uint32_t
	args  []byte
}

func newGraphParts(graph C.CUgraph, nodes int, first []C.CUgraphNode) *graphParts {
	p := &graphParts{graph: graph, first: len(first), handles: make([]C.CUgraphNode, len(first)+nodes),
		nodes: make([]C.hs_node, 0, nodes), after: make([]C.uint32_t, 0, nodes)}
	copy(p.handles, first)
	return p
}

// made returns the handles of the nodes that were added; flush has made them.
func (p *graphParts) made() []C.CUgraphNode { return p.handles[p.first:] }

// next returns where the handle of a node goes that the caller makes. All before it were flushed.
func (p *graphParts) next() *C.CUgraphNode {
	p.added++
	return &p.handles[p.first+p.added-1]
}

// handlesOf returns what a node comes after; it was flushed.
func (p *graphParts) handlesOf(after []int) []C.CUgraphNode {
	if len(after) == 0 {
		return p.handles[:p.first]
	}
	found := make([]C.CUgraphNode, len(after))
	for i, at := range after {
		found[i] = p.made()[at]
	}
	return found
}

// add adds a node behind others, by their indices; behind the first ones if it comes after none.
func (p *graphParts) add(after []int, n C.hs_node) {
	n.after, n.count = C.uint32_t(len(p.after)), C.uint32_t(len(after))
	for _, at := range after {
		p.after = append(p.after, C.uint32_t(p.first+at))
	}
	if len(after) == 0 {
		n.count = C.uint32_t(p.first)
		for i := range p.first {
			p.after = append(p.after, C.uint32_t(i))
		}
	}
	p.nodes = append(p.nodes, n)
	p.added++
}

func (p *graphParts) addCopy(after []int, rows C.hs_copy) {
	n := C.hs_node{kind: C.HS_NODE_COPY}
	*(*C.hs_copy)(unsafe.Pointer(&n.work)) = rows
	p.add(after, n)
}

func (p *graphParts) addFill(after []int, f *driver.Fill) {
	n := C.hs_node{kind: C.HS_NODE_FILL}
	*(*C.hs_memset)(unsafe.Pointer(&n.work)) = C.hs_memset{dst: C.uint64_t(f.Dst), count: C.uint64_t(f.Count),
		value: C.uint32_t(f.Value), size: C.uint32_t(f.Size)}
	p.add(after, n)
}

func (p *graphParts) addLaunch(after []int, l *driver.Launch) {
	n := C.hs_node{kind: C.HS_NODE_LAUNCH, args: C.size_t(len(p.args))}
	*(*C.hs_launch)(unsafe.Pointer(&n.work)) = launchOf(l)
	p.args = append(p.args, l.Args...)
	p.add(after, n)
}

// flush makes what was added nodes of the graph.
func (p *graphParts) flush(d *Device) error {
	if len(p.nodes) == 0 {
		return nil
	}
	made := p.first + p.added - len(p.nodes) // the index of the first of them
	status := C.hs_graph_add(d.ctx(), p.graph, &p.nodes[0], C.size_t(len(p.nodes)), unsafe.SliceData(p.after),
		unsafe.Pointer(unsafe.SliceData(p.args)), driver.Cell, &p.handles[0], C.size_t(made))
	p.nodes, p.after, p.args = p.nodes[:0], p.after[:0], p.args[:0]
	return d.check(status, "instantiate")
}

// Nodes with conditions. A driver takes a condition from a kernel, so a kernel of this package reads
// the word of memory in front of each such node, and at the end of each run of a body that may run again.

// conditionPTX is a kernel that sets a condition to a word of 4 bytes. The driver itself has the
// function that it calls.
const conditionPTX = `.version 6.0
.target sm_50
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);

.visible .entry halstream_condition(.param .u64 condition, .param .u64 word)
{
	.reg .u64 %at<4>;
	.reg .u32 %value;
	.param .b64 first;
	.param .b32 second;
	ld.param.u64 %at1, [condition];
	ld.param.u64 %at2, [word];
	cvta.to.global.u64 %at3, %at2;
	ld.volatile.global.u32 %value, [%at3];
	st.param.b64 [first], %at1;
	st.param.b32 [second], %value;
	call.uni cudaGraphSetConditional, (first, second);
	ret;
}
` + "\x00"

// leastBodies is the first driver whose nodes choose between bodies.
const leastBodies = 12080

// checkConditions rejects nodes that the driver does not have.
func (d *Driver) checkConditions(nodes []driver.GraphNode) error {
	const doing = "instantiate"
	if !conditional(nodes) {
		return nil
	}
	if C.hs_conditions() == 0 {
		return driver.Errorf(driver.NotSupported, doing, "nodes with conditions need a driver for CUDA 12.3 or newer, and this one is "+
			"for %d.%d; update the driver, or decide on the host between two launches", d.version/1000, d.version%1000/10)
	}
	for i := range nodes {
		n := &nodes[i]
		bodies := bodiesOf(n)
		if d.version < leastBodies && (len(bodies) > 1 || n.Kind == driver.SwitchNode) {
			return driver.Errorf(driver.NotSupported, doing, "a node that chooses between bodies needs a driver for CUDA 12.8 or newer, "+
				"and this one is for %d.%d; update the driver, or use two if nodes", d.version/1000, d.version%1000/10)
		}
		for _, body := range bodies {
			if err := d.checkConditions(body); err != nil {
				return err
			}
		}
	}
	return nil
}

// bodiesOf returns what a node may run, nil if it has no condition.
func bodiesOf(n *driver.GraphNode) [][]driver.GraphNode {
	if n.Kind.Conditional() {
		return n.Bodies
	}
	return nil
}

// conditional reports whether one of the nodes has a condition.
func conditional(nodes []driver.GraphNode) bool {
	return slices.ContainsFunc(nodes, func(n driver.GraphNode) bool { return n.Kind.Conditional() })
}

// placed returns the nodes with those that have a condition on the device of their bodies.
func placed(nodes []driver.GraphNode) []driver.GraphNode {
	if !conditional(nodes) {
		return nodes
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if on := deviceOf(&nodes[i]); on >= 0 {
			nodes[i].Device = on
		}
	}
	return nodes
}

// deviceOf returns the device that a node works on, -1 if it does nothing.
func deviceOf(n *driver.GraphNode) int {
	if n.Kind == driver.EmptyNode {
		return -1
	}
	if !n.Kind.Conditional() {
		return n.Device
	}
	for _, body := range n.Bodies {
		for i := range body {
			if on := deviceOf(&body[i]); on >= 0 {
				return on
			}
		}
	}
	return -1
}

// resetsOf returns the conditions of nodes that a launch begins by setting, each word once.
func resetsOf(nodes []driver.GraphNode) (resets []driver.GraphCondition) {
	for i := range nodes {
		var found []driver.GraphCondition
		if nodes[i].Kind.Conditional() && nodes[i].Condition.Resets {
			found = append(found, nodes[i].Condition)
		}
		for _, body := range bodiesOf(&nodes[i]) {
			found = append(found, resetsOf(body)...)
		}
		for _, c := range found {
			at := slices.IndexFunc(resets, func(o driver.GraphCondition) bool { return o.Addr == c.Addr })
			if at < 0 {
				resets = append(resets, c)
			} else {
				resets[at] = c
			}
		}
	}
	return resets
}

// resetOf is the fill that sets the word of a condition at the begin of a launch.
func resetOf(c driver.GraphCondition) driver.Fill {
	return driver.Fill{Dst: c.Addr, Count: 1, Value: c.Initial, Size: 4, On: driver.Pinned}
}

// addCondition adds a node with a condition, and its bodies.
func (d *Device) addCondition(graph C.CUgraph, n *driver.GraphNode, after []C.CUgraphNode, made *C.CUgraphNode) error {
	const doing = "instantiate"
	var condition C.uint64_t
	if err := d.check(C.hs_graph_condition(d.ctx(), graph, &condition), doing); err != nil {
		return err
	}
	var setter C.CUgraphNode
	if err := d.addSetter(graph, n, condition, after, &setter); err != nil {
		return err
	}
	kinds := map[driver.GraphNodeKind]C.int{driver.IfNode: C.HS_CONDITION_IF, driver.WhileNode: C.HS_CONDITION_WHILE,
		driver.SwitchNode: C.HS_CONDITION_SWITCH}
	bodies := make([]C.CUgraph, len(n.Bodies))
	err := d.check(C.hs_graph_add_condition(d.ctx(), graph, condition, kinds[n.Kind], unsafe.SliceData(bodies), C.int(len(bodies)),
		setter, made), doing)
	if err != nil {
		return err
	}
	for i, body := range bodies {
		ends, err := d.addNodes(body, n.Bodies[i], nil)
		if err != nil {
			return err
		}
		if n.Kind == driver.WhileNode {
			if err := d.addSetter(body, n, condition, ends, &setter); err != nil {
				return err
			}
		}
	}
	return nil
}

// conditionFunction returns the kernel that reads a condition, where the driver has conditions.
func (d *Device) conditionFunction() (f driver.Function, err error) {
	if C.hs_conditions() == 0 {
		return f, driver.Errorf(driver.NotSupported, "instantiate", "the driver has no nodes with conditions")
	}
	return d.ownFunction(&d.state().condition, conditionPTX, "halstream_condition")
}

// addSetter adds a node that sets the condition to the word of memory.
func (d *Device) addSetter(graph C.CUgraph, n *driver.GraphNode, condition C.uint64_t, after []C.CUgraphNode,
	made *C.CUgraphNode) error {
	f, err := d.conditionFunction()
	if err != nil {
		return err
	}
	return d.addLaunch(graph, oneThread(f, uint64(condition), n.Condition.Addr), after, made)
}

// beforeOf returns what looks at the source of a copy before it in a launch, nil if nobody wants that.
func beforeOf(l driver.GraphLaunch, node int) func() {
	if runs := l.NodeRuns(); runs != nil && runs[node].Before != nil {
		return runs[node].Before
	}
	return nil
}

// lookAtSources enqueues, in front of a launch of the driver's graph, looks at the pinned sources of its
// copies: between the nodes of such a graph there is none. A graph that may write pinned memory itself
// gets no look, as that could change a source before its copy.
func (p *plan) lookAtSources(s *Stream, l driver.GraphLaunch) error {
	if l.NodeRuns() == nil {
		return nil
	}
	var looks []func()
	for i := range p.nodes {
		if before := beforeOf(l, i); before != nil && p.nodes[i].Kind == driver.CopyNode {
			looks = append(looks, before)
		}
	}
	if len(looks) == 0 || slices.ContainsFunc(p.nodes, mayWritePinned) || s.Captured() {
		return nil
	}
	return s.task("launch graph", "a look at the sources of a graph", func() {
		for _, look := range looks {
			look()
		}
	}, func() {})
}

func mayWritePinned(n driver.GraphNode) bool {
	switch n.Kind {
	case driver.CopyNode:
		return n.Copy.To != driver.OnDevice
	case driver.FillNode:
		return n.Fill.On != driver.OnDevice
	case driver.EmptyNode, driver.DelayNode:
		return false
	}
	return true
}
