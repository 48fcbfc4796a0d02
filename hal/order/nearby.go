package order

import (
	"slices"
	"strings"

	"halstream/hal"
)

// orderingBack is how many operations before the latest one of a finding are searched for
// records and waits.
const orderingBack = 512

// RecordedOperation is an operation of the recorded run, without its thread's object.
type RecordedOperation struct {
	hal.Operation
	ThreadID uint64
}

// Nearby returns, for each of several lists of numbers of operations, these and others around
// them, as places in ascending order in the list of all recorded operations that it returns,
// too. At most most are given, or those asked for: first the records and waits between the
// earliest and the latest one, the latest first, then their neighbours, then what else is
// between them. Objects that are made and closed are left out. Of a run that is too long to
// be recorded there is nothing.
//
// Contract: V40.
func (s *Session) Nearby(around [][]uint32, most int) ([]RecordedOperation, [][]int) {
	found := make([][]int, len(around))
	f := s.now.Load()
	if f == nil {
		return nil, found
	}
	calls, _ := f.recorded()
	place := map[uint32]int{}
	for _, ids := range around {
		for _, id := range ids {
			place[id] = -1
		}
	}
	var all []RecordedOperation
	for _, call := range calls {
		_, asked := place[call.op.ID]
		if call.what != toHandle || onlyKeepsObjects(&call.op) && !asked {
			continue
		}
		if asked {
			place[call.op.ID] = len(all)
		}
		all = append(all, RecordedOperation{call.op, call.thread})
	}
	for i, ids := range around {
		found[i] = nearby(all, ids, place, most)
	}
	return all, found
}

func nearby(all []RecordedOperation, ids []uint32, place map[uint32]int, most int) []int {
	var shown []int
	add := func(at int) {
		if at >= 0 && at < len(all) && !slices.Contains(shown, at) {
			shown = append(shown, at)
		}
	}
	for _, id := range ids {
		add(place[id])
	}
	if len(shown) == 0 {
		return nil
	}
	asked := slices.Clone(shown)
	first, last := slices.Min(asked), slices.Max(asked)
	from := max(first, last-orderingBack)
	for at := last; at > from && len(shown) < most*3/4; at-- {
		if orders(&all[at].Operation) {
			add(at)
		}
	}
	for distance := 1; distance <= 4; distance++ {
		for _, at := range asked {
			for _, near := range []int{at - distance, at + distance} {
				if len(shown) < most {
					add(near)
				}
			}
		}
	}
	for at := last; at > max(first, last-most) && len(shown) < most; at-- {
		add(at)
	}
	slices.Sort(shown)
	return shown
}

// onlyKeepsObjects reports whether an operation neither orders anything nor works on memory.
func onlyKeepsObjects(op *hal.Operation) bool {
	return strings.HasPrefix(op.Kind, "new ") || strings.HasPrefix(op.Kind, "close ") || op.Kind == "free memory"
}

// orders reports whether an operation orders others.
func orders(op *hal.Operation) bool {
	return op.Kind == "record" || strings.HasPrefix(op.Kind, "wait") || strings.HasPrefix(op.Kind, "synchronize")
}
