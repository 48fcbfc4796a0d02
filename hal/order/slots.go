package order

// slotsMost is how many slots there may be before those of closed streams are used
// again even though the host did not synchronize with them.
const slotsMost = 4096

// slots allocates the slots of the clocks.
type slots struct {
	next  uint32
	spare []stamp   // of closed streams and threads, with the last operation there
	look  int       // where the last one was looked for
	past  knowledge // what they knew
}

// give takes the slot of what was closed, whose last operation was at and knew k.
func (s *slots) give(at stamp, k knowledge) {
	s.spare = append(s.spare, at)
	g := gather{knowledge: &s.past}
	g.add(at, k)
}

// take returns a slot for a line that begins behind what by knows. A used slot
// goes on counting, so what is known of its former owner stays true; and the
// new one comes after it, since by knows the former one's last operation. When
// there are too many slots the new owner is taken to come after all that was
// ever closed: accesses may then go unreported, but none is reported wrongly.
func (s *slots) take(by *vector, into *knowledge) stamp {
	for range min(len(s.spare), 16) {
		s.look = (s.look + 1) % len(s.spare)
		if at := s.spare[s.look]; by.knows(at) {
			s.remove(s.look)
			return at
		}
	}
	if s.next >= slotsMost && len(s.spare) > 0 {
		at := s.spare[0]
		s.remove(0)
		g := gather{knowledge: into}
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
