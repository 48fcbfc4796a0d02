package cuda

import "sync"

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
	return append([]*Stream(nil), r.list...)
}

// sweep removes the closed streams whose work is done.
func (r *registry) sweep() {
	done := map[*Stream]bool{}
	for _, s := range r.all() {
		if tail := s.end(); tail != nil && tail.Wait(0) {
			s.queryKept()
			done[s] = true
		}
	}
	if len(done) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.list[:0]
	for _, s := range r.list {
		if !done[s] {
			kept = append(kept, s)
		}
	}
	clear(r.list[len(kept):])
	r.list = kept
}
