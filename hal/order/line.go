package order

import (
	"runtime"
	"sync"

	"halstream/hal"
)

// line is a stream: operations one after the other. Its stamp is that of the
// latest one; what that one knows is know and its own stamp.
type line struct {
	stamp
	know    know
	seen    know // of the host when it enqueued last
	stream  *hal.Stream
	dev     *device
	ordered bool // takes part in the legacy order
	legacy  bool // is the legacy default stream
	blocks  bool // the host, until its work is done

	dirty      bool   // has work that the legacy default stream does not know
	legacySeen uint32 // how far it knows the legacy default stream
	lastSeq    uint64 // of the latest operation
	recent     [4]place
	places     int

	queue   []*item // held operations
	forcing bool
	closed  bool // to be forgotten once the queue is empty

	waits   [8]waitNote // the latest ones, for explanations
	nwaits  uint
	records [8]recordNote
	nrecord uint
}

// place is where a line was after an operation; kept while several host
// threads are about, since one may wait while another enqueues.
type place struct {
	order uint64 // hal.Operation.Seq
	stamp
	know know
}

// device is the streams of a device.
type device struct {
	ordinal int
	legacy  *line
	lines   []*line
	dirty   []*line // ordered ones with work that legacy does not know
	// What closed streams had done, and those of them that were ordered.
	past, pastOrdered know
}

// thread is a host thread. Its slot is taken at its first access to memory; its
// knowledge contains its own stamp.
type thread struct {
	stamp
	id   uint64
	know know
	owes *line // whose latest operation it waited for within the call
}

// graves are the host threads that nobody can use any more.
type graves struct {
	mu  sync.Mutex
	ids []uint64
}

func (g *graves) take() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := g.ids
	g.ids = nil
	return ids
}

func (c *Checker) line(s *hal.Stream) *line {
	if c.latest.stream == s {
		return c.latest.line
	}
	l := c.lines[s]
	if l == nil {
		d := c.device(s.Device())
		l = &line{stream: s, dev: d, ordered: s.Ordered(), blocks: s.BlocksHost(), legacy: s == s.Device().Legacy()}
		if l.legacy {
			d.legacy = l
		}
		d.lines = append(d.lines, l)
		c.lines[s] = l
	}
	c.latest.stream, c.latest.line = s, l
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
		h = &thread{id: id, know: c.orphan}
		first := true
		for _, o := range c.threads {
			if first {
				h.know, first = o.know, false
			} else {
				h.know = h.know.common(o.know)
			}
		}
		h.know[asked] = h.know[strict]
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

// tick makes room for an operation of l that t enqueues.
func (c *Checker) tick(l *line, t know) {
	if l.slot == 0 {
		l.stamp = c.slots.take(t[strict], &l.know)
	}
	l.seq++
}

// asOf returns where l was before the operation with number seq, of whose end the
// checker may be notified late.
func (l *line) asOf(seq uint64) (stamp, know) {
	if l.lastSeq < seq || l.places == 0 {
		return l.stamp, l.know
	}
	at := l.recent[(l.places-1)%len(l.recent)]
	for i := 2; i <= min(l.places, len(l.recent)) && at.order >= seq; i++ {
		at = l.recent[(l.places-i)%len(l.recent)]
	}
	return at.stamp, at.know
}

// forget ends a closed stream: others take its slot, its device keeps what it knew.
func (c *Checker) forget(l *line) {
	delete(c.lines, l.stream)
	c.latest.stream, c.latest.line = nil, nil
	d := l.dev
	for i, o := range d.lines {
		if o == l {
			d.lines[i] = d.lines[len(d.lines)-1]
			d.lines[len(d.lines)-1] = nil
			d.lines = d.lines[:len(d.lines)-1]
			break
		}
	}
	if l.slot == 0 {
		return
	}
	if !c.floor.knows(l.stamp) {
		g := gather{know: &d.past}
		g.add(l.stamp, l.know)
		if l.dirty {
			g := gather{know: &d.pastOrdered}
			g.add(l.stamp, l.know)
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
	c.slots.give(l.stamp, l.know)
}
