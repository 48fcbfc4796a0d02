package hal

import (
	"runtime"
	"sync"
)

// notifier passes operations to the listeners in the order in which the backend
// enqueued them on its streams, whichever threads made the calls.
//
// An operation is announced before the backend gets it, complete except for its
// sequence number. The backend sequences it, under its own lock, when its place on
// the stream is final. From then on any thread may deliver it. One thread at a time
// delivers, with no lock held; the others add to the list it works on. So a thread
// that is delayed between two of these steps delays no other one.
type notifier struct {
	mu        sync.Mutex // held for a few instructions only, never across a callback
	announced []Operation
	sequenced []Operation // to be delivered
	spare     []Operation // the storage of the list delivered last
	seq       uint64
	// delivering is set while a thread delivers; that thread takes what is added to
	// sequenced meanwhile.
	delivering bool
}

// maxBacklog is the number of operations waiting for delivery above which threads
// that add more yield to the thread that delivers.
const maxBacklog = 4096

// announce adds an operation that is about to be given to the backend.
func (n *notifier) announce(o Operation) {
	n.mu.Lock()
	n.announced = append(n.announced, o)
	n.mu.Unlock()
}

// sequence gives an announced operation its number in the order; for an id that is
// not announced it does nothing. Backends call it under their locks.
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

// take removes an announced operation. The search is short: each thread announces
// at most one operation at a time.
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

// add appends an operation whose place is final to those to deliver. The caller
// holds mu.
func (n *notifier) add(o Operation) {
	if o.Seq == 0 {
		n.seq++
		o.Seq = n.seq
	}
	n.sequenced = append(n.sequenced, o)
}

// number returns the next number in the order, for an operation that is added later.
func (n *notifier) number() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	return n.seq
}

// push adds an operation of the host, whose place in the order is this call.
func (n *notifier) push(o Operation) {
	n.mu.Lock()
	n.add(o)
	n.mu.Unlock()
}

// drop removes an announced operation that the backend refused.
func (n *notifier) drop(id uint32) {
	n.mu.Lock()
	n.take(id)
	n.mu.Unlock()
}

// deliver calls notify with each sequenced operation, in order. If another thread
// does so already, that thread delivers these operations as well.
func (n *notifier) deliver(notify func(*Operation)) {
	n.mu.Lock()
	if n.delivering {
		// Bounded, since a listener on that thread may wait for this thread.
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

// call notifies of a list of operations. If a listener panics, the rest of the list
// is lost, but other threads can deliver afterwards.
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
