// Package threads has the table of the program's threads that have called. What a thread keeps between its calls is
// the caller's; that it has ended is found out in C (threads.c).
package threads

// #include "threads.h"
import "C"

import (
	"iter"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// Ident returns what pthread_self returns on the calling thread.
func Ident() uint64 { return uint64(C.halstream_ident()) }

// System returns the system's number of the calling thread, 0 where it does not tell.
func System() int { return int(C.halstream_system_number()) }

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
	most      = 1<<20 - 1
)

// Table finds what is kept of threads by their numbers, which begin with 1 and are given again after a thread's end.
// The zero value has no thread. At and All take no lock. There is one table in a process.
type Table[T any] struct {
	chunks [1 << 10]atomic.Pointer[[chunkSize]atomic.Pointer[T]]

	mu   sync.Mutex // guards the rest
	used uint32     // numbers that were ever given
	free []uint32
}

// Enter gives the calling thread, of which t is kept, a number until it ends. It returns what was kept of the threads
// that have ended since: none has its number any more. It panics with an Error of the core if there are too many.
func (l *Table[T]) Enter(t *T) (number uint32, ended []*T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := uint32(C.halstream_next_ended()); n != 0; n = uint32(C.halstream_next_ended()) {
		ended = append(ended, l.slot(n).Swap(nil))
		l.free = append(l.free, n)
	}
	if n := len(l.free); n > 0 {
		number, l.free = l.free[n-1], l.free[:n-1]
	} else {
		if l.used == most {
			panic(driver.Errorf(driver.OutOfMemory, "call", "%d threads use the runtime", l.used))
		}
		l.used++
		number = l.used
		if chunk := &l.chunks[number>>chunkBits]; chunk.Load() == nil {
			chunk.Store(new([chunkSize]atomic.Pointer[T]))
		}
	}
	l.slot(number).Store(t)
	C.halstream_watch_end(C.uint32_t(number))
	return number, ended
}

func (l *Table[T]) slot(number uint32) *atomic.Pointer[T] {
	return &l.chunks[number>>chunkBits].Load()[number&(chunkSize-1)]
}

// At returns what is kept of the thread with a number that was given and not taken back.
func (l *Table[T]) At(number uint32) *T { return l.slot(number).Load() }

// All returns what is kept of the threads, with their numbers. Threads may come and go meanwhile.
func (l *Table[T]) All() iter.Seq2[uint32, *T] {
	return func(yield func(uint32, *T) bool) {
		for i := range l.chunks {
			chunk := l.chunks[i].Load()
			if chunk == nil {
				return
			}
			for k := range chunk {
				if t := chunk[k].Load(); t != nil && !yield(uint32(i<<chunkBits|k), t) {
					return
				}
			}
		}
	}
}

// Len returns how many threads have a number.
func (l *Table[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.used) - len(l.free)
}
