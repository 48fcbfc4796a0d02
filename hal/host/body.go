package host

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/touch"
)

// body is the program of a node with a condition, and the address of the word that it looks at.
type body struct {
	prog  *program
	word  uint64
	again bool // and again, for as long as the word is not 0
}

// bodyRun is a body in one launch. It is what an opBody refers to, on a lane of that launch; the
// body has lanes of its own.
type bodyRun struct {
	*body
	run launch
	// stopped says that the stream was aborted: the body does not run again.
	stopped bool
}

func newBodyRun(b *body, l driver.GraphLaunch) *bodyRun {
	r := &bodyRun{body: b}
	r.run = launch{GraphLaunch: l, prog: b.prog, body: r}
	return r
}

// holds reports whether the body is to run.
func (r *bodyRun) holds() bool { return !r.stopped && atomic.LoadUint32(wordAt(r.word)) != 0 }

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
