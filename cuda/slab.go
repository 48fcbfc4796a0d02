package cuda

import (
	"math/bits"
	"slices"
	"sort"
	"sync"
)

// Streams can write and wait for values in memory of cuMemAlloc, and not in that of a pool. Small blocks, which
// hold such values, are therefore parts of slabs: a call of cuMemAlloc for each block would be slow, and cuMemFree
// waits for all work of the device.

// Sizes of small blocks, in bytes. What cuMemAlloc returns is aligned to the least one.
const (
	smallLeast = 256
	smallMost  = 4096 // also that of a page, whose blocks have one size
	slabSize   = 2 << 20
	slabPages  = slabSize / smallMost
	smallSizes = 5 // powers of two
)

// slabPage is a part of a slab that has blocks of one size.
type slabPage struct {
	slab  *blockSlab
	start uint64
	class int
	free  uint16 // a bit for each block that is not in use
	at    int    // its place among the pages of its size with free blocks, -1 if it is none
}

// blockSlab is memory of cuMemAlloc.
type blockSlab struct {
	start  uint64
	pages  [slabPages]slabPage
	unused []*slabPage // without blocks
	at     int         // its place among the slabs with unused pages, -1 if it is none
}

// slabs are the small blocks of a device. No driver is called while mu is held.
type slabs struct {
	mu   sync.Mutex
	all  []*blockSlab // by address
	room []*blockSlab // those with unused pages
	open [smallSizes][]*slabPage
	idle *blockSlab // has no block in use; there is one such slab at most
	free uint64     // bytes of the slabs that are in no block
}

// classOf returns which of the sizes a block of so many bytes has.
func classOf(size uint64) int { return max(0, bits.Len64(size-1)-bits.Len64(smallLeast-1)) }

// whole is what free is for a page of which no block is in use.
func whole(class int) uint16 { return uint16(1<<(smallMost/smallLeast>>class) - 1) }

// take returns a block of a slab that is there, 0 if none has room.
func (p *slabs) take(size uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked(classOf(size))
}

func (p *slabs) takeLocked(class int) uint64 {
	var page *slabPage
	if open := p.open[class]; len(open) > 0 {
		page = open[len(open)-1]
	} else if page = p.unusedPage(); page != nil {
		page.class, page.free = class, whole(class)
		p.addOpen(page)
	} else {
		return 0
	}
	i := bits.TrailingZeros16(page.free)
	page.free &^= 1 << i
	if page.free == 0 {
		p.removeOpen(page)
	}
	p.free -= smallLeast << class
	return page.start + uint64(i)*(smallLeast<<class)
}

func (p *slabs) unusedPage() *slabPage {
	if len(p.room) == 0 {
		return nil
	}
	slab := p.room[len(p.room)-1]
	if slab == p.idle {
		p.idle = nil
	}
	last := len(slab.unused) - 1
	page := slab.unused[last]
	slab.unused = slab.unused[:last]
	if last == 0 {
		p.removeRoom(slab)
	}
	return page
}

// add adds a slab that cuMemAlloc has returned, and takes a block from the slabs.
func (p *slabs) add(start, size uint64) uint64 {
	slab := &blockSlab{start: start, unused: make([]*slabPage, slabPages)}
	for i := range slab.pages {
		page := &slab.pages[i]
		*page = slabPage{slab: slab, start: start + uint64(i)*smallMost, at: -1}
		slab.unused[slabPages-1-i] = page // the last one is the first to be used
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.Insert(p.all, p.behind(start), slab)
	p.free += slabSize
	p.addRoom(slab)
	class := classOf(size)
	page := p.unusedPage()
	page.class, page.free = class, whole(class)
	p.addOpen(page)
	return p.takeLocked(class)
}

// give takes back a block. It reports whether addr is one of a slab, and returns the address of a slab that is to be
// freed, 0 for none.
func (p *slabs) give(addr uint64) (ours bool, unused uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slab := p.find(addr)
	if slab == nil {
		return false, 0
	}
	page := &slab.pages[(addr-slab.start)/smallMost]
	page.free |= 1 << ((addr - page.start) / (smallLeast << page.class))
	p.free += smallLeast << page.class
	if page.at < 0 {
		p.addOpen(page)
	}
	if page.free != whole(page.class) {
		return true, 0
	}
	p.removeOpen(page)
	slab.unused = append(slab.unused, page)
	if slab.at < 0 {
		p.addRoom(slab)
	}
	switch {
	case len(slab.unused) < slabPages:
		return true, 0
	case p.idle == nil:
		p.idle = slab
		return true, 0
	}
	p.remove(slab)
	return true, slab.start
}

// reclaim takes out the slab without blocks, and returns its address, 0 if there is none.
func (p *slabs) reclaim() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	slab := p.idle
	if slab == nil {
		return 0
	}
	p.idle = nil
	p.remove(slab)
	return slab.start
}

// clear takes out all slabs, and returns their addresses.
func (p *slabs) clear() (starts []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, slab := range p.all {
		starts = append(starts, slab.start)
	}
	p.all, p.room, p.idle, p.free, p.open = nil, nil, nil, 0, [smallSizes][]*slabPage{}
	return starts
}

// unused returns how many bytes of the slabs are in no block.
func (p *slabs) unused() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

// has reports whether an address is in a slab.
func (p *slabs) has(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(addr) != nil
}

// behind returns the index of the first slab behind addr.
func (p *slabs) behind(addr uint64) int {
	return sort.Search(len(p.all), func(i int) bool { return p.all[i].start > addr })
}

func (p *slabs) find(addr uint64) *blockSlab {
	if i := p.behind(addr); i > 0 && addr-p.all[i-1].start < slabSize {
		return p.all[i-1]
	}
	return nil
}

func (p *slabs) remove(slab *blockSlab) {
	p.free -= slabSize
	i := p.behind(slab.start) - 1
	p.all = slices.Delete(p.all, i, i+1)
	p.removeRoom(slab)
}

func (p *slabs) addOpen(page *slabPage) {
	list := &p.open[page.class]
	page.at = len(*list)
	*list = append(*list, page)
}

// removeOpen puts the last page of the list where this one was.
func (p *slabs) removeOpen(page *slabPage) {
	list := &p.open[page.class]
	last := (*list)[len(*list)-1]
	(*list)[page.at] = last
	last.at = page.at
	*list = (*list)[:len(*list)-1]
	page.at = -1
}

func (p *slabs) addRoom(slab *blockSlab) {
	slab.at = len(p.room)
	p.room = append(p.room, slab)
}

func (p *slabs) removeRoom(slab *blockSlab) {
	last := p.room[len(p.room)-1]
	p.room[slab.at] = last
	last.at = slab.at
	p.room = p.room[:len(p.room)-1]
	slab.at = -1
}
