package order

import (
	"slices"

	"halstream/hal"
)

// node is one call of the program in the oracle, or the operation that it
// enqueued: a graph drawn by the rules of the contract alone, without clocks.
type node struct {
	id     uint32
	before [notions][]*node // what orders it, beyond the notion before
	range_ hal.Range
	writes bool
	reads  hal.Range // of copies, which do both
	past   [notions]map[*node]bool
}

func (n *node) comesAfter(notion int, list ...*node) {
	for _, p := range list {
		if p != nil {
			n.before[notion] = append(n.before[notion], p)
		}
	}
}

// all returns everything that happens before n in a notion.
func (n *node) all(notion int) map[*node]bool {
	if n.past[notion] != nil {
		return n.past[notion]
	}
	past := map[*node]bool{}
	n.past[notion] = past
	for w := strict; w <= notion; w++ {
		for _, p := range n.before[w] {
			past[p] = true
			for q := range p.all(notion) {
				past[q] = true
			}
		}
	}
	return past
}

// shared is the range in which two accesses conflict, empty if they do not.
func (n *node) shared(o *node) []hal.Range {
	var found []hal.Range
	add := func(a, b hal.Range) {
		from, to := max(a.Start, b.Start), min(a.Start+a.Size, b.Start+b.Size)
		if from < to {
			found = append(found, hal.Range{Start: from, Size: to - from})
		}
	}
	if n.writes || o.writes {
		add(n.range_, o.range_)
	}
	if n.writes {
		add(n.range_, o.reads)
	}
	if o.writes {
		add(n.reads, o.range_)
	}
	return found
}

// oracle is the graph of a program.
type oracle struct {
	nodes   []*node
	last    map[int]*node   // of each stream
	closed  map[int][]*node // the last ones of closed streams, by device
	ordered map[int][]*node // those of them that were in the legacy order
	threads map[int]*node   // the last call of each
	call    *node           // the last call of any
	records map[int]*node
	first   map[int]*node   // record of each Future event
	early   map[int][]*node // waits for it that came before
}

func newOracle() *oracle {
	return &oracle{
		last: map[int]*node{}, closed: map[int][]*node{}, threads: map[int]*node{},
		records: map[int]*node{}, ordered: map[int][]*node{}, first: map[int]*node{}, early: map[int][]*node{},
	}
}

// host is a call of a thread.
func (o *oracle) host(thread int) *node {
	n := &node{}
	n.comesAfter(strict, o.threads[thread])
	n.comesAfter(timed, o.call)
	o.threads[thread], o.call = n, n
	o.nodes = append(o.nodes, n)
	return n
}

// enqueue is an operation on a stream; work is not only a wait. On the legacy default
// stream a wait is work as well, unless it is one of the stream for itself.
func (o *oracle) enqueue(thread, stream int, work bool) *node {
	n := &node{}
	n.comesAfter(strict, o.host(thread), o.last[stream])
	if s := streams[stream]; work && s.ordered {
		for i, other := range streams {
			if other.ordered && other.device == s.device && s.legacy != other.legacy {
				n.comesAfter(strict, o.last[i])
			}
		}
		if s.legacy {
			n.comesAfter(strict, o.ordered[s.device]...)
		}
	}
	o.last[stream] = n
	o.nodes = append(o.nodes, n)
	return n
}

// soFar is the work of a stream that waiting for it covers.
func (o *oracle) soFar(stream int) []*node {
	found := []*node{o.last[stream]}
	if s := streams[stream]; s.legacy {
		for i, other := range streams {
			if other.ordered && other.device == s.device {
				found = append(found, o.last[i])
			}
		}
		found = append(found, o.ordered[s.device]...)
	}
	return found
}

// recordedNow is the work of a stream that an event recorded on it covers.
func (o *oracle) recordedNow(stream int) []*node {
	found := o.soFar(stream)
	if s := streams[stream]; s.ordered && !s.legacy {
		for i, other := range streams {
			if other.legacy && other.device == s.device {
				found = append(found, o.last[i])
			}
		}
	}
	return found
}

// onDevice is the work of all streams of a device.
func (o *oracle) onDevice(device int) []*node {
	found := append([]*node{}, o.closed[device]...)
	for i, s := range streams {
		if s.device == device {
			found = append(found, o.last[i])
		}
	}
	return found
}

func (o *oracle) close(stream int) {
	if n := o.last[stream]; n != nil {
		s := streams[stream]
		o.closed[s.device] = append(o.closed[s.device], n)
		if s.ordered {
			o.ordered[s.device] = append(o.ordered[s.device], n)
		}
		delete(o.last, stream)
	}
}

// waitFuture makes n come after the first record of a Future event, now or
// when it comes.
func (o *oracle) waitFuture(n *node, event int) {
	if r := o.first[event]; r != nil {
		n.comesAfter(strict, r)
	} else {
		o.early[event] = append(o.early[event], n)
	}
}

func (o *oracle) recordFuture(n *node, event int) {
	if o.first[event] == nil {
		o.first[event] = n
		for _, w := range o.early[event] {
			w.comesAfter(strict, n)
		}
		delete(o.early, event)
	}
}

// blocked returns the Future events that have to be recorded before any of these
// is done.
func (o *oracle) blocked(list []*node) (events []int) {
	seen := map[*node]bool{}
	for len(list) > 0 {
		n := list[len(list)-1]
		list = list[:len(list)-1]
		if n == nil || seen[n] {
			continue
		}
		seen[n] = true
		list = append(list, n.before[strict]...)
	}
	for e := range 3 {
		if slices.ContainsFunc(o.early[e], func(n *node) bool { return seen[n] }) {
			events = append(events, e)
		}
	}
	return events
}

// conflict is a pair of accesses without an order.
type conflict struct{ a, b uint32 }

// conflicts returns all pairs without an order, with what is wrong with them
// and where.
func (o *oracle) conflicts() (map[conflict]Category, map[conflict][]hal.Range) {
	kinds, where := map[conflict]Category{}, map[conflict][]hal.Range{}
	for i, a := range o.nodes {
		for _, b := range o.nodes[:i] {
			ranges := a.shared(b)
			if len(ranges) == 0 || a.linked(b, strict) {
				continue
			}
			p := conflict{min(a.id, b.id), max(a.id, b.id)}
			where[p] = ranges
			switch {
			case a.linked(b, queried):
				kinds[p] = ByQuery
			case a.linked(b, timed):
				kinds[p] = ByTiming
			default:
				kinds[p] = Race
			}
		}
	}
	return kinds, where
}

func (n *node) linked(o *node, notion int) bool { return n.all(notion)[o] || o.all(notion)[n] }
