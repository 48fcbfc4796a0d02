package hal

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// Runtime is one opened backend with its devices.
type Runtime struct {
	drv       driver.Driver
	devices   []*Device
	passed    []string
	listeners listeners
	inspector atomic.Pointer[Inspector]
	// Funcs is the queue from which threads take the functions on streams.
	Funcs *Queue
	// live counts streams and events that are not closed.
	live   atomic.Int64
	ended  atomic.Bool
	memory memories
	// prober and refresher are the driver, where it is one.
	prober    driver.Prober
	refresher driver.Refresher
	eventIDs  atomic.Uint64
	gateIDs   atomic.Uint64
}

// Open makes a runtime of a driver. threads bounds how many threads may run
// functions at once.
func Open(drv driver.Driver, threads int) (*Runtime, error) {
	rt := &Runtime{drv: drv, Funcs: newQueue(threads)}
	rt.prober, _ = drv.(driver.Prober)
	rt.refresher, _ = drv.(driver.Refresher)
	if q, ok := drv.(driver.Sequencer); ok {
		q.OnSequence(rt.listeners.notifier.sequence)
	}
	for i := range drv.DeviceCount() {
		d, err := drv.Open(i)
		if err != nil {
			drv.Close()
			return nil, err
		}
		dev := &Device{rt: rt, ordinal: i, d: d, levels: driver.Levels}
		if r, ok := d.(driver.Ranged); ok {
			dev.levels = max(1, min(driver.Levels, r.Priorities()))
		}
		dev.stager, _ = d.(driver.Stager)
		dev.losable, _ = d.(driver.Losable)
		dev.legacy = &Stream{dev: dev, d: d.Legacy(), level: uint8(dev.levels - 1), special: true}
		rt.devices = append(rt.devices, dev)
	}
	if len(rt.devices) == 0 {
		drv.Close()
		return nil, driver.Errorf(driver.BackendAbsent, "open backend", "%s has no device", drv.Name())
	}
	return rt, nil
}

// Name returns the backend's name.
func (rt *Runtime) Name() string { return rt.drv.Name() }

// Devices returns how many devices there are.
//
// Contract: D1.
func (rt *Runtime) Devices() int { return len(rt.devices) }

// Device returns a device by its ordinal.
//
// # Errors
//   - [ErrInvalidDevice]: there is no such device.
//
// Contract: D1.
func (rt *Runtime) Device(ordinal int) (*Device, error) {
	if ordinal < 0 || ordinal >= len(rt.devices) {
		return nil, driver.Errorf(driver.InvalidDevice, "device",
			"device %d does not exist: the %s backend has %d, numbered from 0",
			ordinal, rt.drv.Name(), len(rt.devices))
	}
	return rt.devices[ordinal], nil
}

// Live returns how many streams and events are not closed.
//
// Contract: L5.
func (rt *Runtime) Live() int { return int(rt.live.Load()) }

// Pending returns how many operations are enqueued and not done.
func (rt *Runtime) Pending() (n int) {
	for range rt.looks() {
		rt.refresh()
		n = 0
		for _, d := range rt.devices {
			n += d.d.Pending()
		}
		if n == 0 {
			break
		}
	}
	return n
}

// Close ends the runtime: threads that wait for functions are released, work
// that has not started is dropped, and copies, fills and native functions that
// run are waited for, since they use memory that goes with the runtime. Closing
// again does nothing.
//
// Contract: L6.
func (rt *Runtime) Close() {
	if !rt.ended.CompareAndSwap(false, true) {
		return
	}
	rt.Funcs.Close()
	for _, d := range rt.devices {
		d.pool.drain(d)
	}
	rt.drv.Close()
}

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
	// stager and losable are the driver's device, where it is one.
	stager  driver.Stager
	losable driver.Losable
	handles handles
}

// Ordinal returns the 0-based number of the device.
func (d *Device) Ordinal() int { return d.ordinal }

// Name returns the hardware's name.
func (d *Device) Name() string { return d.d.Name() }

// Used reports whether a stream of the device was made or its default stream
// asked for.
func (d *Device) Used() bool { return d.used.Load() }

// GreatestPriority is the priority of the most urgent streams there can be; the
// least is 0. A device may tell fewer priorities apart.
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
	return d.rt.telling(d.d.Point(), Operation{Kind: "synchronize device", Stream: d.legacy, Thread: t}), nil
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
	a, ok := d.d.(driver.Aborter)
	if !ok {
		return 0, driver.Errorf(driver.NotSupported, "abort device", "the %s backend cannot", d.rt.Name())
	}
	return a.Abort(), nil
}
