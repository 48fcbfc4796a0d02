package sched

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"

	"halstream/hal/prio"
)

// A policy holds the streams whose head operation can run, and chooses among them.
type policy interface {
	// add adds a stream that became ready.
	add(l *streamRun)
	// next removes and returns the stream whose head operation runs now; nil lets the
	// host continue.
	next(c choice) *streamRun
	// called is called for each call of the program.
	called()
}

// uncounted is embedded by the policies that ignore calls of the program.
type uncounted struct{}

func (uncounted) called() {}

// choice says what a policy may choose.
type choice struct {
	// forced says that the host is blocked, or that maxQueries was exceeded.
	forced bool
	// needed returns a ready stream that must move before the blocked host can
	// continue; nil if there is none.
	needed func() *streamRun
}

// callOrdered is embedded by the policies that keep the order of the calls.
type callOrdered struct {
	uncounted
	byCall
}

// byCall is a heap of streams by the call that enqueued their head operation.
type byCall []*streamRun

func (h byCall) Len() int           { return len(h) }
func (h byCall) Less(i, j int) bool { return h[i].key < h[j].key }
func (h byCall) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byCall) Push(x any)        { *h = append(*h, x.(*streamRun)) }
func (h *byCall) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = nil
	*h = old[:last]
	return l
}

func (h *byCall) add(l *streamRun) { heap.Push(h, l) }

func (h *byCall) first() *streamRun {
	if len(*h) == 0 {
		return nil
	}
	return heap.Pop(h).(*streamRun)
}

func (h *byCall) take(l *streamRun) *streamRun {
	if i := slices.Index(*h, l); i >= 0 {
		heap.Remove(h, i)
		return l
	}
	return nil
}

// fifo runs every operation that can run, in the order of the calls.
type fifo struct{ callOrdered }

func (p *fifo) next(choice) *streamRun { return p.first() }

// earliest runs every operation that can run: the most urgent first, and among those
// the one that became ready first, as an unlimited number of real threads would.
type earliest struct {
	uncounted
	ready prio.Queue[*streamRun]
}

func (p *earliest) add(l *streamRun) { p.ready.Push(l.s.Level(), l) }
func (p *earliest) next(choice) *streamRun {
	l, _ := p.ready.Pop()
	return l
}

// latest runs only operations that a blocked host waits for.
type latest struct{ callOrdered }

func (p *latest) next(c choice) *streamRun {
	if !c.forced {
		return nil
	}
	if l := c.needed(); l != nil {
		return p.take(l)
	}
	return p.first() // the host may need a function that opens a gate, for instance
}

// starve runs every operation that can run in the order of the calls, but one stream
// only when no other can run and the host is blocked.
type starve struct {
	callOrdered
	number  uint32
	starved *streamRun
}

func (p *starve) add(l *streamRun) {
	if l.number == p.number {
		p.starved = l
		return
	}
	p.byCall.add(l)
}

func (p *starve) next(c choice) *streamRun {
	if l := p.first(); l != nil || !c.forced {
		return l
	}
	l := p.starved
	p.starved = nil
	return l
}

// random runs any operation that can run, and lets the host continue at any time.
type random struct {
	uncounted
	source *rand.PCG
	ready  []*streamRun
}

func (p *random) add(l *streamRun) { p.ready = append(p.ready, l) }

func (p *random) next(c choice) *streamRun {
	if len(p.ready) == 0 || !c.forced && p.source.Uint64()&1 == 0 {
		return nil
	}
	i := int(p.source.Uint64() % uint64(len(p.ready)))
	l := p.ready[i]
	p.ready = slices.Delete(p.ready, i, i+1) // keeps the order, so that a run depends on the seed alone
	return l
}

// pct gives every stream and the host a random priority, and lowers that of the one
// that runs at depth-1 random steps (Burckhardt and others, ASPLOS 2010): with n
// streams and k steps it finds a fault of this depth with a probability of at least
// 1/(n*k^(depth-1)).
type pct struct {
	source  *rand.PCG
	ready   []*streamRun
	changes []uint64 // steps, ascending
	step    uint64
	low     uint64 // the priority after the next lowering, plus one
	host    uint64
}

func newPCT(seed, depth, steps uint64) *pct {
	p := &pct{source: rand.NewPCG(seed, depth), low: depth}
	p.host = p.priority()
	for range depth - 1 {
		p.changes = append(p.changes, 1+p.source.Uint64()%max(steps, 1))
	}
	slices.Sort(p.changes)
	return p
}

// priority returns a random priority above all lowered ones.
func (p *pct) priority() uint64 { return p.source.Uint64()>>1 | 1<<62 }

func (p *pct) add(l *streamRun) {
	if l.priority == 0 {
		l.priority = p.priority()
	}
	p.ready = append(p.ready, l)
}

// called implements policy: a call is a step of the host.
func (p *pct) called() { p.ran(&p.host) }

// ran counts a step of the stream, or the host, that has the priority.
func (p *pct) ran(priority *uint64) {
	p.step++
	for len(p.changes) > 0 && p.changes[0] <= p.step {
		p.changes = p.changes[1:]
		p.low--
		*priority = p.low
	}
}

func (p *pct) next(c choice) *streamRun {
	best := -1
	for i, l := range p.ready {
		if best < 0 || l.priority > p.ready[best].priority {
			best = i
		}
	}
	if best < 0 || !c.forced && p.host > p.ready[best].priority {
		return nil
	}
	l := p.ready[best]
	p.ready = slices.Delete(p.ready, best, best+1)
	p.ran(&l.priority)
	return l
}

// opName identifies an operation: by the number of its stream, and its own there.
type opName struct{ stream, op uint32 }

// release is what ends the hold of an operation: another operation, or a call.
type release struct {
	opName
	call uint32
}

// holds runs every operation that can run in the order of the calls, but holds some of
// them until other operations have run or calls were made.
type holds struct {
	callOrdered
	rules map[opName][]release
	held  []*streamRun
	d     *deterministic
}

func (p *holds) kept(l *streamRun) bool {
	return slices.ContainsFunc(p.rules[opName{l.number, l.head()}], func(u release) bool {
		if u.call > 0 {
			return uint32(len(p.d.calls)) < u.call
		}
		return u.stream > uint32(len(p.d.streams)) || !p.d.streams[u.stream-1].passed(u.op)
	})
}

func (p *holds) next(c choice) *streamRun {
	waiting := p.held[:0]
	for _, l := range p.held {
		if p.kept(l) {
			waiting = append(waiting, l)
		} else {
			p.add(l)
		}
	}
	clear(p.held[len(waiting):])
	p.held = waiting
	for l := p.first(); l != nil; l = p.first() {
		if !p.kept(l) {
			return l
		}
		p.held = append(p.held, l)
	}
	if !c.forced || len(p.held) == 0 {
		return nil
	}
	// No other operation can run: the earliest hold ends.
	first := slices.MinFunc(p.held, func(a, b *streamRun) int { return cmp.Compare(a.key, b.key) })
	delete(p.rules, opName{first.number, first.head()})
	p.held = slices.DeleteFunc(p.held, func(l *streamRun) bool { return l == first })
	return first
}
