package pybuild

import (
	"strconv"
	"strings"

	"halstream/hal"
	"halstream/hal/driver"
)

// StreamNative enqueues a call of the C function at fn with arg. ranges says
// what it works on, see accesses.
func StreamNative(id int64, fn, arg uint64, ranges string) (zero int64, err error) {
	return onStream(id, "call native", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		a, err := accesses(ranges)
		if err != nil {
			return 0, err
		}
		return enqueued(t, s, s.Native(t, fn, arg, a))
	})
}

// StreamCallOn is StreamCall for a function that says what it works on.
func StreamCallOn(id, token int64, ranges string) (zero int64, err error) {
	return onStream(id, "call", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		a, err := accesses(ranges)
		if err != nil {
			return 0, err
		}
		return enqueued(t, s, s.HostFuncOn(t, uint64(token), a))
	})
}

// StreamPass enqueues a function that later work does not wait for.
func StreamPass(id, token int64) (zero int64, err error) {
	return onStream(id, "pass", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		return enqueued(t, s, s.HostFuncNoWait(t, uint64(token)))
	})
}

// StreamReaches returns 1 if n bytes lie in one block that the runtime knows and
// work of the stream can use.
func StreamReaches(id int64, addr, n uint64) (yes int64, err error) {
	return onStream(id, "launch", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		return truth(s.CanUse(hal.Range{Start: addr, Size: n})), nil
	})
}

// accesses reads the text form of what a function works on: "r:address:size" for bytes
// that it reads, w for those that it writes, o for those that it can reach, separated by
// spaces. "r:address:size:pitch:count" are count pieces, pitch bytes from one to the next. "c" says that it works on
// nothing else.
func accesses(text string) (a hal.Accesses, err error) {
	for _, part := range strings.Fields(text) {
		if part == "c" {
			a.Complete = true
			continue
		}
		kind, rest, _ := strings.Cut(part, ":")
		list := map[string]*[]hal.Range{"r": &a.Reads, "w": &a.Writes, "o": &a.Reached}[kind]
		fields := strings.Split(rest, ":")
		numbers := make([]uint64, len(fields))
		ok := list != nil && (len(fields) == 2 || len(fields) == 4)
		for i, field := range fields {
			var bad error
			numbers[i], bad = strconv.ParseUint(field, 10, 64)
			ok = ok && bad == nil
		}
		if !ok {
			return a, raise(driver.Errorf(driver.InvalidValue, "call", "%q is no range", part))
		}
		if len(numbers) == 2 {
			*list = append(*list, hal.Range{Start: numbers[0], Size: numbers[1]})
			continue
		}
		for i := range numbers[3] {
			*list = append(*list, hal.Range{Start: numbers[0] + i*numbers[2], Size: numbers[1]})
		}
	}
	return a, nil
}
