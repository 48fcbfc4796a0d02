package order

// maxSlots is how many slots there may be before those of closed streams are used
// again even though the host did not synchronize with them.
const maxSlots = 4096

// slots allocates the slots of the clocks.
type slots struct {
	next  uint32
	spare []stamp // of closed streams and threads, with the last operation there
	look  int     // index at which the last search ended
	past  clocks  // the union of their clocks
}

// give returns the slot of a closed stream or thread, whose last operation was at with
// the clocks k.
func (s *slots) give(at stamp, k clocks) {
	s.spare = append(s.spare, at)
	g := gather{clocks: &s.past}
	g.add(at, k)
}

// take returns a slot for a stream or thread that begins behind what by covers. A
// used slot continues its count, so clocks that cover its former owner stay valid; and
// the new owner comes after the former one, since by covers that one's last operation.
// When there are too many slots the new owner counts as ordered after everything that
// was ever closed: accesses may then go unreported, but none is reported wrongly.
func (s *slots) take(by *vector, into *clocks) stamp {
	for range min(len(s.spare), 16) {
		s.look = (s.look + 1) % len(s.spare)
		if at := s.spare[s.look]; by.covers(at) {
			s.remove(s.look)
			return at
		}
	}
	if s.next >= maxSlots && len(s.spare) > 0 {
		at := s.spare[0]
		s.remove(0)
		g := gather{clocks: into}
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
