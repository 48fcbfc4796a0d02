package hal

import (
	"slices"

	"halstream/hal/driver"
)

// How operations become nodes of a capture's graph.

// add adds a copy of n as a node behind what was captured on s.
func (c *Capture) add(s *Stream, n *Node) (*Node, error) {
	if c.legacy != nil {
		return nil, c.usable(s, n.kind.String())
	}
	if n.site == 0 {
		n.site = c.rt.listeners.site()
	}
	n.device, n.level = s.dev.ordinal, s.level
	if c.id != 0 { // not of Builder, whose stream is of one node only
		n.stream = s
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	if err := c.usableLocked(s, n.kind.String()); err != nil {
		return nil, err
	}
	c.makeNodes()
	b := c.branch(s)
	n.after = b.tails
	made := c.graph.add(n)
	made.self[0] = made
	b.tails = made.self[:]
	c.graph.keep.keepBlocks(made.blocks)
	return made, nil
}

// addNode is add for callers that need no node.
func (c *Capture) addNode(s *Stream, n *Node) error {
	_, err := c.add(s, n)
	return err
}

// addChild adds a graph as a node.
func (c *Capture) addChild(s *Stream, child *Graph) (*Node, error) {
	if child.rt != c.rt {
		return nil, otherRuntimeError("add node", "a graph")
	}
	own := child.clone()
	n := &Node{kind: driver.ChildNode, child: own}
	for _, m := range own.nodes {
		n.reads, n.writes = append(n.reads, m.reads...), append(n.writes, m.writes...)
	}
	n, err := c.add(s, n)
	if err == nil {
		c.graph.keep.addKeep(own.keep)
	}
	own.keep.release()
	return n, err
}

// addFunc adds a function of the program, which the graph keeps.
func (c *Capture) addFunc(s *Stream, token uint64, a Accesses, site uint32) error {
	n := Node{kind: driver.CallNode, token: token, reads: a.Reads, writes: a.Writes, site: site}
	if len(a.Reads)+len(a.Writes) > 0 {
		n.blocks = s.dev.rt.blocksOf(a.Reads, a.Writes)
	}
	return c.addToken(s, &n, token)
}

// addToken adds a node of a function, if n is not nil, and keeps what the token stands for.
func (c *Capture) addToken(s *Stream, n *Node, token uint64) error {
	if n != nil {
		if err := c.addNode(s, n); err != nil {
			return err
		}
	} else if err := c.usable(s, "keep objects"); err != nil {
		return err
	}
	c.graph.keep.addToken(token)
	return nil
}

// addNativeFunc adds a native function that can fail, and keeps its argument.
func (c *Capture) addNativeFunc(s *Stream, f *NativeFunc, call *nativeCall) error {
	reads, writes := f.ranges()
	n := &Node{kind: driver.NativeNode, spec: &driver.GraphWork{Native: &driver.Native{Call: &graphCall{nativeCall: *call}}},
		name: f.Name, site: f.Site, reads: reads, writes: writes, blocks: s.dev.rt.blocksOf(reads, writes)}
	if err := c.addNode(s, n); err != nil {
		return err
	}
	if call.release != 0 {
		c.graph.keep.add(call.free)
	}
	return nil
}

// launchNode is what a node with a launch needs, in one piece; the arguments, which C code gets, are another one, as
// cgo allows no pointers of Go's beside them.
type launchNode struct {
	work   driver.GraphWork
	launch driver.Launch
}

// addLaunch adds a launch of a function, which gets the lists. It keeps the arguments, and the module until the last
// launch.
func (c *Capture) addLaunch(s *Stream, f *Function, spec *LaunchSpec, reads, writes []Range, blocks []*Block) error {
	m := f.module
	keeps := c.legacy == nil && c.graph.keep.hasModule(m)
	if keeps && m.closed.Load() || !keeps && !m.beginKeep() {
		return closedError("launch", "module")
	}
	made := &launchNode{launch: spec.of(f)}
	made.launch.Args = slices.Clone(spec.Args)
	made.work.Launch = &made.launch
	err := c.addNode(s, &Node{kind: driver.KernelNode, spec: &made.work, name: f.name, site: spec.Site,
		reads: reads, writes: writes, blocks: append(blocks, m.code)})
	switch {
	case err != nil && !keeps:
		m.letGo(1)
	case err == nil && !keeps:
		c.graph.keep.addModule(m)
	}
	return err
}

// addCopy adds a copy between the blocks of source and target.
func (c *Capture) addCopy(s *Stream, copied driver.Copy, blocks []*Block, call CopyCall) error {
	if call == BlockingCopy {
		return c.refuse(s, "copy", "a copy that the host waits for cannot: enqueue it, and synchronize after the launch")
	}
	if blocks[0] == nil || blocks[1] == nil {
		return c.refuse(s, "copy", "a copy from or to pageable host memory needs the host: use pinned memory")
	}
	reads := rows(copied.Src, copied.SrcPitch, copied.Width, copied.Height)
	writes := rows(copied.Dst, copied.DstPitch, copied.Width, copied.Height)
	return c.addNode(s, &Node{kind: driver.CopyNode, spec: &driver.GraphWork{Copy: &copied},
		reads: reads, writes: writes, blocks: blocks})
}

// blocksOf returns the blocks that ranges begin in.
func (rt *Runtime) blocksOf(lists ...[]Range) (found []*Block) {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, list := range lists {
		for _, r := range list {
			if b := m.blocks.Find(r.Start); b != nil {
				found = append(found, b)
			}
		}
	}
	return found
}
