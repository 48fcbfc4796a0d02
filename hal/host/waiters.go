package host

import "halstream/hal/park"

// waiter is a stream, a thread or a notice that waits for a place on a timeline.
type waiter struct {
	seq    uint64
	stream *Stream
	parker *park.Parker
	notice *notice
}

// waiters is a heap by place.
type waiters []waiter

func (h *waiters) add(w waiter) {
	*h = append(*h, w)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].seq <= s[i].seq {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *waiters) pop() waiter {
	s := *h
	top := s[0]
	h.remove(0)
	return top
}

func (h *waiters) remove(i int) {
	s := *h
	last := len(s) - 1
	s[i] = s[last]
	s[last] = waiter{}
	s = s[:last]
	*h = s
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s); c++ {
			if s[c].seq < s[least].seq {
				least = c
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	for i > 0 && i < len(s) && s[(i-1)/2].seq > s[i].seq {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
		i = (i - 1) / 2
	}
}

// take removes the waiting thread p and reports whether it was still there.
func (h *waiters) take(p *park.Parker) bool {
	for i, w := range *h {
		if w.parker == p {
			h.remove(i)
			return true
		}
	}
	return false
}

// takeNotice removes a notice that waits.
func (h *waiters) takeNotice(n *notice) {
	for i, w := range *h {
		if w.notice == n {
			h.remove(i)
			return
		}
	}
}
