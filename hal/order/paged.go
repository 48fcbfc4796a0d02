package order

import "halstream/hal"

// countPaged counts a function that was seen by the pages of memory.
func (s *Session) countPaged(touched, beside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.Paged++
	if !touched {
		s.past.Untouched++
	}
	if beside {
		s.past.Beside++
	}
}

// Touched takes over what the calling thread t has accessed itself since it called last,
// where that is seen.
func (s *Session) Touched(t *hal.Thread) {
	if f := s.now.Load(); f != nil {
		f.rt.ReportTouched(t)
	}
}
