package main

import (
	"sync"
	"sync/atomic"
)

// objects are the handles of the program by their numbers.
var objects struct {
	chunks [1 << 12]atomic.Pointer[[chunkSize]atomic.Pointer[object]]
	mu     sync.Mutex
	used   uint32
	free   []uint32
	turn   [1 << 12]*[chunkSize]uint32 // how often each place was given
}

const chunkSize = 1 << 10

// object is what a handle names; it is found only by exactly this number.
type object struct {
	handle uintptr
	is     any
}

// A handle has the place in the table in its bits from 4 on, and from bit 28 on how
// often the place was given before.
const (
	placeShift = 4
	turnShift  = 28
)

// add gives an object its handle.
func add(is any) uintptr {
	objects.mu.Lock()
	defer objects.mu.Unlock()
	var place uint32
	if n := len(objects.free); n > 1024 { // old handles stay unknown for long
		place, objects.free = objects.free[0], objects.free[1:]
	} else {
		place = objects.used
		objects.used++
		if at := place / chunkSize; objects.turn[at] == nil {
			objects.turn[at] = new([chunkSize]uint32)
			objects.chunks[at].Store(new([chunkSize]atomic.Pointer[object]))
		}
	}
	turn := &objects.turn[place/chunkSize][place%chunkSize]
	*turn++
	handle := uintptr(*turn)<<turnShift | uintptr(place)<<placeShift
	objects.chunks[place/chunkSize].Load()[place%chunkSize].Store(&object{handle, is})
	return handle
}

// find returns what a handle names, nil for a handle that does not exist any more or never did.
func find(handle uintptr) any {
	place := uint32(handle>>placeShift) & (1<<(turnShift-placeShift) - 1)
	if place/chunkSize >= uint32(len(objects.chunks)) {
		return nil
	}
	chunk := objects.chunks[place/chunkSize].Load()
	if chunk == nil {
		return nil
	}
	o := chunk[place%chunkSize].Load()
	if o == nil || o.handle != handle {
		return nil
	}
	return o.is
}

// remove gives a handle up; a second time does nothing.
func remove(handle uintptr) {
	objects.mu.Lock()
	defer objects.mu.Unlock()
	if find(handle) == nil {
		return
	}
	place := uint32(handle>>placeShift) & (1<<(turnShift-placeShift) - 1)
	objects.chunks[place/chunkSize].Load()[place%chunkSize].Store(nil)
	objects.free = append(objects.free, place)
}

// each calls f with every object there is.
func each(f func(handle uintptr, is any)) {
	objects.mu.Lock()
	used := objects.used
	objects.mu.Unlock()
	for place := range used {
		if o := objects.chunks[place/chunkSize].Load()[place%chunkSize].Load(); o != nil {
			f(o.handle, o.is)
		}
	}
}
