package host

import (
	"slices"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// fence is a stream and the sequence number of an operation on it: it is reached when that
// operation, and so all before it, are done. The zero value is reached.
type fence struct {
	on  *Stream
	seq uint64
}

func (p fence) reached() bool { return p.on == nil || p.on.completed.Load() >= p.seq }

// named names the operation for the runtime. The lock is held.
func (p fence) named() driver.Fence {
	p = p.launched()
	return driver.Fence{Device: p.on.dev.ordinal, Stream: p.on.id, Seq: p.seq}
}

// announce notes that a thread waits for the fence. The lock is held.
func (p fence) announce() { x := p.on.rareState(); x.awaited = append(x.awaited, p.seq) }

// withdraw ends announce. The lock is held.
func (p fence) withdraw() {
	x := p.on.rareState()
	if i := slices.Index(x.awaited, p.seq); i >= 0 {
		x.awaited = slices.Delete(x.awaited, i, i+1)
	}
}

// point is a fence that a host thread can wait for.
type point struct {
	eng *engine
	at  fence
}

// waiterSpinNS is for how many nanoseconds a thread that waits for a worker spins before it parks.
const waiterSpinNS = 20_000

// Wait implements driver.Point. The thread runs what it can before it sleeps.
// Once the backend was closed nothing moves any more, and every point counts as
// reached.
func (p point) Wait(limit int64) bool {
	e := p.eng
	if e.completeByDefinition(p.at) {
		return true
	}
	e.Lock()
	e.point(sched.Blocked, p.at.launched().on, p.at.reached, limit)
	if !e.parallel.Load() {
		done := p.at.reached()
		e.Unlock()
		return done
	}
	if p.at.reached() || limit == 0 || e.closed {
		done := p.at.reached() || e.closed
		e.Unlock()
		return done
	}
	spin := int64(0)
	if p.at.on.atWork() {
		spin = waiterSpinNS // a worker may be done before this thread could fall asleep
	}
	w := park.Get()
	p.at.on.waiting.add(waiter{seq: p.at.seq, parker: w})
	e.Unlock()
	if !w.Park(limit, spin) {
		e.Lock()
		removed := p.at.on.waiting.take(w)
		e.Unlock()
		if removed {
			park.Put(w)
			return false
		}
		w.Park(driver.Forever, 0) // another thread is about to unpark it
	}
	park.Put(w)
	return true
}

// Announce implements driver.Announced.
func (p point) Announce() (end func()) {
	if p.at.on == nil {
		return func() {}
	}
	p.eng.Lock()
	defer p.eng.Unlock()
	p.at.announce()
	return func() {
		p.eng.Lock()
		defer p.eng.Unlock()
		p.at.withdraw()
	}
}

// notice is a driver.Notice that waits for a fence.
type notice struct{ to driver.Notice }

// Notify implements driver.Notifying.
func (p point) Notify(to driver.Notice) (cancel func()) {
	e, n := p.eng, &notice{to}
	e.Lock()
	if p.at.reached() || e.closed {
		e.reached = append(e.reached, n)
	} else {
		p.at.on.waiting.add(waiter{seq: p.at.seq, notice: n})
	}
	e.Unlock()
	return func() {
		if p.at.on == nil {
			return
		}
		e.Lock()
		p.at.on.waiting.takeNotice(n)
		e.Unlock()
	}
}

// Missing implements driver.FencedPoint.
func (p point) Missing() []driver.Fence {
	p.eng.Lock()
	defer p.eng.Unlock()
	if p.at.reached() {
		return nil
	}
	return []driver.Fence{p.at.named()}
}

// waiter is a stream, a thread or a notice that waits until a stream has completed seq.
type waiter struct {
	seq    uint64
	stream *Stream
	parker *park.Parker
	notice *notice
}

// waiters is a heap by sequence number.
type waiters []waiter

func (h *waiters) add(w waiter) {
	*h = append(*h, w)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].seq <= s[i].seq {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *waiters) pop() waiter {
	s := *h
	top := s[0]
	h.remove(0)
	return top
}

func (h *waiters) remove(i int) {
	s := *h
	last := len(s) - 1
	s[i] = s[last]
	s[last] = waiter{}
	s = s[:last]
	*h = s
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s); c++ {
			if s[c].seq < s[least].seq {
				least = c
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	for i > 0 && i < len(s) && s[(i-1)/2].seq > s[i].seq {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
		i = (i - 1) / 2
	}
}

// take removes the waiting thread p and reports whether it was still there.
func (h *waiters) take(p *park.Parker) bool {
	for i, w := range *h {
		if w.parker == p {
			h.remove(i)
			return true
		}
	}
	return false
}

// takeNotice removes a notice that waits.
func (h *waiters) takeNotice(n *notice) {
	for i, w := range *h {
		if w.notice == n {
			h.remove(i)
			return
		}
	}
}
