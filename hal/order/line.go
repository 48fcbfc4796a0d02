package order

import (
	"runtime"
	"sync"

	"halstream/hal"
)

// line is the state of a stream. Its stamp is that of the latest operation, which
// knows knowledge and its own stamp.
type line struct {
	stamp
	knowledge knowledge
	seen      knowledge // of the thread that enqueued last
	stream    *hal.Stream
	dev       *device
	ordered   bool // takes part in the legacy order
	legacy    bool // is the legacy default stream
	blocks    bool // calls that enqueue wait until the work is done

	dirty      bool   // has operations that the legacy default stream does not know
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

// place is the state of a line after an operation. It is kept while there are
// several host threads, since one may wait while another enqueues.
type place struct {
	order uint64 // hal.Operation.Seq
	stamp
	knowledge knowledge
}

// device is the streams of a device.
type device struct {
	ordinal int
	legacy  *line
	lines   []*line
	dirty   []*line // ordered ones with work that legacy does not know
	// What closed streams had done, and those of them that were ordered.
	past, pastOrdered knowledge
}

// thread is a host thread. Its slot is taken at its first access to memory; its
// knowledge contains its own stamp.
type thread struct {
	stamp
	id          uint64
	knowledge   knowledge
	pendingSync *line // the blocking stream whose work its latest call waited for
}

// endedThreads are the host threads whose tokens were collected.
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
		h = &thread{id: id, knowledge: c.lastEndedKnowledge}
		first := true
		for _, o := range c.threads {
			if first {
				h.knowledge, first = o.knowledge, false
			} else {
				h.knowledge = h.knowledge.common(o.knowledge)
			}
		}
		h.knowledge[asked] = h.knowledge[strict]
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

// tick gives l the stamp of its next operation, which t enqueues.
func (c *Checker) tick(l *line, t knowledge) {
	if l.slot == 0 {
		l.stamp = c.slots.take(t[strict], &l.knowledge)
	}
	l.seq++
}

// asOf returns where l was before the operation with number seq, of whose end the
// checker may be notified late.
func (l *line) asOf(seq uint64) (stamp, knowledge) {
	if l.lastSeq < seq || l.places == 0 {
		return l.stamp, l.knowledge
	}
	at := l.recent[(l.places-1)%len(l.recent)]
	for i := 2; i <= min(l.places, len(l.recent)) && at.order >= seq; i++ {
		at = l.recent[(l.places-i)%len(l.recent)]
	}
	return at.stamp, at.knowledge
}

// forget removes a closed stream: its slot is used again, its device keeps what it
// knew.
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
		g := gather{knowledge: &d.past}
		g.add(l.stamp, l.knowledge)
		if l.dirty {
			g := gather{knowledge: &d.pastOrdered}
			g.add(l.stamp, l.knowledge)
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
	c.slots.give(l.stamp, l.knowledge)
}
