// Package bindings holds what every way into the core shares: the extension for Python, the functions
// of halstream.h and libascendcl.
//
// The sub-packages have one noun each: ids of objects, the program's threads, their waits, call sites, schedules, records
// in JSON.
//
// The constants here are those that callers in other languages pass as plain numbers. The program
// constants writes them, and the texts of kinds and reasons, as a Python module when the extension is
// built, so that no number or text stands in two languages.
package bindings

import "halstream/hal"

// Bits of the flags that an event is created with. Bits from EventKindShift on are its [hal.EventKind].
const (
	EventTiming       = 1
	EventBlockingSync = 2
	EventInterprocess = 4
	EventNotWaitable  = 16
	EventExternal     = 32
	EventKindShift    = 8
)

// EventFlags returns the flags of an event with options.
func EventFlags(o hal.EventOptions) int64 {
	flags := int64(o.Kind) << EventKindShift
	for bit, set := range map[int64]bool{EventTiming: o.Timing, EventBlockingSync: o.BlockingSync,
		EventInterprocess: o.Interprocess, EventNotWaitable: o.NotWaitable, EventExternal: o.External} {
		if set {
			flags |= bit
		}
	}
	return flags
}

// EventOptions returns the options of an event with flags.
func EventOptions(flags int64) hal.EventOptions {
	return hal.EventOptions{
		Timing:       flags&EventTiming != 0,
		BlockingSync: flags&EventBlockingSync != 0,
		Interprocess: flags&EventInterprocess != 0,
		NotWaitable:  flags&EventNotWaitable != 0,
		External:     flags&EventExternal != 0,
		Kind:         hal.EventKind(flags >> EventKindShift),
	}
}

// Bits of the flags that a stream is created with.
const (
	StreamNonBlocking = 1
	StreamBlockHost   = 2
)

// Bits of the flags that a check begins with.
const (
	CheckObserve = 1 // compare memory around functions that do not declare what they write
	CheckPages   = 2 // see accesses by the protection of pages
	CheckInOrder = 4 // have the host device run operations in the order of the calls, unless a schedule is in force
)

// Release says what the release of a block of memory waits for.
const (
	ReleaseReusable = iota // work of other streams, unless the program is checked
	ReleaseInOrder         // nothing
	ReleaseTracked         // work of other streams, always
)

// Await says what an event loop has to do for a wait that has begun.
const (
	AwaitDone   = iota // nothing: what was waited for is done
	AwaitNotice        // wait for the notice of the wait's number
	AwaitLook          // ask again and again: under a schedule nothing moves by itself
)
