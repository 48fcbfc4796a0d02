package hal

import (
	"container/heap"
	"fmt"
	"math"

	"halstream/hal/addrmap"
	"halstream/hal/driver"
)

// deferred holds blocks that were freed while pending operations use them. A block is
// in the heap of one stream on which an operation uses it. When that operation is
// done the block moves to the heap of another such stream, or its memory is returned.
// So the cost of a search depends on the operations that are done, not on the number
// of blocks.
type deferred struct {
	heaps     map[*Stream]*useHeap
	streams   []*Stream           // those with a heap, by age
	undecided []*Block            // that calls are about to enqueue work on, or whose free is not announced yet
	done      []*Block            // that no operation uses any more
	space     addrmap.Map[*Block] // those of the runtime's own memory, by address
	bytes     uint64
}

// waiting is a block and the place of a stream that it waits for.
type waiting struct {
	place uint64
	block *Block
}

type useHeap []waiting

func (h useHeap) Len() int           { return len(h) }
func (h useHeap) Less(i, j int) bool { return h[i].place < h[j].place }
func (h useHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *useHeap) Push(x any)        { *h = append(*h, x.(waiting)) }
func (h *useHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = waiting{}
	*h = old[:len(old)-1]
	return last
}

// add defers a block that was removed from the map. The caller holds the memory's
// lock, as for the other methods.
func (d *deferred) add(b *Block) {
	d.bytes += b.Size
	if b.ownMemory() {
		d.space.Insert(b.Start, b.Size, b)
	}
	d.wait(b)
}

// ownMemory reports whether the runtime allocated the memory of the block.
func (b *Block) ownMemory() bool { return b.module == nil && b.onReturn == nil && !b.registered }

// wait puts a block into the list or heap that it belongs to now.
func (d *deferred) wait(b *Block) {
	if b.unannounced {
		d.undecided = append(d.undecided, b)
		return
	}
	for _, u := range b.users {
		if u.calls > 0 {
			d.undecided = append(d.undecided, b)
			return
		}
	}
	u := b.pendingUse()
	if u == nil {
		d.done = append(d.done, b)
		return
	}
	h := d.heaps[u.stream]
	if h == nil {
		if d.heaps == nil {
			d.heaps = map[*Stream]*useHeap{}
		}
		h = &useHeap{}
		d.heaps[u.stream] = h
		d.streams = append(d.streams, u.stream)
	}
	heap.Push(h, waiting{u.place, b})
}

// take removes and returns at most most blocks that no operation uses any more.
func (d *deferred) take(most int) (found []*Block) {
	undecided := d.undecided
	d.undecided = nil
	for _, b := range undecided {
		d.wait(b)
	}
	looked := 0
	streams := d.streams
	d.streams = nil // wait adds streams whose heap it begins
	for _, s := range streams {
		h := d.heaps[s]
		w := s.d
		for len(*h) > 0 && looked < most && w.Reached((*h)[0].place) {
			d.wait(heap.Pop(h).(waiting).block)
			looked++
		}
		if len(*h) == 0 {
			delete(d.heaps, s)
		} else {
			d.streams = append(d.streams, s)
		}
	}
	n := min(most, len(d.done))
	found = append(found, d.done[:n]...)
	clear(d.done[:n])
	d.done = d.done[n:]
	if len(d.done) == 0 {
		d.done = nil
	}
	for _, b := range found {
		d.bytes -= b.Size
		if b.ownMemory() {
			d.space.Remove(b.Start)
		}
	}
	return found
}

// maxReap is the greatest number of freed blocks whose memory a call that frees or
// allocates returns: more than one, so that their number does not grow, and few, so
// that no call takes long.
const maxReap = 16

// reap returns the memory of at most most freed blocks that no operation uses any more.
func (rt *Runtime) reap(most int) {
	if rt.ended.Load() {
		return // closing the driver has freed all memory
	}
	rt.refresh()
	m := &rt.memory
	m.mu.Lock()
	found := m.deferred.take(most)
	m.mu.Unlock()
	for _, b := range found {
		rt.giveBack(b)
	}
}

// reapAll is reap without a bound, for calls that need the memory.
func (rt *Runtime) reapAll() {
	for range rt.refreshRounds() {
		rt.reap(math.MaxInt)
	}
}

// pendingFrees returns the points at which the operations that use freed blocks are
// done.
func (rt *Runtime) pendingFrees() (points driver.Points) {
	m := &rt.memory
	m.mu.Lock()
	var last []use
	for _, s := range m.deferred.streams {
		u := use{stream: s}
		for _, w := range *m.deferred.heaps[s] {
			u.place = max(u.place, w.place)
			for _, o := range w.block.users {
				if o.stream != s {
					last = append(last, o)
				}
			}
		}
		last = append(last, u)
	}
	m.mu.Unlock()
	for _, u := range last {
		points = append(points, u.stream.d.At(u.place))
	}
	return points
}

// countShortage counts an allocation that failed for lack of memory, or that waited
// for freed memory.
func (p *pool) countShortage(failed, waited bool) {
	p.mu.Lock()
	if failed {
		p.failures++
	}
	if waited {
		p.retries++
	}
	p.mu.Unlock()
}

// outOfMemoryError is e with the size that was asked for and the size of the freed
// memory that pending work still uses.
func (rt *Runtime) outOfMemoryError(op string, size uint64, e *Error) error {
	m := &rt.memory
	m.mu.Lock()
	freed := m.deferred.bytes
	m.mu.Unlock()
	hint := ""
	if freed != 0 {
		hint = fmt.Sprintf(" (%d bytes that were freed are still in use by pending work; synchronize its streams)", freed)
	}
	return &Error{Kind: e.Kind, Code: e.Code, Op: op, Token: e.Token,
		Text: fmt.Sprintf("out of memory. Tried to allocate %d bytes (%s)%s", size, e.Text, hint)}
}
