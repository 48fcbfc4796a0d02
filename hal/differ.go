package hal

import (
	"fmt"
	"slices"

	"halstream/hal/driver"
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
	return differ("", before.nodes, v.nodes)
}

// differ returns the error of an update of nodes, which are those of the body of a node if
// where says so.
func differ(where string, before, after []driver.GraphNode) error {
	if len(after) != len(before) {
		return refuseUpdate("the topology changed%s: the executable has %d nodes and the graph %d", where, len(before), len(after))
	}
	for i := range after {
		a, b := &before[i], &after[i]
		switch {
		case a.Kind != b.Kind:
			return refuseUpdate("the type of node %d%s changed from %s to %s", i, where, a.Kind, b.Kind)
		case !slices.Equal(a.After, b.After):
			return refuseUpdate("the topology changed%s: node %d (%s) comes after other nodes", where, i, b.Kind)
		case a.Device != b.Device:
			return refuseUpdate("node %d (%s)%s moved from device %d to device %d", i, b.Kind, where, a.Device, b.Device)
		}
		if a.GraphWork == nil || b.GraphWork == nil {
			continue
		}
		if len(a.Bodies) != len(b.Bodies) {
			return refuseUpdate("node %d (%s)%s has %d bodies, and had %d", i, b.Kind, where, len(b.Bodies), len(a.Bodies))
		}
		for k := range b.Bodies {
			if err := differ(fmt.Sprintf("%s in body %d of node %d", where, k, i), a.Bodies[k], b.Bodies[k]); err != nil {
				return err
			}
		}
	}
	return nil
}
