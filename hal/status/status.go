// Package status holds the words by which C code of the process sees, without
// entering Go, how far a stream is and whether calls need the core at all.
//
// Their memory is C's and is never freed: a reader needs no lock, and no care for
// the end of the stream. The words of a stream that ended go to a later one, which
// goes on counting where that one was, so a place that was reached stays reached.
package status

/*
#include <stdlib.h>
#include <string.h>

#include "status.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Bits of Stream.Special.
const (
	Failed = 1 << iota // an error waits for the next synchronize or query
	Closed             // the stream was closed
	Bound              // it stands for more than its own work, or its calls need a context, or wait
)

// Bits of a runtime's word. A runtime none of which is set does what a call asks
// for at once: no listener sees it, and it is no schedule point.
const (
	Listened = 1 << iota // listeners are notified of operations
	Stepped              // devices move during calls only
	Foreign              // the devices are a vendor's, or not simulated here
	Ended                // the runtime was closed
	Captured             // a stream captures: calls on it become nodes of a graph
	Lost                 // a native function has made a device useless: calls on it fail
)

// Stream are the words of one stream; see status.h, which has the same layout.
type Stream struct {
	ID        atomic.Uint64
	Submitted atomic.Uint64
	Completed atomic.Uint64
	Special   atomic.Uint32
	Ordinal   int32
	Order     *atomic.Uint32
	_         [2]uint32
	_         [2]uint64
}

// Reached reports whether a place on the stream's timeline is reached.
func (s *Stream) Reached(place uint64) bool { return s.Completed.Load() >= place }

// slab is how many streams' words are allocated at once.
const slab = 64

var words struct {
	sync.Mutex
	free []*Stream
}

// New returns the words of a new stream: nothing is pending, and no bit is set.
func New(ordinal int) *Stream {
	words.Lock()
	defer words.Unlock()
	if len(words.free) == 0 {
		const size = C.sizeof_halstream_status
		block := C.aligned_alloc(size, slab*size)
		C.memset(block, 0, slab*size)
		list := unsafe.Slice((*Stream)(block), slab)
		for i := slab - 1; i >= 0; i-- {
			words.free = append(words.free, &list[i])
		}
	}
	n := len(words.free) - 1
	s := words.free[n]
	words.free = words.free[:n]
	s.Special.Store(0)
	s.Ordinal, s.Order = int32(ordinal), nil
	return s
}

// Free gives the words of a stream that ended to a later one. Nobody enqueues on it any
// more. What was pending when its backend was closed never runs: it counts as done, as
// for every point of a closed backend, and the later stream has no part in it.
func (s *Stream) Free() {
	s.Completed.Store(s.Submitted.Load())
	s.ID.Store(0)
	words.Lock()
	words.free = append(words.free, s)
	words.Unlock()
}

// NewWord returns a word of C's memory, 0 at first.
func NewWord() *atomic.Uint32 { return (*atomic.Uint32)(C.calloc(1, 4)) }
