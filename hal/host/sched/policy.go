package sched

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"

	"halstream/hal/prio"
)

// A policy holds the lanes whose head operation can run, and chooses among them.
type policy interface {
	// add takes a lane that became ready.
	add(l *lane)
	// next takes the lane off whose head operation runs now; nil lets the host
	// go on.
	next(c choice) *lane
	// called notes a call of the program.
	called()
}

// uncounted is embedded by the policies for which calls do not count.
type uncounted struct{}

func (uncounted) called() {}

// choice is what a policy is asked.
type choice struct {
	// forced says that the host is blocked, or has asked in vain too often.
	forced bool
	// needed finds a ready lane without which the host cannot go on; nil if
	// there is none.
	needed func() *lane
}

// heaped is embedded by the policies that keep the order of the calls.
type heaped struct {
	uncounted
	byCall
}

// byCall is a heap of lanes by the call that enqueued their head operation.
type byCall []*lane

func (h byCall) Len() int           { return len(h) }
func (h byCall) Less(i, j int) bool { return h[i].key < h[j].key }
func (h byCall) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byCall) Push(x any)        { *h = append(*h, x.(*lane)) }
func (h *byCall) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = nil
	*h = old[:last]
	return l
}

func (h *byCall) add(l *lane) { heap.Push(h, l) }

func (h *byCall) first() *lane {
	if len(*h) == 0 {
		return nil
	}
	return heap.Pop(h).(*lane)
}

func (h *byCall) take(l *lane) *lane {
	if i := slices.Index(*h, l); i >= 0 {
		heap.Remove(h, i)
		return l
	}
	return nil
}

// fifo runs all that can run, in the order of the calls.
type inOrder struct{ heaped }

func (p *inOrder) next(choice) *lane { return p.first() }

// earliest runs all that can run, the most urgent first and then what could run
// first, as real threads without limits would.
type earliest struct {
	uncounted
	ready prio.Queue[*lane]
}

func (p *earliest) add(l *lane) { p.ready.Push(l.s.Level(), l) }
func (p *earliest) next(choice) *lane {
	l, _ := p.ready.Pop()
	return l
}

// latest runs only what a blocked host needs.
type latest struct{ heaped }

func (p *latest) next(c choice) *lane {
	if !c.forced {
		return nil
	}
	if l := c.needed(); l != nil {
		return p.take(l)
	}
	return p.first() // what helps may be a function that opens a gate
}

// starve runs all that can run in the order of the calls, but one stream only
// when nothing else can and the host is blocked.
type starve struct {
	heaped
	number uint32
	hungry *lane
}

func (p *starve) add(l *lane) {
	if l.number == p.number {
		p.hungry = l
		return
	}
	p.byCall.add(l)
}

func (p *starve) next(c choice) *lane {
	if l := p.first(); l != nil || !c.forced {
		return l
	}
	l := p.hungry
	p.hungry = nil
	return l
}

// random runs any that can run, and lets the host go on at any time.
type random struct {
	uncounted
	source *rand.PCG
	ready  []*lane
}

func (p *random) add(l *lane) { p.ready = append(p.ready, l) }

func (p *random) next(c choice) *lane {
	if len(p.ready) == 0 || !c.forced && p.source.Uint64()&1 == 0 {
		return nil
	}
	i := int(p.source.Uint64() % uint64(len(p.ready)))
	l := p.ready[i]
	p.ready = slices.Delete(p.ready, i, i+1) // in order: the next choice must not depend on how
	return l
}

// pct gives every stream and the host a random priority and lowers that of who
// runs at depth-1 random steps (Burckhardt and others, ASPLOS 2010): with n of
// them and k steps it finds a fault of this depth with at least 1/(n*k^(depth-1)).
type pct struct {
	source  *rand.PCG
	ready   []*lane
	changes []uint64 // steps, ascending
	step    uint64
	low     uint64 // what the next one is lowered to
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

// priority is above all that lowering gives.
func (p *pct) priority() uint64 { return p.source.Uint64()>>1 | 1<<62 }

func (p *pct) add(l *lane) {
	if l.priority == 0 {
		l.priority = p.priority()
	}
	p.ready = append(p.ready, l)
}

// called implements policy: the host has taken a step.
func (p *pct) called() { p.ran(&p.host) }

// ran counts a step of whoever has the priority.
func (p *pct) ran(priority *uint64) {
	p.step++
	for len(p.changes) > 0 && p.changes[0] <= p.step {
		p.changes = p.changes[1:]
		p.low--
		*priority = p.low
	}
}

func (p *pct) next(c choice) *lane {
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

// place names an operation: the number of its stream and its own there.
type opName struct{ stream, op uint32 }

// until is what an operation is held for: another operation, or a call.
type until struct {
	opName
	call uint32
}

// holds runs all that can run in the order of the calls, but keeps operations
// back until something else has happened.
type holds struct {
	heaped
	rules map[opName]until
	held  []*lane
	d     *deterministic
}

func (p *holds) kept(l *lane) bool {
	u, ok := p.rules[opName{l.number, l.head()}]
	if !ok {
		return false
	}
	if u.call > 0 {
		return uint32(len(p.d.calls)) < u.call
	}
	return u.stream > uint32(len(p.d.lanes)) || p.d.lanes[u.stream-1].head() <= u.op
}

func (p *holds) next(c choice) *lane {
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
	// Nothing else can run: the hold that began first ends.
	first := slices.MinFunc(p.held, func(a, b *lane) int { return cmp.Compare(a.key, b.key) })
	delete(p.rules, opName{first.number, first.head()})
	p.held = slices.DeleteFunc(p.held, func(l *lane) bool { return l == first })
	return first
}
