package hal

import (
	"fmt"
	"sync/atomic"

	"halstream/hal/driver"
)

// Device is one device of a runtime.
type Device struct {
	rt      *Runtime
	ordinal int
	d       driver.Device
	legacy  *Stream
	indexes atomic.Uint64
	used    atomic.Bool
	primary primary
	pool    pool
	levels  int
	// vendor is the driver's device, where that is one of a vendor's library.
	vendor  driver.VendorDevice
	handles handles
}

// Ordinal returns the 0-based number of the device.
func (d *Device) Ordinal() int { return d.ordinal }

// Name returns the hardware's name.
func (d *Device) Name() string { return d.d.Name() }

// Used reports whether a stream of the device was created or its default stream
// returned.
func (d *Device) Used() bool { return d.used.Load() }

// GreatestPriority is the priority of the most urgent streams there can be; the
// least is 0. A device may have fewer levels.
const GreatestPriority = 1 - driver.Levels

// GreatestPriority returns the priority of the device's most urgent streams.
//
// Contract: S7.
func (d *Device) GreatestPriority() int { return 1 - d.levels }

// Legacy returns the legacy default stream without counting as a use.
func (d *Device) Legacy() *Stream { return d.legacy }

// DefaultStream returns the legacy default stream.
//
// Contract: S5.
func (d *Device) DefaultStream() *Stream {
	d.used.Store(true)
	return d.legacy
}

// Synchronize blocks until all work enqueued on the device before the call is
// done, for at most limit nanoseconds (driver.Forever has no limit), and
// reports whether it is.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//   - [ErrDeviceLost].
//
// Contract: D5, H3.
func (d *Device) Synchronize(t *Thread, limit int64) (bool, error) {
	p, err := d.Point(t)
	if err != nil {
		return false, err
	}
	return d.outcome(p.Wait(limit))
}

// Point returns the point at which all work enqueued so far is done.
func (d *Device) Point(t *Thread) (driver.Point, error) {
	if err := t.enter("synchronize device"); err != nil {
		return nil, err
	}
	return d.rt.observe(d.d.Point(), Operation{Kind: "synchronize device", Stream: d.legacy, Thread: t}), nil
}

// Describe says which streams are pending and why.
func (d *Device) Describe() string { return d.d.Describe() }

// Abort drops the work of all streams that has not started.
//
// Contract: A8.
func (d *Device) Abort(t *Thread) (int, error) {
	if err := t.enter("abort device"); err != nil {
		return 0, err
	}
	sim := d.rt.sim
	if sim == nil {
		return 0, driver.Errorf(driver.NotSupported, "abort device", "the %s backend cannot", d.rt.Name())
	}
	return sim.AbortDevice(d.d), nil
}

// Lost returns the error that made the device useless, nil while it can be used.
// Whoever waited without a stream's Failure asks for it: points of a device that
// was lost are reached, though their work was not done.
func (d *Device) Lost() error {
	if d.vendor != nil {
		if err := d.vendor.Lost(); err != nil {
			return err
		}
	}
	return nil
}

// outcome returns the result of a wait: an error if the device was lost meanwhile.
func (d *Device) outcome(reached bool) (bool, error) {
	if err := d.Lost(); err != nil {
		return false, err
	}
	return reached, nil
}

// Fact returns a fact about the device as text: see driver.VendorDevice.
//
// # Errors
//   - [ErrNotSupported]: the backend does not know it.
//   - [ErrInHostFunction].
func (d *Device) Fact(t *Thread, name string) (string, error) {
	const op = "device fact"
	if err := t.enter(op); err != nil {
		return "", err
	}
	if d.vendor != nil {
		return d.vendor.Fact(name)
	}
	return "", driver.Errorf(driver.NotSupported, op, "the %s backend does not know %q of its devices", d.rt.Name(), name)
}

// CanAccess reports whether device d can use memory of device o where it lies.
// Copies between the two work in either case.
//
// # Errors: [ErrInHostFunction].
func (d *Device) CanAccess(t *Thread, o *Device) (bool, error) {
	if err := t.enter("peer access"); err != nil {
		return false, err
	}
	if d.rt != o.rt {
		return false, otherRuntimeError("peer access", fmt.Sprintf("device %d", o.ordinal))
	}
	if p := d.rt.vendor; p != nil && d != o {
		return p.CanAccess(d.ordinal, o.ordinal)
	}
	return d == o, nil
}

// EnableAccess lets device d use memory of device o; again does nothing.
//
// # Errors
//   - [ErrNotSupported]: it cannot.
//   - [ErrInHostFunction].
func (d *Device) EnableAccess(t *Thread, o *Device) error {
	const op = "enable peer access"
	if err := t.enter(op); err != nil {
		return err
	}
	if d == o {
		return nil
	}
	if d.rt != o.rt {
		return otherRuntimeError(op, fmt.Sprintf("device %d", o.ordinal))
	}
	if p := d.rt.vendor; p != nil {
		return p.Enable(d.ordinal, o.ordinal)
	}
	return driver.Errorf(driver.NotSupported, op, "devices of the %s backend do not use each other's memory; copy it",
		d.rt.Name())
}
