package hal

import (
	"slices"
	"sync"

	"halstream/hal/driver"
	"halstream/hal/native"
)

// Bits of Access.Mode.
const (
	Reads = 1 << iota
	Writes
)

// Access is memory that a function reads, writes, or both: Rows pieces of Bytes bytes,
// Pitch bytes from the start of one to that of the next. 0 and 1 rows are one piece.
// The layout is that of halstream_range in halstream.h.
type Access struct {
	Start, Bytes, Rows, Pitch uint64
	Mode                      uint32
	_                         uint32
}

// NativeFunc describes a C function that can fail, with what listeners see of it.
type NativeFunc struct {
	// Name is shown in reports and errors; "" where it has none.
	Name string
	// Site is where the program made the call, 0 to find that out now.
	Site uint32
	// Accesses is read during the call only.
	Accesses []Access
	// Function is int f(void *argument, char *text, size_t room). It fails by returning
	// another number than 0, with the text that it leaves.
	Function, Argument uint64
	// Release is void f(void *argument). It is called exactly once: after the function,
	// or instead of it where the operation is dropped. 0 for none.
	Release uint64
}

// ranges returns what the function reads and writes, as listeners see it.
func (f *NativeFunc) ranges() (reads, writes []Range) {
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Bytes == 0 {
			continue
		}
		pieces := []Range{{a.Start, a.Bytes}}
		switch {
		case a.Rows <= 1 || a.Pitch == 0:
		case a.Pitch > a.Bytes:
			pieces = rows(a.Start, a.Pitch, a.Bytes, a.Rows)
		default: // the rows touch or overlap
			pieces[0].Size, _ = span(a.Start, a.Pitch, a.Bytes, a.Rows)
		}
		if a.Mode&Reads != 0 {
			reads = append(reads, pieces...)
		}
		if a.Mode&Writes != 0 {
			writes = append(writes, pieces...)
		}
	}
	return reads, writes
}

// nativeCall is a native function that was given to the backend. It is its driver.NativeCall.
type nativeCall struct {
	s                           *Stream
	name                        string
	function, argument, release uint64
}

// Title implements driver.NativeCall.
func (c *nativeCall) Title() string {
	if c.name == "" {
		return "a native function"
	}
	return c.name
}

// Run implements driver.NativeCall.
func (c *nativeCall) Run() (err *driver.Error) {
	text, failed := native.Call(c.function, c.argument)
	if failed {
		if text == "" {
			text = "it failed, without a text"
		}
		err = driver.Errorf(driver.HostFunction, c.Title(), "%s: %s", c.Title(), text)
		c.s.failures.Add(1)
		c.s.dev.noteFailed(c.s)
	}
	c.free()
	return err
}

// Drop implements driver.NativeCall. It is called with locks held, so the argument is
// released on another thread.
func (c *nativeCall) Drop() { go c.free() }

func (c *nativeCall) free() {
	if c.release != 0 {
		native.Release(c.release, c.argument)
	}
}

// NativeFunc enqueues a call of a C function that can fail. Its error becomes that of
// the stream, unless the stream has one.
//
// # Errors
//   - [ErrInvalidValue]: there is no function, or a range wraps around.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// After an error neither the function nor Release is called.
//
// Contract: C1, C2, C3, M11, M12.
func (s *Stream) NativeFunc(t *Thread, f *NativeFunc) error {
	const op = "call native"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if f.Function == 0 {
		return driver.Errorf(driver.InvalidValue, op, "the function's address is 0")
	}
	for i := range f.Accesses {
		if err := f.Accesses[i].check(op); err != nil {
			return err
		}
	}
	call := &nativeCall{s, f.Name, f.Function, f.Argument, f.Release}
	if c := s.capture.Load(); c != nil {
		return c.addNativeFunc(s, f, call)
	}
	spec := driver.Native{Call: call}
	if s.listened() {
		reads, writes := f.ranges()
		id := s.announce(&Operation{Kind: OpNative, Name: f.Name, Site: f.Site, Thread: t, Reads: reads, Writes: writes})
		spec.Tag = id
		if watch := s.dev.rt.newWatch(id, writes, reads); watch != nil {
			spec.Before, spec.After = watch.begin, watch.end
		}
	}
	var room [8]*Block
	blocks := s.beginAccesses(call, f.Accesses, room[:0])
	if len(blocks) == 0 {
		return s.settle(t, spec.Tag, s.d.Native(spec))
	}
	err := s.d.Native(spec)
	s.endAccesses(blocks, err)
	return s.settle(t, spec.Tag, err)
}

// check rejects what is no access.
func (a *Access) check(op string) error {
	if a.Mode == 0 || a.Mode > Reads|Writes {
		return driver.Errorf(driver.InvalidValue, op, "a range at %#x has access %d; give 1 to read, 2 to write, 3 for both",
			a.Start, a.Mode)
	}
	if a.Bytes == 0 {
		return nil
	}
	n, ok := a.Bytes, a.Start+a.Bytes >= a.Start
	if a.Rows > 1 {
		n, ok = span(a.Start, a.Pitch, a.Bytes, a.Rows)
	}
	if !ok {
		return driver.Errorf(driver.InvalidValue, op, "a range of %d bytes at %#x extends past the last address", n, a.Start)
	}
	return nil
}

// beginAccesses is beginUses for a native function. It leaves out stream-ordered
// memory that is freed in the order of its stream: who frees it orders all work on it
// before the free.
func (s *Stream) beginAccesses(call *nativeCall, accesses []Access, found []*Block) []*Block {
	if len(accesses) == 0 {
		return nil
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range accesses {
		if b := m.blocks.Find(accesses[i].Start); b != nil && !b.inOrder {
			b.beginUse(s, call.Title())
			found = append(found, b)
		}
	}
	return found
}

// endAccesses ends beginAccesses, after an operation was enqueued or refused with err.
func (s *Stream) endAccesses(blocks []*Block, err error) {
	var place uint64
	if err == nil {
		place = s.d.Last()
		s.requestExact(blocks)
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range blocks {
		b.endUse(s, place)
	}
}

// failedStreams are the streams of a device on which native functions have failed
// since Device.Failure has looked at them last.
type failedStreams struct {
	mu      sync.Mutex
	streams []*Stream
}

// noteFailed adds a stream to those that Failure looks at.
func (d *Device) noteFailed(s *Stream) {
	d.failed.mu.Lock()
	defer d.failed.mu.Unlock()
	if !slices.Contains(d.failed.streams, s) {
		d.failed.streams = append(d.failed.streams, s)
	}
}

// Failure returns the first error of a native function on a stream of the device that
// no call has returned yet, and clears it; nil if there is none.
//
// Contract: C2.
func (d *Device) Failure() error {
	for {
		d.failed.mu.Lock()
		if len(d.failed.streams) == 0 {
			d.failed.mu.Unlock()
			return nil
		}
		s := d.failed.streams[0]
		d.failed.streams = d.failed.streams[1:]
		d.failed.mu.Unlock()
		if err := s.Failure(); err != nil {
			return err
		}
	}
}
