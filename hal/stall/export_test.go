package stall

import "halstream/hal"

// Waits returns for how many streams the site of a wait for an event is kept.
func (s *Sites) Waits(e *hal.Event) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.waits[e.ID()]; of != nil {
		return len(of.sites)
	}
	return 0
}
