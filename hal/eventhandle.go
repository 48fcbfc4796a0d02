package hal

import "halstream/hal/driver"

// recorded reports whether the event was recorded, or may have been by another library.
func (e *Event) recorded() bool { return e.version.Load() != 0 || e.handle.Load() != 0 }

// Handle returns the number of the event in the vendor's library, by which other libraries query it, wait
// for it and record it; 0 before the event has a device, and on a backend without such a library.
//
// # Errors: [ErrClosed], [ErrInHostFunction], [ErrOutOfMemory], [ErrDeviceLost].
//
// Contract: E9.
func (e *Event) Handle(t *Thread) (uint64, error) {
	if err := e.checkOpen(t, "handle"); err != nil {
		return 0, err
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
