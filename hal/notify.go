package hal

import (
	"runtime"
	"sync"
)

// notifier hands operations to the listeners in the order in which the backend
// put them on its streams, whichever threads enqueued them.
//
// An operation is announced before the backend gets it, with all that listeners
// want to know but its place. The backend sequences it when its place is settled,
// under its own lock. From then on any thread may deliver it: one at a time does,
// with no lock held, and the others leave what they have to it. So a thread that
// is delayed between two of these steps delays no other one.
type notifier struct {
	mu        sync.Mutex // held for a handful of instructions, never with a callback
	announced []Operation
	sequenced []Operation // to be delivered
	spare     []Operation // the storage of the list delivered last
	seq       uint64
	// delivering says that a thread delivers: it will look at sequenced again.
	delivering bool
}

// maxBacklog is how many operations may wait for the thread that delivers before
// those who add more give it time.
const maxBacklog = 4096

// announce adds an operation that the backend is about to get.
func (n *notifier) announce(o Operation) {
	n.mu.Lock()
	n.announced = append(n.announced, o)
	n.mu.Unlock()
}

// sequence settles the place of an announced operation; of another one it does
// nothing. A backend calls it under its locks.
func (n *notifier) sequence(id uint32) {
	n.mu.Lock()
	if o, ok := n.take(id); ok {
		if e := o.Event; e != nil {
			switch o.Kind {
			case "record":
				o.Version = e.version.Add(1)
			case "wait", "reset":
				o.Version = e.version.Load()
			}
		}
		n.add(o)
	}
	n.mu.Unlock()
}

// take removes an announced operation: of one for each thread that enqueues, so
// there are few.
func (n *notifier) take(id uint32) (Operation, bool) {
	for i := range n.announced {
		if n.announced[i].ID == id {
			o := n.announced[i]
			last := len(n.announced) - 1
			n.announced[i] = n.announced[last]
			n.announced[last] = Operation{}
			n.announced = n.announced[:last]
			return o, true
		}
	}
	return Operation{}, false
}

func (n *notifier) add(o Operation) {
	if o.Seq == 0 {
		n.seq++
		o.Seq = n.seq
	}
	n.sequenced = append(n.sequenced, o)
}

// number returns the next place in the order, for an operation that is notified later.
func (n *notifier) number() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	return n.seq
}

// push adds an operation of the host, which has its place at once.
func (n *notifier) push(o Operation) {
	n.mu.Lock()
	n.add(o)
	n.mu.Unlock()
}

// drop forgets an announced operation that the backend refused.
func (n *notifier) drop(id uint32) {
	n.mu.Lock()
	n.take(id)
	n.mu.Unlock()
}

// deliver calls notify with each operation that has its place, in order. Where
// another thread does so already, that one takes these, too.
func (n *notifier) deliver(notify func(*Operation)) {
	n.mu.Lock()
	if n.delivering {
		// Bounded, since that thread may itself wait for this one, in a listener.
		for tries := 0; len(n.sequenced) > maxBacklog && tries < 100; tries++ {
			n.mu.Unlock()
			runtime.Gosched()
			n.mu.Lock()
		}
		n.mu.Unlock()
		return
	}
	n.delivering = true
	for len(n.sequenced) > 0 {
		list := n.sequenced
		n.sequenced = n.spare
		n.spare = nil
		n.mu.Unlock()
		n.call(list, notify)
		clear(list)
		n.mu.Lock()
		if cap(list) <= maxBacklog {
			n.spare = list[:0]
		}
	}
	n.delivering = false
	n.mu.Unlock()
}

// call notifies of a list of operations. A listener that panics takes the rest of
// the list with it, but others can deliver afterwards.
func (n *notifier) call(list []Operation, notify func(*Operation)) {
	done := false
	defer func() {
		if !done {
			n.mu.Lock()
			n.delivering = false
			n.mu.Unlock()
		}
	}()
	for i := range list {
		notify(&list[i])
	}
	done = true
}
