package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"slices"
	"sync"
)

// registry holds the streams of a device, including closed ones with pending work.
type registry struct {
	mu   sync.Mutex
	list []*Stream
}

func (r *registry) add(s *Stream) {
	r.mu.Lock()
	r.list = append(r.list, s)
	r.mu.Unlock()
}

func (r *registry) all() []*Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// remove removes a stream and reports whether it was there.
func (r *registry) remove(s *Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.list, s)
	if i >= 0 {
		r.list = slices.Delete(r.list, i, i+1)
	}
	return i >= 0
}

// spare is a stream of the library that no stream of the program uses, with the thread for its functions.
type spare struct {
	h     C.uintptr_t
	level uint8
	line  *C.na_line
}

// spares are the unused streams of a device. The library's call that destroys one waits for its work, and
// that work may wait for the caller; what is kept here has none.
type spares struct {
	mu   sync.Mutex
	list []spare
}

// maxSpares bounds how many streams a device keeps. It is also the number of report threads that the
// library's documentation advises.
const maxSpares = 32

func (p *spares) take(level uint8) (spare, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(s spare) bool { return s.level == level })
	if i < 0 {
		return spare{}, false
	}
	found := p.list[i]
	p.list = slices.Delete(p.list, i, i+1)
	return found, true
}

// put keeps a stream, and reports false if there are enough.
func (p *spares) put(s spare) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxSpares {
		return false
	}
	p.list = append(p.list, s)
	return true
}

// all removes and returns all streams.
func (p *spares) all() []spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}
