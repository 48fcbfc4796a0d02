// Package ids gives objects of the core the numbers by which callers in other languages name them.
package ids

import (
	"iter"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// An id is a slot of the table, with a generation above it so that no id is ever given twice. The low four bits are
// free: ids are multiples of 16, which no handle of a default stream (0, 1, 2) is.
const (
	lowBits   = 4
	slotBits  = 24
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// Table finds objects by their ids. The zero value has none. Any thread may call at any time; Find takes no lock.
type Table struct {
	chunks [1 << (slotBits - chunkBits)]atomic.Pointer[[chunkSize]slot]

	mu   sync.Mutex // guards the rest, and changes of slots
	used int64      // slots that were ever used; slot 0 never is
	free []int64
}

// Shared are the objects of the bindings whose callers hand streams to each other in a process: a stream of Python's is
// one of the CUDA driver's under the same number, and no number names two things.
var Shared Table

type slot struct {
	named      atomic.Pointer[named] // nil while the slot is free
	generation int64                 // of the object that is there, or of the one that was last
}

// named is an object with its id, so that both are read at once.
type named struct {
	id     int64
	object any
}

// at returns the slot that an id names, nil if none with such an id was ever used.
func (t *Table) at(id int64) *slot {
	number := id >> lowBits & (1<<slotBits - 1)
	if id <= 0 || id&(1<<lowBits-1) != 0 || number == 0 {
		return nil
	}
	if chunk := t.chunks[number>>chunkBits].Load(); chunk != nil {
		return &chunk[number&(chunkSize-1)]
	}
	return nil
}

// Insert gives an object its id. It panics with an Error of the core when there are more objects than slots.
func (t *Table) Insert(object any) (id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var number int64
	if n := len(t.free); n > 0 {
		number, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if t.used == 1<<slotBits-1 {
			panic(driver.Errorf(driver.OutOfMemory, "create", "%d streams, events and gates are alive; close some", t.used))
		}
		t.used++
		number = t.used
		if chunk := &t.chunks[number>>chunkBits]; chunk.Load() == nil {
			chunk.Store(new([chunkSize]slot))
		}
	}
	s := &t.chunks[number>>chunkBits].Load()[number&(chunkSize-1)]
	s.generation++
	id = (s.generation<<slotBits | number) << lowBits
	s.named.Store(&named{id, object})
	return id
}

// Find returns the object of an id, nil if there is none.
func (t *Table) Find(id int64) any {
	if s := t.at(id); s != nil {
		if n := s.named.Load(); n != nil && n.id == id {
			return n.object
		}
	}
	return nil
}

// Remove gives an id up. It may have been given up already: who closes an object may let other threads call
// meanwhile, which close it, too.
func (t *Table) Remove(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Find(id) == nil {
		return
	}
	t.at(id).named.Store(nil)
	t.free = append(t.free, id>>lowBits&(1<<slotBits-1))
}

// All returns the objects that there are, with their ids. Others may come and go meanwhile.
func (t *Table) All() iter.Seq2[int64, any] {
	return func(yield func(int64, any) bool) {
		for i := range t.chunks {
			chunk := t.chunks[i].Load()
			if chunk == nil {
				return
			}
			for k := range chunk {
				if n := chunk[k].named.Load(); n != nil && !yield(n.id, n.object) {
					return
				}
			}
		}
	}
}

// Unknown explains to the caller of op why an id names no object that is called what.
func (t *Table) Unknown(id int64, op, what string) *driver.Error {
	if s := t.at(id); s != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		given := id >> (lowBits + slotBits)
		if given > 0 && (given < s.generation || given == s.generation && s.named.Load() == nil) {
			return driver.Errorf(driver.Closed, op, "the %s is closed; create a new one", what)
		}
	}
	return driver.Errorf(driver.InvalidHandle, op, "%d is not the handle of a live %s", id, what)
}
