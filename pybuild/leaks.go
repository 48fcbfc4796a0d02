package pybuild

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"halstream/hal"
)

// lives is the list of what the program made and did not give up yet. Its
// listener may be called on any thread.
type lives struct {
	mu   sync.Mutex
	of   map[life]made
	stop func()
}

// life names a stream, an event or a block of memory.
type life struct {
	kind   string // stream, event, memory
	device int    // of streams
	number uint64 // index, number or address
}

type made struct {
	id   uint32 // of the operation, for their order
	site uint32
	size uint64
}

// LeaksStart begins to note what is made and given up, and returns a handle.
func LeaksStart() (handle int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	l := &lives{of: map[life]made{}}
	l.stop = r.Listen(l.note)
	return insert(l), nil
}

func (l *lives) note(o hal.Operation) {
	var one life
	switch o.Kind {
	case "new stream", "close stream":
		one = life{"stream", o.Stream.Device().Ordinal(), o.Stream.Index()}
	case "new event", "close event":
		one = life{kind: "event", number: o.Event.ID()}
	case "new memory", "allocate":
		one = life{kind: "memory", number: o.Writes[0].Start}
	case "free memory", "free":
		one = life{kind: "memory", number: o.Writes[0].Start}
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch o.Kind {
	case "new stream", "new event":
		l.of[one] = made{o.ID, o.Site, 0}
	case "new memory", "allocate":
		l.of[one] = made{o.ID, o.Site, o.Writes[0].Size}
	default:
		delete(l.of, one)
	}
}

// LeaksTake returns what is alive, in the order in which it was made, a line each:
// kind, device of streams, number, size of memory in bytes, number of the
// operation that made it, and its site. Gates that are closed are among it.
func LeaksTake(handle int64) (lines string, err error) {
	defer guard(&err)
	l, ok := find(handle).(*lives)
	if !ok {
		return "", unknown(handle, "list what is alive", "list")
	}
	type line struct {
		life
		made
	}
	var found []line
	l.mu.Lock()
	for one, m := range l.of {
		found = append(found, line{one, m})
	}
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b line) int { return cmp.Compare(a.id, b.id) })
	gates := len(found)
	for number, site := range gateSites {
		found = append(found, line{life{kind: "gate", number: number}, made{site: site}})
	}
	slices.SortFunc(found[gates:], func(a, b line) int { return cmp.Compare(a.number, b.number) })
	var out []string
	for _, f := range found {
		out = append(out, strings.Join([]string{f.kind, strconv.Itoa(f.device), strconv.FormatUint(f.number, 10),
			strconv.FormatUint(f.size, 10), strconv.FormatUint(uint64(f.id), 10),
			strconv.FormatUint(uint64(f.site), 10)}, separator))
	}
	return strings.Join(out, recordSeparator), nil
}

// LeaksStop ends it.
func LeaksStop(handle int64) (zero int64, err error) {
	defer guard(&err)
	l, ok := find(handle).(*lives)
	if !ok {
		return 0, unknown(handle, "list what is alive", "list")
	}
	l.stop()
	remove(handle)
	return 0, nil
}
