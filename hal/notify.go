package hal

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// notifier passes operations to the listeners in the order in which the backend
// enqueued them on its streams, whichever threads made the calls.
//
// An operation is announced before the backend gets it, complete except for its
// sequence number. The backend sequences it, under its own lock, when its place on
// the stream is final. There logs get it, and from then on any thread may deliver it
// to the functions that listen. One thread at a time delivers, with no lock held; the
// others add to the list it works on. So a thread that is delayed between two of these
// steps delays no other one.
type notifier struct {
	slots     [announceSlots]announceSlot
	mu        sync.Mutex   // held for a few instructions only, never across a callback
	announced []*Operation // those that found their slot in use
	sequenced []*Operation // to be delivered
	spare     []*Operation // the storage of the list delivered last
	unused    []*Operation // delivered, to be used again
	seq       uint64
	logs      []*Log
	functions bool // there are some to deliver to
	// delivering is set while a thread delivers; that thread takes what is added to
	// sequenced meanwhile.
	delivering bool
	// listed is the length of announced and sequenced, for callers without mu.
	listed atomic.Int64
}

// announceSlots is more than the threads that usually enqueue at the same time.
const announceSlots = 16

// announceSlot holds one announced operation, which needs neither mu nor memory. Who
// announces it writes it without a lock: nobody else knows its ID yet.
type announceSlot struct {
	id atomic.Uint32 // of the operation, 0 for none
	o  Operation
}

func (n *notifier) slot(id uint32) *announceSlot { return &n.slots[id%announceSlots] }

// maxBacklog is the number of operations waiting for delivery above which threads
// that add more yield to the thread that delivers.
const maxBacklog = 4096

// maxUnused is the number of delivered operations that are kept to be used again.
const maxUnused = 64

// store returns a copy of o on the heap. The caller holds mu.
func (n *notifier) store(o *Operation) *Operation {
	last := len(n.unused) - 1
	if last < 0 {
		stored := *o
		return &stored
	}
	stored := n.unused[last]
	n.unused = n.unused[:last]
	*stored = *o
	return stored
}

// announce adds an operation that is about to be given to the backend.
func (n *notifier) announce(o *Operation) {
	if slot := n.slot(o.ID); slot.id.CompareAndSwap(0, o.ID) {
		slot.o = *o
		return
	}
	n.mu.Lock()
	n.announced = append(n.announced, n.store(o))
	n.listed.Add(1)
	n.mu.Unlock()
}

// sequence gives an announced operation its number in the order; for an id that is
// not announced it does nothing. Backends call it under their locks.
func (n *notifier) sequence(id uint32) {
	n.mu.Lock()
	n.sequenceLocked(id, false)
	n.mu.Unlock()
}

// sequenceLocked ends the announcement of an operation, if there is one of this id: it
// gets its place in the order, unless it is dropped. The caller holds mu.
func (n *notifier) sequenceLocked(id uint32, dropped bool) {
	if slot := n.slot(id); slot.id.Load() == id {
		if !dropped {
			n.place(&slot.o, false)
		}
		slot.o = Operation{} // so that it keeps nothing alive
		slot.id.Store(0)
		return
	}
	if o := n.take(id); o != nil {
		if dropped {
			n.recycle(o)
		} else {
			n.place(o, true)
		}
	}
}

// take removes an announced operation, and returns nil if there is none of this id.
// The search is short: each thread announces at most one operation at a time. The
// caller holds mu.
func (n *notifier) take(id uint32) *Operation {
	for i, o := range n.announced {
		if o.ID == id {
			last := len(n.announced) - 1
			n.announced[i] = n.announced[last]
			n.announced[last] = nil
			n.announced = n.announced[:last]
			n.listed.Add(-1)
			return o
		}
	}
	return nil
}

// place gives an operation that was announced its version of the event and adds it,
// as add does. The caller holds mu.
func (n *notifier) place(o *Operation, stored bool) {
	if e := o.Event; e != nil {
		switch o.Kind {
		case OpRecord:
			o.Version = e.version.Add(1)
		case OpWait, OpReset:
			o.Version = e.version.Load()
		}
	}
	if o.Nodes != nil {
		o.bindEvents()
	}
	n.add(o, stored)
}

// add puts an operation whose place is final into the logs, and appends it to those
// to deliver: itself if stored is set, so that it is memory of store, else a copy. The
// caller holds mu.
func (n *notifier) add(o *Operation, stored bool) {
	if o.Seq == 0 {
		n.seq++
		o.Seq = n.seq
	}
	if o.Kind != OpNone {
		for _, g := range n.logs {
			g.add(o)
		}
	}
	if n.functions || o.afterNotify != nil {
		if !stored {
			o = n.store(o)
		}
		n.sequenced = append(n.sequenced, o)
		n.listed.Add(1)
	} else if stored {
		n.recycle(o)
	}
}

// recycle keeps an operation's memory for the next one. The caller holds mu.
func (n *notifier) recycle(o *Operation) {
	if len(n.unused) < maxUnused {
		*o = Operation{} // so that it keeps nothing alive
		n.unused = append(n.unused, o)
	}
}

// change replaces the set of listeners.
func (n *notifier) change(a *listenerSet) {
	n.mu.Lock()
	n.logs, n.functions = a.logs, len(a.functions) > 0
	n.mu.Unlock()
}

// number returns the next number in the order, for an operation that is added later.
func (n *notifier) number() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	return n.seq
}

// push adds an operation of the host, whose place in the order is this call, and
// delivers.
func (n *notifier) push(o *Operation, notify func(*Operation)) {
	n.mu.Lock()
	n.add(o, false)
	n.deliverLocked(notify)
}

// end delivers an announced operation, or drops it if the backend refused it.
func (n *notifier) end(id uint32, refused bool, notify func(*Operation)) {
	if n.slot(id).id.Load() != id && n.listed.Load() == 0 {
		return // the backend has sequenced it, and only logs wanted it
	}
	n.mu.Lock()
	n.sequenceLocked(id, refused)
	n.deliverLocked(notify)
}

// deliver calls notify with each sequenced operation, in order. If another thread
// does so already, that thread delivers these operations as well.
func (n *notifier) deliver(notify func(*Operation)) {
	n.mu.Lock()
	n.deliverLocked(notify)
}

// deliverLocked is deliver for a caller that holds mu, which it unlocks.
func (n *notifier) deliverLocked(notify func(*Operation)) {
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
		n.listed.Add(-int64(len(list)))
		n.mu.Unlock()
		n.call(list, notify)
		n.mu.Lock()
		for i, o := range list {
			n.recycle(o)
			list[i] = nil
		}
		if cap(list) <= maxBacklog {
			n.spare = list[:0]
		}
	}
	n.delivering = false
	n.mu.Unlock()
}

// call notifies of a list of operations. If a listener panics, the rest of the list
// is lost, but other threads can deliver afterwards.
func (n *notifier) call(list []*Operation, notify func(*Operation)) {
	done := false
	defer func() {
		if !done {
			n.mu.Lock()
			n.delivering = false
			n.mu.Unlock()
		}
	}()
	for _, o := range list {
		notify(o)
	}
	done = true
}
