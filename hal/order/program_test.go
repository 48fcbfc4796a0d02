package order

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"halstream/hal"
)

// streams are those of a random program. The first one only records Future
// events and never waits, so that no wait for one can be in vain.
var streams = []struct {
	device          int
	ordered, legacy bool
}{
	{0, false, false}, {0, true, true}, {0, true, false}, {0, true, false}, {0, false, false}, {0, false, false},
	{1, true, true}, {1, true, false},
}

const (
	stepAccess = iota
	stepCopy
	stepObserved
	stepHandsIn
	stepNop
	stepRecord
	stepWait
	stepWaitStream
	stepFutureRecord
	stepFutureWait
	stepSync
	stepSyncEvent
	stepSyncDevice
	stepQuery
	stepQueryEvent
	stepHost
	stepClose
	stepTidy
	stepRan
)

var names = []string{"access", "copy", "observed", "hands in", "nop", "record", "wait", "wait stream", "future record",
	"future wait", "synchronize", "synchronize event", "synchronize device", "query", "query event", "host",
	"close", "tidy", "ran"}

// step is one call of a random program; what does not concern it is unused.
type step struct {
	what, thread, stream, other, event int
	write                              bool
	from, size, src                    uint64
}

func (s step) String() string {
	return fmt.Sprintf("%s thread %d stream %d other %d event %d write %v [%d,%d) from %d",
		names[s.what], s.thread, s.stream, s.other, s.event, s.write, s.from, s.from+s.size, s.src)
}

func (s step) isWait() bool {
	return s.what == stepWait || s.what == stepWaitStream || s.what == stepFutureWait
}

func steps(kinds []int, threads int) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		return step{
			what:   rapid.SampledFrom(kinds).Draw(t, "what"),
			thread: rapid.IntRange(0, threads-1).Draw(t, "thread"),
			stream: rapid.IntRange(0, len(streams)-1).Draw(t, "stream"),
			other:  rapid.IntRange(0, len(streams)-1).Draw(t, "other"),
			event:  rapid.IntRange(0, 2).Draw(t, "event"),
			write:  rapid.Bool().Draw(t, "write"),
			from:   rapid.Uint64Range(0, 12).Draw(t, "from"),
			size:   rapid.Uint64Range(1, 8).Draw(t, "size"),
			src:    rapid.Uint64Range(20, 26).Draw(t, "src"),
		}
	})
}

// play runs a program on a new checker and draws it in an oracle.
type play struct {
	*kit
	o       *oracle
	threads []*hal.Thread
	streams []*hal.Stream
	events  []*hal.Event
	futures []*hal.Event
	version map[*hal.Event]uint64
	late    []observed
}

func (k *kit) play(program []step, threads int) *play {
	k.c, k.id = New(), 0
	k.c.Record()
	p := &play{kit: k, o: newOracle(), version: map[*hal.Event]uint64{}}
	for _, s := range streams {
		if s.legacy {
			p.streams = append(p.streams, k.device(s.device).Legacy())
		} else {
			p.streams = append(p.streams, k.stream(s.device, hal.StreamOptions{NonBlocking: !s.ordered}))
		}
	}
	for range 3 {
		p.events = append(p.events, k.event(hal.Standard))
		p.futures = append(p.futures, k.event(hal.Future))
	}
	for i := range threads {
		// All call before anything happens, so none begins with what others know.
		p.threads = append(p.threads, hal.NewThread())
		p.tell(nil, hal.OpSynchronizeEvent, hal.Operation{Event: p.events[0], Host: true}, i)
	}
	for _, s := range program {
		p.step(s)
	}
	for e := range p.futures {
		if len(p.o.early[e]) > 0 {
			p.step(step{what: stepFutureRecord, event: e})
		}
	}
	p.observe()
	require.Zero(k.t, k.c.Stats().Held)
	k.c.Finish()
	return p
}

// observed is an access that becomes known later.
type observed struct {
	node          *node
	id            uint32
	reads, writes []hal.Range
	handsIn       bool
}

// observe tells the accesses of operations that can have run.
func (p *play) observe() {
	var kept []observed
	for _, o := range p.late {
		switch {
		case len(p.o.blocked([]*node{o.node})) > 0:
			kept = append(kept, o)
		case o.handsIn:
			p.c.HandedIn(o.id, o.reads, o.writes)
		default:
			p.c.Observed(o.id, o.writes)
		}
	}
	p.late = kept
}

func (p *play) tell(n *node, kind hal.OperationKind, op hal.Operation, thread int) uint32 {
	op.Kind, op.Thread = kind, p.threads[thread]
	id := p.do(op)
	if n != nil {
		n.id = id
	}
	return id
}

// done makes n a call that returned when all of list was done. Future events
// without which it never would are recorded first.
func (p *play) done(s step, notion int, list func() []*node) *node {
	for _, e := range p.o.blocked(list()) {
		p.step(step{what: stepFutureRecord, thread: s.thread, event: e})
	}
	n := p.o.host(s.thread)
	n.comesAfter(notion, list()...)
	return n
}

func (p *play) step(s step) {
	stream, e := p.streams[s.stream], p.events[s.event]
	r := is(s.from, s.from+s.size)
	switch s.what {
	case stepHandsIn:
		n := p.o.enqueue(s.thread, s.stream, true)
		n.range_, n.writes = r[0], s.write
		most := is(0, 40)
		id := p.tell(n, hal.OpNative, hal.Operation{Stream: stream, Name: "index", Reads: most, Writes: most, HandsIn: true}, s.thread)
		ran := observed{node: n, id: id, reads: r, handsIn: true}
		if s.write {
			ran.reads, ran.writes = nil, r
		}
		p.late = append(p.late, ran)
	case stepAccess, stepObserved:
		n := p.o.enqueue(s.thread, s.stream, true)
		n.range_, n.writes = r[0], s.write || s.what == stepObserved
		switch {
		case s.what == stepObserved:
			id := p.tell(n, hal.OpCall, hal.Operation{Stream: stream}, s.thread)
			p.late = append(p.late, observed{node: n, id: id, writes: r})
		case s.write:
			p.tell(n, hal.OpFill, hal.Operation{Stream: stream, Writes: r}, s.thread)
		default:
			p.tell(n, hal.OpNative, hal.Operation{Stream: stream, Reads: r}, s.thread)
		}
	case stepCopy:
		n := p.o.enqueue(s.thread, s.stream, true)
		from := is(s.src, s.src+s.size)
		if s.write {
			r, from = from, r
		}
		n.range_, n.writes, n.reads = r[0], true, from[0]
		p.tell(n, hal.OpCopy, hal.Operation{Stream: stream, Reads: from, Writes: r}, s.thread)
	case stepNop:
		p.tell(p.o.enqueue(s.thread, s.stream, true), hal.OpNop, hal.Operation{Stream: stream}, s.thread)
	case stepRecord:
		n := p.o.enqueue(s.thread, s.stream, true)
		p.o.records[s.event] = n
		p.version[e]++
		p.tell(n, hal.OpRecord, hal.Operation{Stream: stream, Event: e, Version: p.version[e]}, s.thread)
	case stepWait:
		if record := p.o.records[s.event]; record != nil && s.stream != 0 {
			n := p.o.enqueue(s.thread, s.stream, streams[s.stream].legacy)
			n.comesAfter(strict, record)
			p.tell(n, hal.OpWait, hal.Operation{Stream: stream, Event: e, Version: p.version[e]}, s.thread)
		}
	case stepWaitStream:
		covered := p.o.recordedNow(s.other)
		n := p.o.enqueue(s.thread, s.stream, streams[s.stream].legacy && s.other != s.stream)
		if s.other != s.stream && s.stream != 0 {
			n.comesAfter(strict, covered...)
			p.tell(n, hal.OpWaitStream, hal.Operation{Stream: stream, Other: p.streams[s.other]}, s.thread)
		} else {
			p.tell(n, hal.OpWaitStream, hal.Operation{Stream: stream, Other: stream}, s.thread)
		}
	case stepFutureRecord:
		n := p.o.enqueue(s.thread, 0, true)
		f := p.futures[s.event]
		p.version[f]++
		p.o.recordFuture(n, s.event)
		p.tell(n, hal.OpRecord, hal.Operation{Stream: p.streams[0], Event: f, Version: p.version[f]}, s.thread)
	case stepFutureWait:
		if s.stream == 0 {
			return
		}
		n := p.o.enqueue(s.thread, s.stream, streams[s.stream].legacy)
		f := p.futures[s.event]
		p.o.waitFuture(n, s.event)
		p.tell(n, hal.OpWait, hal.Operation{Stream: stream, Event: f, Version: p.version[f]}, s.thread)
	case stepClose:
		if !streams[s.stream].legacy && s.stream != 0 {
			p.o.close(s.stream)
			p.tell(nil, hal.OpCloseStream, hal.Operation{Stream: stream, Host: true}, s.thread)
			o := hal.StreamOptions{NonBlocking: !streams[s.stream].ordered}
			p.streams[s.stream] = p.stream(streams[s.stream].device, o)
		}
	case stepTidy:
		p.c.tidy()
		if p.c.held == 0 {
			p.c.table.sweep(p.c.floor)
		}
		p.observe()
	case stepRan:
		p.observe()
	default:
		p.hostStep(s)
	}
}

func (p *play) hostStep(s step) {
	stream, e := p.streams[s.stream], p.events[s.event]
	record := func() []*node { return []*node{p.o.records[s.event]} }
	work := func() []*node { return p.o.soFar(s.stream) }
	switch s.what {
	case stepSync:
		n := p.done(s, strict, work)
		p.tell(n, hal.OpSynchronizeStream, hal.Operation{Stream: stream, Host: true}, s.thread)
	case stepSyncEvent:
		n := p.done(s, strict, record)
		p.tell(n, hal.OpSynchronizeEvent, hal.Operation{Event: e, Version: p.version[e], Host: true}, s.thread)
	case stepSyncDevice:
		d := streams[s.stream].device
		n := p.done(s, strict, func() []*node { return p.o.onDevice(d) })
		p.tell(n, hal.OpSynchronizeDevice, hal.Operation{Stream: p.device(d).Legacy(), Host: true}, s.thread)
	case stepQuery:
		n := p.done(s, queried, work)
		p.tell(n, hal.OpQueryStream, hal.Operation{Stream: stream, Host: true}, s.thread)
	case stepQueryEvent:
		n := p.done(s, queried, record)
		p.tell(n, hal.OpQueryEvent, hal.Operation{Event: e, Version: p.version[e], Host: true}, s.thread)
	case stepHost:
		n := p.o.host(s.thread)
		n.range_ = is(s.from, s.from+s.size)[0]
		if n.writes = s.write; s.write {
			p.tell(n, hal.OpHostWrite, hal.Operation{Host: true, Writes: []hal.Range{n.range_}}, s.thread)
		} else {
			p.tell(n, hal.OpHostRead, hal.Operation{Host: true, Reads: []hal.Range{n.range_}}, s.thread)
		}
	}
}
