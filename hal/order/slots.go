package order

// slotsMost is how many slots there may be before closed streams that nobody
// synchronized with give theirs away.
const slotsMost = 4096

// slots hands out the places in the clocks.
type slots struct {
	next  uint32
	spare []stamp // of what was closed, with the last operation there
	past  know    // what they knew
}

func (s *slots) give(at stamp) { s.spare = append(s.spare, at) }

// take returns a slot for a line that begins behind what by knows. A used slot
// goes on counting, so what is known of its former owner stays true; and the
// new one comes after it, since by knows the former one's last operation. When
// there are too many slots the new owner is taken to come after all that was
// ever closed: accesses may then go unreported, but none is reported wrongly.
func (s *slots) take(by *vector, into *know) stamp {
	for i := range min(len(s.spare), 16) {
		if at := s.spare[i]; by.knows(at) {
			s.remove(i)
			return at
		}
	}
	if len(s.spare) > 16 {
		// Others are looked at the next time.
		s.spare = append(s.spare[16:], s.spare[:16]...)
	}
	if s.next >= slotsMost && len(s.spare) > 0 {
		at := s.spare[0]
		s.remove(0)
		g := gather{know: into}
		g.add(at, s.past)
		return at
	}
	s.next++
	return stamp{slot: s.next - 1}
}

func (s *slots) remove(i int) {
	last := len(s.spare) - 1
	s.spare[i] = s.spare[last]
	s.spare = s.spare[:last]
}
