package vendor

import (
	"slices"
	"sync"
)

// Streams are the streams of a device, including closed ones with pending work.
type Streams[S comparable] struct {
	mu   sync.Mutex
	list []S
}

// Add adds a stream.
func (r *Streams[S]) Add(s S) {
	r.mu.Lock()
	r.list = append(r.list, s)
	r.mu.Unlock()
}

// All returns the streams in the order in which they were added.
func (r *Streams[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Remove removes a stream and reports whether it was there: of several threads that remove it one removes it.
func (r *Streams[S]) Remove(s S) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.list, s)
	if i >= 0 {
		r.list = slices.Delete(r.list, i, i+1)
	}
	return i >= 0
}
