package order

import (
	"runtime"
	"sync"

	"halstream/hal"
)

// timeline is the state of a stream. Its stamp is that of the latest operation, whose
// clock covers clocks and its own stamp.
type timeline struct {
	stamp
	clocks  clocks
	seen    clocks // of the thread that enqueued last
	stream  *hal.Stream
	dev     *device
	ordered bool // takes part in the legacy order
	legacy  bool // is the legacy default stream
	blocks  bool // calls that enqueue wait until the work is done

	dirty      bool   // has operations that are not ordered before the legacy default stream's next
	legacySeen uint32 // up to which operation of the legacy default stream it comes after
	lastSeq    uint64 // of the latest operation
	recent     [4]place
	places     int

	queue   []*heldOp // held operations
	forcing bool
	closed  bool // to be forgotten once the queue is empty

	waits   [8]waitNote // the latest ones, for explanations
	nwaits  uint
	records [8]recordNote
	nrecord uint

	undeclared  [8]*info // the latest functions that declare no writes
	nundeclared uint
}

// place is the state of a timeline after an operation. It is kept while there are
// several host threads, since one may wait while another enqueues.
type place struct {
	order uint64 // hal.Operation.Seq
	stamp
	clocks clocks
}

// noteUndeclared remembers a function that declares no writes.
func (l *timeline) noteUndeclared(f *info) {
	l.undeclared[l.nundeclared%uint(len(l.undeclared))] = f
	l.nundeclared++
}

// device is the streams of a device.
type device struct {
	ordinal   int
	legacy    *timeline
	timelines []*timeline
	dirty     []*timeline // ordered ones with work that the legacy default stream is not ordered after
	// The clocks of closed streams, and of those that were ordered.
	past, pastOrdered clocks
}

// thread is a host thread. Its slot is allocated at its first access to memory; its
// clocks cover its own stamp.
type thread struct {
	stamp
	id          uint64
	clocks      clocks
	pendingSync *timeline // the blocking stream whose work its latest call waited for
}

// endedThreads lists the host threads whose tokens the collector has freed.
type endedThreads struct {
	mu  sync.Mutex
	ids []uint64
}

func (g *endedThreads) take() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := g.ids
	g.ids = nil
	return ids
}

func (c *Checker) timeline(s *hal.Stream) *timeline {
	if c.latest.stream == s {
		return c.latest.timeline
	}
	l := c.timelines[s]
	if l == nil {
		d := c.device(s.Device())
		l = &timeline{stream: s, dev: d, ordered: s.Ordered(), blocks: s.BlocksHost(), legacy: s == s.Device().Legacy()}
		if l.legacy {
			d.legacy = l
		}
		d.timelines = append(d.timelines, l)
		c.timelines[s] = l
	}
	c.latest.stream, c.latest.timeline = s, l
	return l
}

func (c *Checker) device(d *hal.Device) *device {
	found := c.devices[d]
	if found == nil {
		found = &device{ordinal: d.Ordinal()}
		c.devices[d] = found
		c.all = append(c.all, found)
	}
	return found
}

func (c *Checker) thread(t *hal.Thread) *thread {
	var id uint64 // callers without a thread are one thread
	if t != nil {
		id = t.ID
	}
	if h := c.latest.thread; h != nil && c.latest.id == id {
		return h
	}
	h := c.threads[id]
	if h == nil {
		h = &thread{id: id, clocks: c.firstClocks(id)}
		h.clocks[queried] = h.clocks[strict]
		c.threads[id] = h
		if t != nil {
			ended := c.ended
			runtime.AddCleanup(t, func(id uint64) {
				ended.mu.Lock()
				ended.ids = append(ended.ids, id)
				ended.mu.Unlock()
			}, id)
		}
	}
	c.latest.id, c.latest.thread = id, h
	return h
}

// firstClocks returns what a thread that calls for the first time comes after: what is
// known of its beginning, or else, where the beginning of threads is not observed, what all
// other threads come after, since one of them started it.
func (c *Checker) firstClocks(id uint64) clocks {
	if known, ok := c.begunClocks(id); ok {
		return known
	}
	k, first := c.lastEndedClocks, true
	for _, o := range c.threads {
		if first {
			k, first = o.clocks, false
		} else {
			k = k.common(o.clocks)
		}
	}
	return k
}

// tick gives l the stamp of its next operation, which t enqueues.
func (c *Checker) tick(l *timeline, t clocks) {
	if l.slot == 0 {
		l.stamp = c.slots.take(t[strict], &l.clocks)
	}
	l.seq++
}

// asOf returns the state of l before the operation with number seq: the checker may
// see the end of a wait after later operations.
func (l *timeline) asOf(seq uint64) (stamp, clocks) {
	if l.lastSeq < seq || l.places == 0 {
		return l.stamp, l.clocks
	}
	at := l.recent[(l.places-1)%len(l.recent)]
	for i := 2; i <= min(l.places, len(l.recent)) && at.order >= seq; i++ {
		at = l.recent[(l.places-i)%len(l.recent)]
	}
	return at.stamp, at.clocks
}

// forget removes a closed stream: its slot is used again, and its device keeps its
// clocks.
func (c *Checker) forget(l *timeline) {
	delete(c.timelines, l.stream)
	c.latest.stream, c.latest.timeline = nil, nil
	d := l.dev
	for i, o := range d.timelines {
		if o == l {
			d.timelines[i] = d.timelines[len(d.timelines)-1]
			d.timelines[len(d.timelines)-1] = nil
			d.timelines = d.timelines[:len(d.timelines)-1]
			break
		}
	}
	if l.slot == 0 {
		return
	}
	if !c.floor.covers(l.stamp) {
		g := gather{clocks: &d.past}
		g.add(l.stamp, l.clocks)
		if l.dirty {
			g := gather{clocks: &d.pastOrdered}
			g.add(l.stamp, l.clocks)
		}
	}
	if l.dirty {
		for i, o := range d.dirty {
			if o == l {
				d.dirty = append(d.dirty[:i], d.dirty[i+1:]...)
				break
			}
		}
	}
	c.slots.give(l.stamp, l.clocks)
}
