package hal

import (
	"sync"
)

// Log collects operations. It costs less than a listener that stores them: it keeps
// few fields of each, in pieces that are never copied.
type Log struct {
	mu   *sync.Mutex // the notifier's
	full [][]Logged
	last []Logged
	stop func()
	// clock is nil in a log without times: reading it costs as much as everything else.
	clock func() int64
}

// Logged is an operation and, in a log with times, the time of the call. The struct
// is small, since a log may hold many.
type Logged struct {
	kind     string
	name     string
	stream   *Stream
	thread   *Thread
	event    *Event
	other    *Stream
	accesses *[2][]Range
	version  uint64
	token    uint64
	when     int64
	id, site uint32
	host     bool
	internal bool
}

// When returns the time of the call in nanoseconds of Runtime.Now, 0 in a log without
// times.
func (e *Logged) When() int64 { return e.when }

// Operation returns the operation as listeners see it.
func (e *Logged) Operation() Operation {
	o := Operation{ID: e.id, Kind: e.kind, Name: e.name, Stream: e.stream, Thread: e.thread, Event: e.event, Version: e.version,
		Other: e.other, Token: e.token, Site: e.site, Host: e.host, Internal: e.internal}
	if e.accesses != nil {
		o.Reads, o.Writes = e.accesses[0], e.accesses[1]
	}
	return o
}

// logPieceSize is the number of operations in one piece: few enough for the allocator
// to take its memory from a list, since a lock is held meanwhile.
const logPieceSize = 256

// Log begins to collect operations, with their times if times is set. The program
// ends the log with Stop.
//
// Contract: O1, O5.
func (rt *Runtime) Log(times bool) *Log {
	g := &Log{mu: &rt.listeners.notifier.mu}
	if times {
		g.clock = rt.Now
	}
	rt.listeners.deliver()
	rt.listeners.change(func(a *listenerSet) { a.logs = append(a.logs, g) })
	rt.sealBursts()
	g.stop = func() {
		rt.listeners.deliver()
		rt.listeners.change(func(a *listenerSet) {
			for i, other := range a.logs {
				if other == g {
					a.logs = append(a.logs[:i], a.logs[i+1:]...)
					return
				}
			}
		})
	}
	return g
}

// add appends an operation. The caller holds mu.
func (g *Log) add(o *Operation) {
	var when int64
	if g.clock != nil {
		when = o.time
	}
	if len(g.last) == cap(g.last) {
		if len(g.last) > 0 {
			g.full = append(g.full, g.last)
		}
		g.last = make([]Logged, 0, logPieceSize)
	}
	g.last = append(g.last, Logged{kind: o.Kind, name: o.Name, stream: o.Stream, thread: o.Thread, event: o.Event, other: o.Other,
		version: o.Version, token: o.Token, when: when, id: o.ID, site: o.Site, host: o.Host, internal: o.Internal})
	if len(o.Reads)+len(o.Writes) > 0 {
		g.last[len(g.last)-1].accesses = &[2][]Range{o.Reads, o.Writes}
	}
}

// Take returns the operations collected since the last call, in pieces.
func (g *Log) Take() [][]Logged {
	g.mu.Lock()
	defer g.mu.Unlock()
	pieces := g.full
	if len(g.last) > 0 {
		pieces = append(pieces, g.last)
	}
	g.full, g.last = nil, nil
	return pieces
}

// Stop ends the collection. Take still returns what was collected.
func (g *Log) Stop() { g.stop() }
