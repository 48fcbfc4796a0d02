package bestfit

import (
	"slices"
	"sync"

	"halstream/hal/driver"
)

// Cache is a pool of memory that its user supplies, kept in parts for the keys
// that the user gives: the stream for whose work a block was taken, say. A block
// that is given back is at once free for the same key, and for no other.
type Cache struct {
	mu     sync.Mutex
	exact  bool // a block is given out for its own size only, never divided
	parts  map[cacheKey]*Bin
	keys   []cacheKey // of parts, by age
	totals map[int]uint64
	limits map[int]uint64
	order  uint64
}

type cacheKey struct {
	device int
	key    int64
}

// Block is a block of a Cache.
type Block struct {
	cache *Cache
	chunk *Chunk
	key   cacheKey
}

// NewCache makes an empty pool. With exact, blocks are not divided.
//
// Contract: M18.
func NewCache(exact bool) *Cache {
	return &Cache{exact: exact, parts: map[cacheKey]*Bin{}, totals: map[int]uint64{}, limits: map[int]uint64{}}
}

// Take returns a free block of at least size bytes of a device and a key, nil
// if there is none; a larger one is divided.
//
// Contract: M18.
func (p *Cache) Take(device int, key int64, size uint64) *Block {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := cacheKey{device, key}
	b := p.parts[k]
	if b == nil {
		return nil
	}
	c := b.Fit(size)
	if c == nil || p.exact && c.Size != size {
		return nil
	}
	b.Remove(c)
	if rest := c.Split(size); rest != nil {
		b.Add(rest)
	}
	return &Block{p, c, k}
}

// Reserve counts size bytes of a device that the user is about to supply. Add, or
// Unreserve if there is no memory, has to follow.
//
// # Errors
//   - an error of kind driver.OutOfMemory: the pool would hold more than its limit.
//
// Contract: M18.
func (p *Cache) Reserve(device int, size uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	total, limit := p.totals[device], p.limits[device]
	if limit != 0 && (size > limit || total > limit-size) {
		return driver.Errorf(driver.OutOfMemory, "allocate",
			"out of memory. Tried to allocate %d bytes: the pool holds %d, and its limit is %d", size, total, limit)
	}
	p.totals[device] = total + size
	return nil
}

// Unreserve undoes Reserve.
func (p *Cache) Unreserve(device int, size uint64) {
	p.mu.Lock()
	p.totals[device] -= size
	p.mu.Unlock()
}

// Add gives the pool a segment of memory that was reserved, and returns it as a
// block in use. FreeAll names it by number.
//
// Contract: M18.
func (p *Cache) Add(device int, key int64, start, size uint64, number int64) *Block {
	c := NewChunk(start, size)
	c.segment.number = number
	return &Block{p, c, cacheKey{device, key}}
}

// Address returns the address of the first byte.
func (b *Block) Address() uint64 { return b.chunk.Start }

// Free gives the block back to its pool. Only its owner calls it, once.
//
// Contract: M18.
func (b *Block) Free() {
	p := b.cache
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.parts[b.key]
	if part == nil {
		part = &Bin{}
		p.parts[b.key] = part
		p.keys = append(p.keys, b.key)
	}
	p.order++
	b.chunk.Order = p.order
	part.Add(b.chunk)
}

// FreeAll takes the segments of a device that are free as a whole out of the
// pool, of one key or of all, and returns their numbers: their memory is the
// user's to give back.
//
// Contract: M18.
func (p *Cache) FreeAll(device int, key int64, every bool) (segments []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = slices.DeleteFunc(p.keys, func(k cacheKey) bool {
		if k.device != device || !every && k.key != key {
			return false
		}
		part := p.parts[k]
		for c := range part.All() {
			if c.Whole() {
				part.Remove(c)
				p.totals[device] -= c.Size
				segments = append(segments, c.segment.number)
			}
		}
		if part.count == 0 {
			delete(p.parts, k)
		}
		return part.count == 0
	})
	return segments
}

// Stats are the figures of a Cache for one device.
type Stats struct {
	Total, Free, Limit uint64
	// FreeBlocks counts the parts that are free.
	FreeBlocks int
}

// Stats returns the figures of a device.
//
// Contract: M18.
func (p *Cache) Stats(device int) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Total: p.totals[device], Limit: p.limits[device]}
	for _, k := range p.keys {
		if k.device == device {
			s.Free += p.parts[k].bytes
			s.FreeBlocks += p.parts[k].count
		}
	}
	return s
}

// SetLimit bounds the bytes of a device that the pool may hold from now on; 0
// means no bound.
//
// Contract: M18.
func (p *Cache) SetLimit(device int, bytes uint64) {
	p.mu.Lock()
	p.limits[device] = bytes
	p.mu.Unlock()
}
