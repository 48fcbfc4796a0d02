package stall

import (
	"cmp"
	"slices"
	"sync"

	"halstream/hal"
)

// Object is something that the program made and has not given up.
type Object struct {
	// Kind is "stream", "event" or "memory".
	Kind string
	// Device is the ordinal of a stream's device.
	Device int
	// Number is a stream's number on its device, an event's number or an address.
	Number uint64
	// Size is that of memory, in bytes.
	Size uint64
	// ID is the operation that made it; they count up.
	ID uint32
	// Site is where the program did so, 0 if that is not known.
	Site uint32
}

// Leaks lists the objects of a runtime that are alive. Its methods may be called
// on any thread.
type Leaks struct {
	mu    sync.Mutex
	alive map[object]Object
	stop  func()
}

// object names a stream, an event or a block of memory.
type object struct {
	kind   string
	device int
	number uint64
}

// Track begins to note what is made and given up.
func Track(rt *hal.Runtime) *Leaks {
	l := &Leaks{alive: map[object]Object{}}
	l.stop = rt.Listen(l.note)
	return l
}

// Stop ends that; what is alive stays listed.
func (l *Leaks) Stop() { l.stop() }

// Alive returns what is alive, in the order in which it was made.
func (l *Leaks) Alive() []Object {
	l.mu.Lock()
	found := make([]Object, 0, len(l.alive))
	for _, o := range l.alive {
		found = append(found, o)
	}
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b Object) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

func (l *Leaks) note(o hal.Operation) {
	var name object
	var size uint64
	switch o.Kind {
	case hal.OpNewStream, hal.OpCloseStream:
		name = object{"stream", o.Stream.Device().Ordinal(), o.Stream.Index()}
	case hal.OpNewEvent, hal.OpCloseEvent:
		name = object{kind: "event", number: o.Event.ID()}
	case hal.OpNewMemory, hal.OpAllocate:
		name, size = object{kind: "memory", number: o.Writes[0].Start}, o.Writes[0].Size
	case hal.OpFreeMemory, hal.OpFree:
		name = object{kind: "memory", number: o.Writes[0].Start}
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch o.Kind {
	case hal.OpNewStream, hal.OpNewEvent, hal.OpNewMemory, hal.OpAllocate:
		l.alive[name] = Object{name.kind, name.device, name.number, size, o.ID, o.Site}
	default:
		delete(l.alive, name)
	}
}
