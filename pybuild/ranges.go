package pybuild

import (
	"strconv"
	"strings"

	"halstream/hal"
	"halstream/hal/driver"
)

// StreamNative enqueues a call of the C function at fn with arg. ranges says
// what it reads and writes: "r:address:size w:address:size ...".
func StreamNative(id int64, fn, arg uint64, ranges string) (zero int64, err error) {
	return onStream(id, "call native", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		reads, writes, err := accesses(ranges)
		if err != nil {
			return 0, err
		}
		return enqueued(t, s, s.Native(t, fn, arg, reads, writes))
	})
}

// StreamCallOn is StreamCall for a function that says what it works on.
func StreamCallOn(id, token int64, ranges string) (zero int64, err error) {
	return onStream(id, "call", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		reads, writes, err := accesses(ranges)
		if err != nil {
			return 0, err
		}
		return enqueued(t, s, s.HostFuncOn(t, uint64(token), reads, writes))
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

// accesses reads the text form of ranges.
func accesses(text string) (reads, writes []hal.Range, err error) {
	for _, part := range strings.Fields(text) {
		fields := strings.Split(part, ":")
		if len(fields) == 3 {
			start, bad := strconv.ParseUint(fields[1], 10, 64)
			size, worse := strconv.ParseUint(fields[2], 10, 64)
			if bad == nil && worse == nil && (fields[0] == "r" || fields[0] == "w") {
				if fields[0] == "r" {
					reads = append(reads, hal.Range{Start: start, Size: size})
				} else {
					writes = append(writes, hal.Range{Start: start, Size: size})
				}
				continue
			}
		}
		return nil, nil, raise(driver.Errorf(driver.InvalidValue, "call", "%q is no range", part))
	}
	return reads, writes, nil
}
