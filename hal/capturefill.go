package hal

import (
	"halstream/hal/driver"
)

// fillCalls is how many calls of a list a fill is.
const fillCalls = 2

// CapturedFills says which fills a caller can add to a list of captured calls: those that lie in a block of memory.
type CapturedFills struct {
	Lane  int  // as CaptureFunc returns it; negative: nothing can be added
	Fresh bool // as CaptureFunc returns it
	// Start and Size are the block's, and Block is its number in the list. If the size is 0, no fill can be added.
	Start, Size uint64
	Block       uint32
	// FreshBlocks says that the numbers of blocks are not valid any more that were returned before.
	FreshBlocks bool
}

// AddFill adds a fill as Add adds a call, and reports whether the list still took it. The fill is one that CaptureFill
// has said can be added.
func (l *CapturedCalls) AddFill(on CapturedFills, site uint32, dst uint64, value uint32, size uint8, count uint64) bool {
	n := l.word.Load()
	at := n & listCount
	if n < listOpen|listFills || at+fillCalls > CapturedCallsMost {
		return false
	}
	l.Calls[at] = CapturedCall{Token: dst, Site: site, Lane: uint32(on.Lane) | FillCall}
	l.Calls[at+1] = CapturedCall{Token: count, Site: value, Lane: on.Block | uint32(size)<<blockBits | FillCall}
	return l.word.CompareAndSwap(n, n+fillCalls)
}

// CaptureFill is Fill, for a caller that adds more fills to list: where it became a node of a capture, it says which
// can be added, and else none. None can behind the free of any memory, until CaptureFill says so again.
//
// # Errors: as for Fill.
//
// Contract: G1, G10, G15.
func (s *Stream) CaptureFill(t *Thread, dst uint64, value uint32, size uint8, count uint64, list *CapturedCalls) (CapturedFills, error) {
	b, c, err := s.fill(t, dst, value, size, count)
	// Memory of another library is known for one call only, and what a graph allocates is not valid behind a node that frees it.
	if err != nil || c == nil || b.foreign || b.ofGraph != nil || !c.takesCalls(t, s) {
		return CapturedFills{Lane: -1}, err
	}
	return c.lendFills(s, b, list), nil
}

// lendFills lets the caller add fills of a block, on which a node of the capture works, to list.
func (c *Capture) lendFills(s *Stream, b *Block, list *CapturedCalls) (f CapturedFills) {
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	if c.calls.list != list {
		c.graph.mu.Unlock()
		c.lendList(list)
		c.graph.mu.Lock()
	}
	var err error
	f.Lane, f.Fresh, err = c.openList(s, "fill", list)
	if err != nil || len(c.calls.blocks) == 1<<blockBits {
		return f // with an error the capture has ended or was invalidated since: the next call tells
	}
	f.Block = uint32(len(c.calls.blocks))
	c.calls.blocks = append(c.calls.blocks, b)
	f.FreshBlocks = c.rt.captures.openFills(list)
	if b.Freed() { // perhaps before that
		c.rt.captures.closeFills()
		return f
	}
	f.Start, f.Size = b.Start, b.Size
	return f
}

// openFills lets fills be added to a list, which no other one takes any more, and reports whether it did not take them
// before.
func (a *captures) openFills(list *CapturedCalls) (fresh bool) {
	fresh = list.word.Or(listFills)&listFills == 0
	if before := a.fills.Swap(list); before != nil && before != list {
		before.word.And(^listFills)
	}
	return fresh
}

// closeFills lets no fills be added to any list, as memory is freed: the next one of it has to fail. It takes no lock.
func (a *captures) closeFills() {
	if list := a.fills.Load(); list != nil {
		list.word.And(^listFills)
	}
}

// makeFill makes n the node of a fill, of which the list has two halves.
func (l *calls) makeFill(n *Node, f *filledNode, first, second CapturedCall) {
	b := l.blocks[second.Lane&(1<<blockBits-1)]
	fill := driver.Fill{Dst: first.Token, Count: second.Token, Value: second.Site, Size: uint8(second.Lane >> blockBits & 7)}
	fill.On, _ = b.location()
	n.makeFill(f, fill, b)
}

// filledNode is what is kept of the node of a fill, in one piece.
type filledNode struct {
	work   driver.GraphWork
	writes [1]Range
	blocks [1]*Block
}

// makeFill makes n the node of a fill of a block, with the rest of it in f.
func (n *Node) makeFill(f *filledNode, fill driver.Fill, b *Block) {
	f.work.Fill = fill
	f.writes[0] = Range{fill.Dst, fill.Count * uint64(fill.Size)}
	f.blocks[0] = b
	n.kind, n.spec, n.writes, n.blocks = driver.FillNode, &f.work, f.writes[:], f.blocks[:]
}
