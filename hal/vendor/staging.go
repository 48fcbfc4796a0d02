package vendor

import (
	"math/bits"
	"sync"
)

// Staged is pinned memory of the backend that copies in flight read or write.
type Staged struct {
	mu   sync.Mutex
	list []staging
}

// staging is a block of pinned memory that is in use until a fence is reached.
type staging struct {
	fence *Fence
	addr  uint64
}

// Add adds a block that is in use until a fence is reached.
func (p *Staged) Add(f *Fence, addr uint64) {
	p.mu.Lock()
	p.list = append(p.list, staging{f, addr})
	p.mu.Unlock()
}

// Collect gives blocks that are no longer in use to free. It queries at most most of them, and those first that were
// queried least recently.
func (p *Staged) Collect(most int, free func(addr uint64)) {
	p.mu.Lock()
	n := min(most, len(p.list))
	list := append([]staging(nil), p.list[:n]...)
	p.list = p.list[n:]
	p.mu.Unlock()
	for _, s := range list {
		if s.fence.Wait(0) {
			free(s.addr)
			continue
		}
		p.Add(s.fence, s.addr)
	}
}

// leastPinned is the smallest size in bytes of pinned memory that is asked of a library.
const leastPinned = 4 << 10

// PinnedSize rounds a size up, so that blocks of pinned memory that were freed fit later requests: at most a quarter more, in
// whole pages.
func PinnedSize(size uint64) uint64 {
	if size <= leastPinned {
		return leastPinned
	}
	step := max(leastPinned, uint64(1)<<(bits.Len64(size-1)-3))
	return (size + step - 1) / step * step
}
