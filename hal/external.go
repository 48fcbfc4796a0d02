package hal

import (
	"sync"

	"halstream/hal/driver"
)

// handles finds the open streams of a device, those of other libraries left out,
// by the numbers that the vendor's library gave them.
type handles struct {
	mu sync.Mutex
	of map[uint64]*Stream
}

func (h *handles) add(s *Stream) {
	number, ok := s.Handle()
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[uint64]*Stream{}
	}
	h.of[number] = s
}

func (h *handles) remove(s *Stream) {
	number, ok := s.Handle()
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[number] == s {
		delete(h.of, number)
	}
}

func (h *handles) find(number uint64) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[number]
}

// Handle returns the number by which the vendor's library knows the stream, and
// whether it does.
func (s *Stream) Handle() (uint64, bool) {
	if h, ok := s.d.(driver.VendorStream); ok {
		return h.Handle(), true
	}
	return 0, false
}

// External reports whether the stream is another library's: closing it leaves
// that library's alone.
func (s *Stream) External() bool { return s.external }

// The largest handle that means the legacy default stream, and the one that means
// the caller's own.
const (
	legacyHandleMost = 1
	perThreadHandle  = 2
)

// External returns the stream with a handle of the vendor's: the open stream of
// this runtime that has it, or one that stands for another library's. Who made
// that one keeps it alive for as long as it is used here.
//
// # Errors
//   - [ErrNotSupported]: the backend's streams have no handles.
//   - [ErrInvalidHandle]: the vendor's library does not know it.
//   - [ErrWrongDevice]: it belongs to another device.
//   - [ErrInHostFunction].
//
// Contract: S1, D4, H3.
func (d *Device) External(t *Thread, handle uint64) (*Stream, error) {
	const op = "use external stream"
	if err := t.enter(op); err != nil {
		return nil, err
	}
	if handle <= legacyHandleMost {
		return d.DefaultStream(), nil
	}
	if handle == perThreadHandle && t != nil {
		return d.PerThreadStream(t)
	}
	for _, o := range d.rt.devices {
		s := o.handles.find(handle)
		switch {
		case s != nil && o != d:
			return nil, driver.Errorf(driver.WrongDevice, op, "%#x is a stream of device %d, not %d",
				handle, o.ordinal, d.ordinal)
		case s != nil:
			return s, nil
		}
	}
	if d.vendor == nil {
		return nil, driver.Errorf(driver.NotSupported, op, "streams of the %s backend have no handles", d.rt.Name())
	}
	made, err := d.vendor.External(handle)
	if err != nil {
		return nil, err
	}
	d.used.Store(true)
	s := &Stream{dev: d, d: made, index: d.indexes.Add(1), external: true, level: uint8(d.levels - 1)}
	if m, ok := made.(driver.VendorStream); ok {
		o := m.Made()
		s.level = min(o.Level, s.level)
		s.opts = StreamOptions{Priority: int(s.level) + d.GreatestPriority(), NonBlocking: !o.Ordered}
	}
	d.rt.live.Add(1)
	d.rt.notifyHost(Operation{Kind: "new stream", Stream: s, Thread: t})
	return s, nil
}
