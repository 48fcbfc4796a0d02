package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"halstream/hal/driver"
)

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

// CheckBody implements driver.BodyChecker.
func (d *Driver) CheckBody(on int, n *driver.GraphNode) string {
	switch {
	case n.Kind == driver.EmptyNode || isWhole(n, true) && n.Device == on:
		return ""
	case n.Device != on:
		return fmt.Sprintf("it is on device %d, and the body begins on device %d", n.Device, on)
	}
	return "the driver runs fills, copies and kernels there, but nothing of the host; put it before or behind the condition, " +
		"or decide on the host between two launches"
}

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
