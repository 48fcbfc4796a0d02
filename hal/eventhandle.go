package hal

import "halstream/hal/driver"

// recorded reports whether the event was recorded, or may have been by another library.
func (e *Event) recorded() bool { return e.version.Load() != 0 || e.handle.Load() != 0 }

// WasRecorded reports whether Record or RecordExternal was called, in a capture or outside of one.
func (e *Event) WasRecorded() bool {
	return e.version.Load() != 0 || e.captured.Load() != nil || e.byGraphs.Load()
}

// InCapture reports whether the latest record is in a capture, so that nothing can be told of its work.
//
// Contract: G4.
func (e *Event) InCapture() bool { return e.captured.Load() != nil }

// Handle returns the number of the event in the vendor's library, by which other libraries query it, wait
// for it and record it; 0 before the event has a device, and on a backend without such a library. It is the
// same whether the latest record is in a capture or not.
//
// # Errors: [ErrClosed], [ErrInHostFunction], [ErrOutOfMemory], [ErrDeviceLost].
//
// Contract: E9, G4.
func (e *Event) Handle(t *Thread) (uint64, error) {
	const op = "handle"
	if err := t.checkCaller(op); err != nil {
		return 0, err
	}
	if e.closed.Load() {
		return 0, closedError(op, "event")
	}
	b := e.bound.Load()
	if b == nil {
		return 0, nil
	}
	vendor, ok := b.d.(driver.VendorEvent)
	if !ok {
		return 0, nil
	}
	number, err := vendor.Handle()
	if err == nil {
		e.handle.Store(number)
	}
	return number, err
}

// GivenHandle returns the number that Handle has returned, 0 before.
func (e *Event) GivenHandle() uint64 { return e.handle.Load() }
