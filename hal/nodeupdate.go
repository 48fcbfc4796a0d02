package hal

import (
	"maps"

	"halstream/hal/driver"
)

// NodeBuilder returns a stream on which the caller enqueues one operation, which BuiltUpdate puts
// in the place of a node of an executable: one of the same kind on the same device.
//
// # Errors
//   - [ErrInvalidValue]: the executable has no such node.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G11. Source: CUDA driver API, cuGraphExecNodeSetParams.
func (x *GraphExec) NodeBuilder(t *Thread, index int) (*Stream, error) {
	const op = "update node"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	ordinal, err := x.NodeDevice(index)
	if err != nil {
		return nil, err
	}
	return x.rt.newGraph().Builder(t, x.rt.devices[ordinal], nil)
}

// NodeDevice returns the ordinal of the device that a node runs on.
//
// # Errors
//   - [ErrInvalidValue]: the executable has no such node.
//   - [ErrClosed].
func (x *GraphExec) NodeDevice(index int) (int, error) {
	v := x.now.Load()
	if v == nil {
		return 0, closedError("update node", "executable graph")
	}
	nodes := v.graph.nodes
	if index < 0 || index >= len(nodes) {
		return 0, driver.Errorf(driver.InvalidValue, "update node", "the graph has no node %d, but %d nodes", index, len(nodes))
	}
	return nodes[index].device, nil
}

// BuiltUpdate makes later launches do at a node of an executable what was enqueued on s, a stream
// of NodeBuilder.
//
// # Errors
//   - [ErrCapture]: the operation is of another kind than the node.
//   - [ErrInvalidValue]: not exactly one was enqueued.
//   - [ErrClosed].
//
// Contract: G11. Source: CUDA driver API, cuGraphExecNodeSetParams.
func (x *GraphExec) BuiltUpdate(s *Stream, index int) error {
	const op = "update node"
	n, err := s.Built()
	if err != nil {
		return err
	}
	defer n.graph.keep.release()
	return x.become(nil, op, func(before *version) (*version, error) {
		old := before.graph.nodes[index]
		switch {
		case old.kind != n.kind:
			return nil, captureError(codeUpdate, op, "%s cannot become a node of kind %s; give an operation of its kind", old.title(), n.Kind())
		case old.device != n.device:
			return nil, captureError(codeUpdate, op, "%s cannot move from device %d to device %d", old.title(), old.device, n.device)
		case n.kind == driver.AllocNode || n.kind == driver.FreeNode:
			return nil, captureError(codeUpdate, op, "%s cannot change: its address is that of the graph", old.title())
		}
		return before.replaced(index, n), nil
	})
}

// replaced returns a version with another node in the place of one. It keeps what the graph that
// was instantiated keeps, and what the nodes that stand for others do, but not what those did that
// were replaced twice.
func (v *version) replaced(index int, n *Node) *version {
	own := maps.Clone(v.own)
	if own == nil {
		own = map[int]*keep{}
	}
	own[index] = n.graph.keep
	g := v.graph.copyInto(v.graph.rt.newGraph())
	g.keep.addKeep(v.base)
	for _, k := range own {
		g.keep.addKeep(k)
	}
	old := g.nodes[index]
	after, stream := old.after, old.stream
	*old = *n
	old.graph, old.index, old.after, old.stream = g, index, after, stream
	return g.versionOf(v.base, own)
}

// Upload prepares the next launch of the executable, so that it takes no longer than later ones.
//
// # Errors: as for Launch, but that memory is not looked at.
//
// Contract: G11. Source: CUDA driver API, cuGraphUpload.
func (x *GraphExec) Upload(t *Thread, s *Stream) error {
	const op = "upload graph"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if x.Closed() {
		return closedError(op, "executable graph")
	}
	if s.dev.rt != x.rt {
		return otherRuntimeError(op, "the executable")
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, "upload the graph before the capture begins")
	}
	if u, ok := x.d.(driver.Uploader); ok {
		return u.Upload(s.d)
	}
	return nil
}
