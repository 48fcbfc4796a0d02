package vendor

import (
	"sync"
	"sync/atomic"
)

// Record is the latest record of an event of the program. It has a reference to the event of the library.
type Record struct{ now atomic.Pointer[FenceEvent] }

// Latest returns the event of the latest record with a reference for the caller, nil if there is none.
func (r *Record) Latest() *FenceEvent {
	for {
		e := r.now.Load()
		if e == nil {
			return nil
		}
		if e.Hold() {
			if r.now.Load() == e {
				return e
			}
			e.Release() // it was replaced meanwhile, and may belong to another event
		}
	}
}

// Is reports whether e stands for the latest record.
func (r *Record) Is(e *FenceEvent) bool { return r.now.Load() == e }

// Replace makes e stand for the latest record, and takes over a reference to it; nil means that there is none.
func (r *Record) Replace(e *FenceEvent) {
	if before := r.now.Swap(e); before != nil {
		before.Release()
	}
}

// Waits are the enqueued waits for an event of the program that may be pending, each with a fence behind it.
type Waits struct {
	mu   sync.Mutex
	list []*Fence
}

// Add adds a wait.
func (w *Waits) Add(f *Fence) {
	w.mu.Lock()
	w.list = append(w.list, f)
	w.mu.Unlock()
}

// Pending queries and returns how many are pending.
func (w *Waits) Pending() int {
	w.mu.Lock()
	list := w.list
	w.list = nil
	w.mu.Unlock()
	var left []*Fence
	for _, f := range list {
		if !f.Wait(0) {
			left = append(left, f)
		}
	}
	w.mu.Lock()
	w.list = append(w.list, left...)
	w.mu.Unlock()
	return len(left)
}
