package stall

import (
	"slices"

	"halstream/hal/driver"
)

// Party is who waits and is waited for: a thread of the host or a stream.
type Party struct {
	// Thread is the number of a thread, 0 for a stream.
	Thread uint64
	// Device and Stream are the ordinal and the index of a stream.
	Device int
	Stream uint64
}

func threadParty(number uint64) Party { return Party{Thread: number} }

func streamParty(p driver.Fence) Party { return Party{Device: p.Device, Stream: p.Stream} }

// Held is a thread that is blocked by something else than the runtime, a lock for
// instance.
type Held struct {
	Thread uint64
	// By is the only thread that can let it go on, 0 if several could.
	By uint64
}

// Running is a thread that runs a function of a stream.
type Running struct {
	Thread, Token uint64
	// Report says that the function was taken from a report queue.
	Report bool
}

// Graph says who waits for whom at a moment. Threads that are not in it may act.
type Graph struct {
	// Blocked are the threads that wait for streams or for a report: [Waits.Blocked].
	Blocked []Blocked
	// Streams are the streams with pending work: hal.Runtime.Busy.
	Streams []driver.Busy
	// Held are the threads that wait for other things.
	Held []Held
	// Running are the functions that run, on threads which may be Held.
	Running []Running
	// Others says that somebody who is not in the graph may still act, or that
	// something of the runtime moves by itself.
	Others bool
}

// needs is what a party needs to go on: any other party that can act, or all those
// of a list.
type needs struct {
	anybody bool
	all     []Party
}

// Stuck returns the parties that can never go on, thread start and whom it waits
// for among them; none if start may go on. Where somebody else may still act these
// are circles: each of them needs another one of them. Where nobody can, it is
// everybody who waits.
func (g *Graph) Stuck(start uint64) []Party {
	known := g.needs()
	if !g.Others {
		stuck := []Party{threadParty(start)}
		for p := range known {
			if p != stuck[0] {
				stuck = append(stuck, p)
			}
		}
		return stuck
	}
	reached := []Party{threadParty(start)} // from start on
	listed := map[Party]bool{reached[0]: true}
	stuck := map[Party]bool{}
	for i := 0; i < len(reached); i++ {
		n, found := known[reached[i]]
		if !found || n.anybody {
			continue
		}
		stuck[reached[i]] = true
		for _, p := range n.all {
			if !listed[p] {
				listed[p] = true
				reached = append(reached, p)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range slices.Backward(reached) { // who is waited for before who waits
			if stuck[p] && !slices.ContainsFunc(known[p].all, func(q Party) bool { return stuck[q] }) {
				delete(stuck, p)
				changed = true
			}
		}
	}
	if !stuck[reached[0]] {
		return nil
	}
	return slices.DeleteFunc(reached, func(p Party) bool { return !stuck[p] })
}

// needs returns what each party that waits needs.
func (g *Graph) needs() map[Party]needs {
	found := map[Party]needs{}
	for _, h := range g.Held {
		n := needs{anybody: h.By == 0}
		if h.By != 0 {
			n.all = []Party{threadParty(h.By)}
		}
		found[threadParty(h.Thread)] = n
	}
	for _, b := range g.Blocked { // a thread that waits for the device may hold a lock of its own, too
		found[threadParty(b.Thread)] = needs{b.Report, parties(b.On)}
	}
	runs := map[Running]uint64{} // the threads that run functions
	for _, r := range g.Running {
		runs[Running{Token: r.Token, Report: r.Report}] = r.Thread
	}
	for _, b := range g.Streams {
		n := needs{anybody: true}
		switch b.Need {
		case driver.NeedStream, driver.NeedOrder:
			n = needs{all: parties(b.On)}
		case driver.NeedFunction, driver.NeedReport:
			if thread, ok := runs[Running{Token: b.Number, Report: b.Need == driver.NeedReport}]; ok {
				n = needs{all: []Party{threadParty(thread)}}
			}
		}
		found[streamParty(b.At)] = n
	}
	return found
}

func parties(fences []driver.Fence) []Party {
	list := make([]Party, 0, len(fences))
	for _, p := range fences {
		list = append(list, streamParty(p))
	}
	return list
}
