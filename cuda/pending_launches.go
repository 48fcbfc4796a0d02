package cuda

import (
	"slices"
	"sync"
	"sync/atomic"
)

// pendingLaunches are launches of the driver's graphs that have not ended as far as is known, and
// executables of the driver that are destroyed then. Only these wait for the end, so no call of the
// driver asks for it.
type pendingLaunches struct {
	streams atomic.Int64 // that have such launches
	mu      sync.Mutex
	queues  map[*Stream]*launchQueue
	spare   *launchQueue
}

// launchQueue are the launches on one stream, in its order.
type launchQueue struct {
	list []pendingLaunch
	head int // how many of the list have ended
}

// pendingLaunch is launches that end when the stream has done an operation.
type pendingLaunch struct {
	seq   uint64
	count int
	l     completionListener
}

// completionListener is notified when launches have completed.
type completionListener interface {
	// End is called once for each launch, when the stream has got past it.
	End()
}

// add adds a launch that ends when s has done the operation with a sequence number. Launches in a row that are the same one to
// the caller end with the last of them: a program that launches a graph over and over before it waits
// has one entry.
func (p *pendingLaunches) add(s *Stream, seq uint64, l completionListener) {
	p.mu.Lock()
	q := p.queues[s]
	if q == nil {
		if p.queues == nil {
			p.queues = map[*Stream]*launchQueue{}
		}
		if q = p.spare; q == nil {
			q = &launchQueue{}
		}
		p.spare = nil
		p.queues[s] = q
		p.streams.Add(1)
	}
	if n := len(q.list); n > q.head && q.list[n-1].l == l {
		q.list[n-1].count++
		q.list[n-1].seq = max(q.list[n-1].seq, seq)
	} else {
		q.list = append(q.list, pendingLaunch{seq, 1, l})
	}
	p.mu.Unlock()
	if s.Reached(seq) { // before it was in the list, or the device is lost
		p.collect(s)
	}
}

// collect ends the launches on s that are known to be done. It is called where the stream has got further.
func (p *pendingLaunches) collect(s *Stream) {
	if p.streams.Load() == 0 {
		return
	}
	p.mu.Lock()
	q := p.queues[s]
	if q == nil {
		p.mu.Unlock()
		return
	}
	from := q.head
	for q.head < len(q.list) && s.Reached(q.list[q.head].seq) {
		q.head++
	}
	done := q.list[from:q.head]
	if q.head == len(q.list) {
		delete(p.queues, s)
		p.streams.Add(-1)
		if len(done) == 1 { // as nearly always
			one := done[0]
			q.list, q.head = q.list[:0], 0
			p.spare = q
			p.mu.Unlock()
			one.end()
			return
		}
	}
	if q.head > mostEnded && q.head > len(q.list)/2 {
		q.list, q.head = slices.Clone(q.list[q.head:]), 0
	}
	p.mu.Unlock()
	for i := range done {
		done[i].end()
	}
}

// mostEnded is how many launches that have ended a queue may hold beside as many that have not.
const mostEnded = 64

func (e *pendingLaunch) end() {
	for range e.count {
		e.l.End()
	}
}

// endAll ends all launches: the device was lost, or is closed. The driver would wait for the work of an
// executable that is still pending; it releases that one with the context.
func (p *pendingLaunches) endAll() {
	p.mu.Lock()
	queues := p.queues
	p.queues = nil
	p.streams.Store(0)
	p.mu.Unlock()
	for s, q := range queues {
		for _, e := range q.list[q.head:] {
			if _, executable := e.l.(*wholeGraph); !executable || s.Reached(e.seq) {
				e.end()
			}
		}
	}
}
