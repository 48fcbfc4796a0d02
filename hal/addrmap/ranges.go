package addrmap

import (
	"slices"
	"sort"
	"sync"
)

// Ranges is a set of addresses, as ranges of which none touches the next. The zero value is empty. Its methods may be
// called by any thread.
type Ranges struct {
	mu   sync.Mutex
	list []addressRange // by address
}

type addressRange struct{ start, end uint64 }

// maxRanges bounds the list: beyond it the lowest addresses are forgotten.
const maxRanges = 1 << 14

// at returns the index of the first range that ends behind addr.
func (p *Ranges) at(addr uint64) int {
	return sort.Search(len(p.list), func(i int) bool { return p.list[i].end > addr })
}

// Add adds a range.
func (p *Ranges) Add(start, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := start + size
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].end >= start })
	j := i
	for ; j < len(p.list) && p.list[j].start <= end; j++ {
		start, end = min(start, p.list[j].start), max(end, p.list[j].end)
	}
	p.list = slices.Replace(p.list, i, j, addressRange{start, end})
	if len(p.list) > maxRanges {
		p.list = slices.Delete(p.list, 0, 1)
	}
}

// Remove removes the addresses of a range.
func (p *Ranges) Remove(start, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := start + size
	i := p.at(start)
	j := i
	var rest []addressRange
	for ; j < len(p.list) && p.list[j].start < end; j++ {
		if s := p.list[j]; s.start < start {
			rest = append(rest, addressRange{s.start, start})
		}
		if s := p.list[j]; s.end > end {
			rest = append(rest, addressRange{end, s.end})
		}
	}
	p.list = slices.Replace(p.list, i, j, rest...)
}

// Has reports whether an address is in the set.
func (p *Ranges) Has(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.at(addr)
	return i < len(p.list) && p.list[i].start <= addr
}
