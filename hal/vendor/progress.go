package vendor

import (
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// Progress is the part of a stream that backends share. It counts the operations that were enqueued, and how many of
// them are known to be done: from queries and waits of the program, and from cached fences where the state of a single
// operation is needed. The number of an operation is its sequence number. It keeps the first error of the stream.
type Progress struct {
	dev     *Device
	further func()

	enqueued atomic.Uint64 // operations that the library has accepted
	done     atomic.Uint64 // those known to be done
	wanted   atomic.Uint64 // the latest sequence number for which Reached has answered false
	hostWait atomic.Uint64 // that of the latest wait for a value or a settable event
	// reporter is the stream that reports the errors of this one, nil for itself.
	reporter atomic.Pointer[Progress]

	mu      sync.Mutex
	failure *driver.Error
	cached  []cachedFence // in the order of their sequence numbers
}

// cachedFence is an event that was recorded behind the operation with a sequence number.
type cachedFence struct {
	seq   uint64
	event *FenceEvent
}

// maxCached is how many fences a stream caches before it queries which were reached.
const maxCached = 64

// Init is called once, before the stream is used. further, if it is not nil, is called each time when more operations are
// known to be done.
func (p *Progress) Init(d *Device, further func()) { p.dev, p.further = d, further }

// Last implements driver.Stream.
func (p *Progress) Last() uint64 { return p.enqueued.Load() }

// Count counts an operation that the library has accepted, and returns its sequence number.
func (p *Progress) Count() uint64 { return p.enqueued.Add(1) }

// Done returns up to which sequence number the operations are known to be done.
func (p *Progress) Done() uint64 { return p.done.Load() }

// AtMost returns how many operations may be pending, 1 at least.
func (p *Progress) AtMost() int { return max(1, int(p.enqueued.Load()-p.done.Load())) }

// raise makes a number at least n, and reports whether it was less.
func raise(number *atomic.Uint64, n uint64) bool {
	for {
		before := number.Load()
		if before >= n {
			return false
		}
		if number.CompareAndSwap(before, n) {
			return true
		}
	}
}

// SetReached makes the operations up to a sequence number count as done.
func (p *Progress) SetReached(seq uint64) {
	if raise(&p.done, seq) && p.further != nil {
		p.further()
	}
}

// Reached implements driver.Stream.
func (p *Progress) Reached(seq uint64) bool {
	if p.done.Load() >= seq || p.dev.Unusable() {
		return true
	}
	raise(&p.wanted, seq)
	return false
}

// Cache keeps an event that was recorded behind the operation with a sequence number, and takes over a reference to it: from
// then on Reached is exact for that operation, instead of true only when later ones are done, too.
func (p *Progress) Cache(seq uint64, e *FenceEvent) {
	p.mu.Lock()
	p.cached = append(p.cached, cachedFence{seq, e})
	many := len(p.cached) > maxCached
	p.mu.Unlock()
	if many {
		p.QueryCached()
	}
}

// CachesMany reports whether the next fence that is cached makes the stream query which were reached.
func (p *Progress) CachesMany() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cached) >= maxCached
}

// Cached returns a cached fence behind the operation with a sequence number, nil if there is none.
func (p *Progress) Cached(seq uint64) *Fence {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cached {
		if c.seq >= seq && c.event.Hold() {
			return NewFence(c.event, p, c.seq)
		}
	}
	return nil
}

// QueryCached queries which cached fences were reached, in their order.
func (p *Progress) QueryCached() {
	for p.queryFirst() {
	}
}

// queryFirst queries the first cached fence, and reports whether it was reached.
func (p *Progress) queryFirst() bool {
	p.mu.Lock()
	if len(p.cached) == 0 || !p.cached[0].event.Hold() {
		p.mu.Unlock()
		return false
	}
	first := p.cached[0]
	p.mu.Unlock()
	context := p.dev.enter()
	if context != nil {
		defer context.Leave() // when the event is released
	}
	defer first.event.Release()
	done := p.done.Load() >= first.seq || context == nil
	if !done {
		done, _ = context.Await(first.event, 0, "look at place")
	}
	if !done && !p.dev.IsLost() {
		return false
	}
	p.SetReached(first.seq)
	p.mu.Lock()
	mine := len(p.cached) > 0 && p.cached[0] == first
	if mine {
		p.cached[0] = cachedFence{}
		p.cached = p.cached[1:]
	}
	p.mu.Unlock()
	if mine {
		first.event.Release()
	}
	return true
}

// DropCached releases the cached fences.
func (p *Progress) DropCached() {
	p.mu.Lock()
	cached := p.cached
	p.cached = nil
	p.mu.Unlock()
	for _, c := range cached {
		c.event.Release()
	}
}

// Refresh queries how far the stream is if Reached has answered false since. look queries the stream itself, and reports
// whether no fence is needed any more; keep caches a fence behind the work.
func (p *Progress) Refresh(look func() bool, keep func()) {
	p.QueryCached()
	wanted := p.wanted.Load()
	if p.done.Load() >= wanted || look() {
		return
	}
	p.mu.Lock()
	covered := slices.ContainsFunc(p.cached, func(c cachedFence) bool { return c.seq >= wanted })
	p.mu.Unlock()
	if !covered {
		keep()
	}
}

// AwaitsHostAt notes that the operation with a sequence number waits for something that the program may have to do. keep makes
// Reached exact for that operation.
func (p *Progress) AwaitsHostAt(seq uint64, keep func()) {
	if raise(&p.hostWait, seq) {
		keep()
	}
}

// MayAwaitHost reports whether such an operation may be pending, as far as is known.
func (p *Progress) MayAwaitHost() bool { return p.done.Load() < p.hostWait.Load() }

// AwaitsHost is MayAwaitHost after refresh, which queries how far the stream is.
func (p *Progress) AwaitsHost(refresh func()) bool {
	seq := p.hostWait.Load()
	if p.Reached(seq) {
		return false
	}
	refresh()
	return !p.Reached(seq)
}

// ReportBy makes another stream report the errors of this one.
func (p *Progress) ReportBy(other *Progress) { p.reporter.Store(other) }

// Fail makes err the stream's error unless it has one, and reports whether it did.
func (p *Progress) Fail(err *driver.Error) bool {
	if by := p.reporter.Load(); by != nil {
		return by.Fail(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return false
	}
	p.failure = err
	return true
}

// MayHaveFailed implements driver.Stream: the vendor's library may have an error that nobody has asked for.
func (*Progress) MayHaveFailed() bool { return true }

// Failure implements driver.Stream.
func (p *Progress) Failure() *driver.Error {
	p.mu.Lock()
	err := p.failure
	p.failure = nil
	p.mu.Unlock()
	if p.dev.IsLost() {
		return p.dev.LostError("synchronize")
	}
	return err
}
