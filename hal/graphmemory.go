package hal

import (
	"slices"

	"halstream/hal/driver"
)

// Memory that a graph allocates and frees: the nodes of a capture that allocates in stream order.

// graphMemory says what became of a block that a node allocates. Its address never changes, so
// nodes can refer to it; the device's memory stays with the block for as long as a graph or the
// program needs it. The memory's lock guards the fields.
type graphMemory struct {
	// freedBy is the node that frees it, nil where the program does; beingFreed says that a thread
	// is about to add one.
	freedBy    *Node
	beingFreed bool
	// inside says that this is a node of the same graph, so that only nodes between use it.
	inside bool
	// by is the node that allocates it.
	by *Node
	// live says that a launch that was enqueued allocates it, and nothing enqueued frees it.
	live bool
}

// memoryNodes are the blocks that the nodes of a graph allocate, and those that they free.
type memoryNodes struct{ allocates, frees []*Block }

func (m *memoryNodes) any() bool { return len(m.allocates)+len(m.frees) > 0 }

// allocate adds a node that allocates memory.
func (c *Capture) allocate(s *Stream, op string, size int64, wait func(driver.Point) bool) (*Block, error) {
	if err := c.usable(s, op); err != nil {
		return nil, err
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	d := s.dev
	b := &Block{Size: uint64(size), Kind: DeviceMemory, dev: d, owner: &graphMemory{}}
	err := c.rt.allocWithRetry(d, op, b.Size, wait, func() (err error) {
		b.Start, err = d.d.Alloc(b.Size)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.id != 0 { // a builder's stream is for one node only
		b.allocStream = s
	}
	d.pool.countAlloc(b.Size)
	c.rt.addBlock(b)
	n, err := c.add(s, &Node{kind: driver.AllocNode, writes: []Range{{b.Start, b.Size}}, blocks: []*Block{b}})
	if err != nil {
		_ = b.Release(nil)
		return nil, err
	}
	c.rt.memory.mu.Lock()
	b.ofGraph().by = n
	c.rt.memory.mu.Unlock()
	return b, nil
}

// free adds a node that frees memory of a graph: the block only, if that is not nil, else the
// one at addr.
func (c *Capture) free(s *Stream, op string, addr uint64, only *Block) error {
	if err := c.usable(s, op); err != nil {
		return err
	}
	b := only
	m := &c.rt.memory
	m.mu.Lock()
	if b == nil {
		b = m.blocks.Find(addr)
	}
	ours := b != nil && b.ofGraph() != nil && (only != nil || b.Start == addr)
	freed := ours && (b.freed || b.ofGraph().freedBy != nil || b.ofGraph().beingFreed)
	if ours && !freed {
		b.ofGraph().beingFreed = true
	}
	m.mu.Unlock()
	switch {
	case freed:
		return b.alreadyFreed(op)
	case !ours:
		return c.refuse(s, op, "only memory that a graph has allocated can be freed by a node; free this after the last launch")
	}
	n, err := c.add(s, &Node{kind: driver.FreeNode, writes: []Range{{b.Start, b.Size}}, blocks: []*Block{b}})
	own := err == nil && c.result().allocates(b)
	m.mu.Lock()
	b.ofGraph().beingFreed = false
	if err == nil {
		b.ofGraph().freedBy, b.ofGraph().inside = n, own
	}
	m.mu.Unlock()
	if err == nil {
		c.graph.keep.add(func() { b.freedByNone(n) })
	}
	return err
}

// freedByNone lets another node free memory of a graph, now that nothing can launch the node that did.
func (b *Block) freedByNone(n *Node) {
	m := &b.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.ofGraph().freedBy == n {
		b.ofGraph().freedBy, b.ofGraph().inside = nil, false
	}
}

// allocates reports whether a node of the graph allocates a block.
func (g *Graph) allocates(b *Block) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.memory.allocates, b)
}

// note remembers the block that a node allocates or frees.
func (m *memoryNodes) note(n *Node) {
	switch n.kind {
	case driver.AllocNode:
		m.allocates = append(m.allocates, n.blocks[0])
	case driver.FreeNode:
		m.frees = append(m.frees, n.blocks[0])
	}
}

// checkValid rejects work on memory that is not allocated where the work runs: in a graph if
// captured says so. The caller holds the memory's lock.
func (b *Block) checkValid(op, role string, captured bool) error {
	switch m := b.ofGraph(); {
	case m.inside:
		return driver.Errorf(driver.InvalidValue, op, "the %s lies in the %d bytes at %#x, which are freed by %s of the graph that "+
			"allocates them; enqueue the work before it", role, b.Size, b.Start, m.freedBy.title())
	case captured:
		return nil // nodes may come after one that allocates it
	}
	return b.checkLaunched(op, role)
}

// checkLaunched rejects work outside of graphs on memory that no launch has allocated. The
// caller holds the memory's lock.
func (b *Block) checkLaunched(op, role string) error {
	if b.ofGraph().live {
		return nil
	}
	return driver.Errorf(driver.InvalidValue, op, "the %s lies in the %d bytes at %#x that %s of a graph allocates, and that no launch "+
		"has allocated, or that were freed since; launch the graph first", role, b.Size, b.Start, b.ofGraph().by.title())
}

// endLaunched notes that memory which a launch has allocated is freed outside of graphs. The
// caller holds the memory's lock.
func (b *Block) endLaunched(op string) error {
	if err := b.checkLaunched(op, "address"); err != nil {
		return err
	}
	b.ofGraph().live = false
	return nil
}

// OfGraph reports whether a node allocates the block: once for each launch, while there is one owner.
func (b *Block) OfGraph() bool { return b.ofGraph() != nil }

// leftByGraphs reports whether the memory of a block is to be returned now that no graph works
// on it. The caller holds the memory's lock.
func (b *Block) leftByGraphs() bool {
	return b.graphs == 0 && (b.collected || b.ofGraph() != nil && !b.ofGraph().live)
}

// keptByGraphs reports whether a graph needs a block that its owner gives up: then the block's
// memory is returned when none does. The caller holds the memory's lock.
func (b *Block) keptByGraphs() bool {
	if b.ofGraph() == nil || b.graphs == 0 || b.freed {
		return false
	}
	b.ofGraph().live, b.collected = false, true
	return true
}

// checkMemory rejects a launch of a version whose memory an earlier launch has allocated and
// nothing has freed, or that frees or uses what is not allocated. The caller holds the memory's
// lock.
func (v *version) checkMemory(autoFree bool) error {
	const op = "launch graph"
	for _, b := range v.memory.allocates {
		if b.ofGraph().live && !b.collected && !autoFree {
			return driver.Errorf(driver.InvalidValue, op, "the %d bytes at %#x that %s allocates are allocated since an "+
				"earlier launch; free them first, or instantiate the graph with auto-free on launch", b.Size, b.Start,
				b.ofGraph().by.title())
		}
	}
	for i, b := range v.blocks {
		if b.ofGraph() != nil && !b.ofGraph().live && !slices.Contains(v.memory.allocates, b) {
			return driver.Errorf(driver.InvalidValue, op, "the %d bytes at %#x that %s works on belong to another graph, and no launch "+
				"of it has allocated them, or they were freed since", b.Size, b.Start, v.blockOf[i].title())
		}
	}
	return nil
}

// beginMemory notes what a launch allocates and frees, and returns what was allocated before, for
// undoMemory. The caller holds the memory's lock.
func (v *version) beginMemory() (before []bool) {
	for _, b := range v.memory.allocates {
		before = append(before, b.ofGraph().live)
		b.ofGraph().live = true
	}
	for _, b := range v.memory.frees {
		before = append(before, b.ofGraph().live)
		b.ofGraph().live = false
	}
	return before
}

// undoMemory undoes beginMemory for a launch that failed.
func (v *version) undoMemory(rt *Runtime, before []bool) {
	if len(before) == 0 {
		return
	}
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	n := len(v.memory.allocates)
	for i, b := range v.memory.frees { // first: one that is in both was noted as allocated in between
		b.ofGraph().live = before[n+i]
	}
	for i, b := range v.memory.allocates {
		b.ofGraph().live = before[i]
	}
}

// refuseMemory is the error of an operation on a graph that allocates or frees memory, of which
// there is one.
func (g *Graph) refuseMemory(op, what string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.memory.any() {
		return nil
	}
	return driver.Errorf(driver.NotSupported, op, "the graph allocates or frees memory, which has one address: %s", what)
}
