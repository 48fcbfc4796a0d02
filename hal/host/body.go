package host

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/touch"
)

// body is what a node with a condition may run, and the address of the word that it looks at.
type body struct {
	kind  driver.GraphNodeKind
	progs []*program
	word  uint64
}

// choose returns the program that a value of the word selects, nil if it selects none.
func (b *body) choose(value uint32) *program {
	i := uint64(value)
	if b.kind != driver.SwitchNode { // the first one unless the value is 0
		i = 0
		if value == 0 {
			i = 1
		}
	}
	if i >= uint64(len(b.progs)) {
		return nil
	}
	return b.progs[i]
}

// bodyRun is a body in one launch. It is what an opBody refers to, on a lane of that launch; the
// body has lanes of its own.
type bodyRun struct {
	*body
	run launch
	// stopped says that the stream was aborted, or a function in the body has failed: the body does
	// not run again.
	stopped bool
	// faulty is the error of a loop if a function has failed in the present run of its body, and nothing
	// has changed the condition, which was value, by its end.
	faulty *driver.Error
	value  uint32
}

func newBodyRun(b *body, l driver.GraphLaunch) *bodyRun {
	r := &bodyRun{body: b}
	r.run = launch{GraphLaunch: l, prog: b.progs[0], body: r}
	return r
}

// begin looks at the condition and puts the nodes that are to run on their lanes. It reports whether
// there are any. The lock is held.
func (r *bodyRun) begin(s *Stream) bool {
	value := atomic.LoadUint32(wordAt(r.word))
	prog := r.choose(value)
	if r.stopped || prog == nil {
		return false
	}
	if r.faulty != nil && value == r.value {
		s.fail(r.faulty)
		return false
	}
	r.faulty, r.value = nil, value
	r.run.prog = prog
	return r.run.spread(s)
}

// loops returns the loops that a lane is in, the innermost first, with their operations. The lock is held.
func (s *Stream) loops() (runs []*bodyRun, on []*Stream) {
	for p := s.parent(); p != nil; p = p.parent() {
		if r, ok := p.q.front().ref.(*bodyRun); ok && r.kind == driver.WhileNode {
			runs, on = append(runs, r), append(on, p)
		}
	}
	return runs, on
}

// Loops implements driver.LoopCompleter.
func (s *Stream) Loops() (function uint32, loops []uint32) {
	s.eng.Lock()
	defer s.eng.Unlock()
	_, on := s.loops()
	for _, p := range on {
		loops = append(loops, p.site())
	}
	return s.site(), loops
}

// Faulty implements driver.LoopCompleter.
func (s *Stream) Faulty(loops []*driver.Error) {
	s.eng.Lock()
	defer s.eng.Unlock()
	runs, _ := s.loops()
	for i, r := range runs {
		if i < len(loops) && r.faulty == nil {
			r.faulty = loops[i]
		}
	}
}

// stop ends the bodies of a run, at whichever depth, when they have ended once. The lock is held.
func (l *launch) stop() {
	for i := range l.prog.lanes {
		lane := l.prog.lanes[i].on
		if lane.parent() == nil || lane.state == sched.Idle {
			continue
		}
		if r, ok := lane.q.front().ref.(*bodyRun); ok {
			r.stopped = true
			r.run.stop()
		}
	}
}

// wordAt returns the word at an address of pinned memory.
func wordAt(addr uint64) *uint32 {
	at := touch.Alias(addr)
	return *(**uint32)(unsafe.Pointer(&at))
}
