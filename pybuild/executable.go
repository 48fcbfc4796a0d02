package pybuild

import "halstream/hal"

// Executable graphs: launches and updates.

// ExecutableLaunch enqueues a launch.
func ExecutableLaunch(id, streamID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	x, err := lookup[*hal.GraphExec](id, "launch graph", "executable graph")
	if err != nil {
		return 0, err
	}
	s, err := stream(t, streamID, "launch graph")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, x.Launch(t, s))
}

// ExecutableUpdate makes later launches run another graph of the same topology.
func ExecutableUpdate(id, graph int64) (zero int64, err error) {
	return on(id, "update executable", "executable graph", func(x *hal.GraphExec) (int64, error) {
		g, err := lookup[*hal.Graph](graph, "update executable", "graph")
		if err != nil {
			return 0, err
		}
		return nothing(x.Update(caller(), g))
	})
}

// ExecutableNodeDevice returns the ordinal of the device of a node.
func ExecutableNodeDevice(id, index int64) (ordinal int64, err error) {
	return on(id, updateNode, "executable graph", func(x *hal.GraphExec) (int64, error) {
		ordinal, err := x.NodeDevice(int(index))
		return int64(ordinal), err
	})
}

// ExecutableUpload prepares the next launch on a stream.
func ExecutableUpload(id, streamID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	x, err := lookup[*hal.GraphExec](id, "upload graph", "executable graph")
	if err != nil {
		return 0, err
	}
	s, err := stream(t, streamID, "upload graph")
	if err != nil {
		return 0, err
	}
	if err := x.Upload(t, s); err != nil {
		return 0, raise(err)
	}
	return 0, nil
}

// ExecutableNodes returns how many nodes a launch runs.
func ExecutableNodes(id int64) (count int64, err error) {
	return on(id, "nodes", "executable graph", func(x *hal.GraphExec) (int64, error) { return int64(x.Nodes()), nil })
}

// ExecutableDestroy closes an executable graph; no other object has its id.
func ExecutableDestroy(id int64) (zero int64, err error) {
	return on(id, "destroy executable", "executable graph",
		func(*hal.GraphExec) (int64, error) { return nothing(closeAs(caller(), id)) })
}
