package ascend

/*
#include "calls.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"halstream/hal/addrmap"
	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// Device is one NPU. Its primary context, which all libraries of the process share, is taken at the first
// use: that takes memory on the device, and seconds.
type Device struct {
	drv     *Driver
	ordinal int
	name    string
	legacy  *Stream

	vendor.Device
	context atomic.Uintptr // 0 before the first use and after the end
	// fenceEvents are unused events of the library, without and with a time.
	fenceEvents [2]vendor.FenceEvents
	streams     vendor.Streams[*Stream]
	// spares are streams that no stream of the program uses. The library's call that destroys one waits for its work, and
	// that work may wait for the caller; what is kept here has none.
	spares vendor.Cache[spare]
	blocks blocks
	freed  addrmap.Ranges // of blocks that were allocated here and freed since
	staged vendor.Staged
	peers  sync.Map // ordinals of the devices whose memory this one can use
}

// Open implements driver.Driver.
func (d *Driver) Open(ordinal int) (driver.Device, error) {
	dev := &Device{drv: d, ordinal: ordinal, name: "Ascend"}
	dev.Init(deviceCalls{dev})
	for kind := range dev.fenceEvents {
		dev.fenceEvents[kind].Init(&dev.Device, uint8(kind))
	}
	if name := C.na_soc_name(); name != nil {
		dev.name = C.GoString(name)
	}
	dev.legacy = dev.newStream(&Stream{level: driver.Levels - 1, legacy: true})
	dev.streams.Add(dev.legacy)
	d.devices[ordinal] = dev
	return dev, nil
}

// deviceCalls is what hal/vendor asks of a device.
type deviceCalls struct{ d *Device }

func (deviceCalls) Pause() bool { return pause() }

// Enter implements vendor.DeviceCalls.
func (c deviceCalls) Enter() vendor.Context {
	if c.d.context.Load() == 0 {
		return nil
	}
	return c
}

// Leave implements vendor.Context. A query of an event needs no context.
func (deviceCalls) Leave() {}

// Await implements vendor.Context.
func (c deviceCalls) Await(m *vendor.FenceEvent, limit int64, doing string) (bool, *driver.Error) {
	s := C.na_await(C.uintptr_t(m.Event), C.int64_t(limit), spin)
	if s.code == 0 || s.code == codeNotReady {
		return s.code == 0, nil
	}
	e := check(s, doing)
	if lasting(e.Code) {
		_ = c.d.Lose(e)
	}
	return false, e
}

// DropBlocked drops the operations that need the host.
func (c deviceCalls) DropBlocked() { c.d.drv.arrivals.drop(c.d) }

// start takes the primary context. Threads that call at the same time each do it, and all but the first
// undo theirs: none may wait for another here, since it may hold Python's lock.
func (d *Device) start(doing string) error {
	if d.Ended() {
		return driver.Errorf(driver.Closed, doing, "the backend was closed; use the one that replaced it")
	}
	var ctx C.uintptr_t
	if err := check(C.na_set_device(C.int32_t(d.ordinal), &ctx), doing); err != nil {
		if lasting(err.Code) {
			return d.Lose(err)
		}
		return err
	}
	if !d.context.CompareAndSwap(0, uintptr(ctx)) {
		if err := check(C.na_reset_device(C.int32_t(d.ordinal)), doing); err != nil {
			return err
		}
	}
	return nil
}

// usable refuses calls on a device that was lost, and starts one that was not used.
func (d *Device) usable(doing string) error {
	if d.IsLost() {
		return d.LostError(doing)
	}
	if d.context.Load() == 0 {
		return d.start(doing)
	}
	return nil
}

// unusable reports whether the library answers no call about the device any more.
func (d *Device) unusable() bool {
	return d.Unusable() || d.context.Load() == 0
}

func (d *Device) ctx() C.uintptr_t { return C.uintptr_t(d.context.Load()) }

func (d *Device) opened() bool { return d.context.Load() != 0 && !d.IsLost() }

func (d *Device) title() string { return fmt.Sprintf("device %d (%s)", d.ordinal, d.name) }

// Name implements driver.Device.
func (d *Device) Name() string { return d.name }

// Legacy implements driver.Device.
func (d *Device) Legacy() driver.Stream { return d.legacy }

// Priorities implements driver.VendorDevice: AscendCL documents 0, the most urgent, to 7.
func (d *Device) Priorities() int { return driver.Levels }

// spin is for how many nanoseconds a host thread that waits polls without a pause.
const spin = 30_000

// Point implements driver.Device.
func (d *Device) Point() driver.Point {
	var ps driver.Points
	if d.opened() {
		for _, s := range d.streams.All() {
			ps = append(ps, s.Point())
		}
	}
	return ps
}

// Pending implements driver.Device.
func (d *Device) Pending() int {
	n := 0
	if d.opened() {
		for _, s := range d.streams.All() {
			if done, err := s.Query(); !done && err == nil {
				n += s.AtMost()
			}
		}
	}
	return n
}

// Describe implements driver.Device.
func (d *Device) Describe() string {
	if cause := d.Cause(); cause != nil {
		return d.title() + " is lost: " + cause.Error()
	}
	var parts []string
	if d.opened() {
		for _, s := range d.streams.All() {
			if done, err := s.Query(); !done && err == nil {
				parts = append(parts, s.Describe())
			}
		}
	}
	if len(parts) == 0 {
		return d.title() + " has no pending work"
	}
	return strings.Join(parts, "; ")
}

// Fact implements driver.VendorDevice.
func (d *Device) Fact(name string) (string, error) {
	const doing = "ask for a fact"
	switch name {
	case "driver":
		return strconv.Itoa(d.drv.version), nil
	case "unified", "pools", "major", "minor", "warp", "clock_khz":
		return "0", nil // an NPU has none of these
	case "processors":
		if C.na_has(C.NA_aclrtGetDeviceInfo) == 0 {
			return "0", nil
		}
		var cores C.int64_t
		err := d.check(C.na_device_info(C.int32_t(d.ordinal), C.ACL_DEV_ATTR_AICORE_CORE_NUM, &cores), doing)
		return strconv.FormatInt(int64(cores), 10), err
	case "memops":
		return strconv.Itoa(int(C.na_has(C.NA_aclrtValueWait))), nil
	case "memory":
		_, total, err := d.Info()
		return strconv.FormatUint(total, 10), err
	case "uuid":
		var raw [16]C.uchar
		if err := d.check(C.na_uuid(C.int32_t(d.ordinal), &raw[0]), doing); err != nil {
			return "", err
		}
		var u [16]byte
		for i, b := range raw {
			u[i] = byte(b)
		}
		return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
	}
	return "", driver.Errorf(driver.NotSupported, doing, "%q is none that the ascend backend knows", name)
}

// Load implements driver.VendorDevice.
func (d *Device) Load([]byte) (driver.Module, error) {
	return nil, driver.Errorf(driver.NotSupported, "load module", "programs for NPUs are not supported; use functions of the host")
}

// External implements driver.VendorDevice: 0 is the default stream of the device's primary context.
func (d *Device) External(handle uint64) (driver.Stream, error) {
	const doing = "use external stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	if handle == 0 {
		return d.legacy, nil
	}
	return nil, driver.Errorf(driver.InvalidHandle, doing, "handle %#x is none of halstream's streams on device %d; AscendCL "+
		"does not tell whether it is one of another library, so make the stream with halstream", handle, d.ordinal)
}

// PerThread implements driver.VendorDevice. AscendCL has no such streams: it is one of the backend's own.
func (d *Device) PerThread(o driver.StreamOptions) (driver.Stream, error) { return d.NewStream(o) }

// closeLimit is how long closing waits for work of the host's, nanoseconds.
const closeLimit = 2_000_000_000

// close ends what the device has, but for its context. The streams and events of the program are closed already.
func (d *Device) close() {
	if d.context.Load() == 0 {
		return
	}
	if !d.AwaitTasks(closeLimit) || !d.IsLost() && !d.AwaitIdle(d.Pending, closeLimit) {
		// A native function still runs, or a stream waits for a value that nothing writes:
		// their memory must not go from under them.
		d.drv.left.Store(true)
		return
	}
	d.sweep()
	for _, s := range d.streams.All() {
		s.forget()
		d.destroy(s.made())
	}
	for _, s := range d.spares.All() {
		d.destroy(s)
	}
	d.staged.Collect(math.MaxInt, d.Unstage)
	d.trimFenceEvents(0)
	for _, raw := range d.blocks.all() {
		_ = d.check(C.na_free(d.ctx(), C.uint64_t(raw)), "free")
	}
}

// release gives the context back, unless work that may still run needs it.
func (d *Device) release() {
	d.End()
	if d.context.Load() != 0 && !d.drv.left.Load() {
		_ = check(C.na_reset_device(C.int32_t(d.ordinal)), "close device")
	}
	d.context.Store(0)
}

// check is like the function check, and makes the device lost if the error is lasting.
func (d *Device) check(s C.na_status, doing string) error {
	e := check(s, doing)
	if e == nil {
		return nil
	}
	if lasting(e.Code) {
		return d.Lose(e)
	}
	return e
}

// answer converts the result of a query: whether the work is done, or an error.
func (d *Device) answer(s C.na_status, doing string) (bool, error) {
	if s.code == codeNotReady {
		return false, nil
	}
	err := d.check(s, doing)
	return err == nil, err
}

// NewEvent implements driver.Device. It calls nothing: the library's event is taken at the first record.
func (d *Device) NewEvent(o driver.EventOptions) (driver.Event, error) {
	if err := d.usable("create event"); err != nil {
		return nil, err
	}
	return &Event{dev: d, opts: o}, nil
}

// trimFenceEvents destroys the unused events of the library beyond most of each kind.
func (d *Device) trimFenceEvents(most int) {
	for i := range d.fenceEvents {
		for _, m := range d.fenceEvents[i].Surplus(most) {
			_ = d.check(C.na_event_destroy(d.ctx(), C.uintptr_t(m.Event)), "close event")
		}
	}
}

// newFenceEvent returns an event of the library with one reference.
func (d *Device) newFenceEvent(timed bool, doing string) (*vendor.FenceEvent, error) {
	kind, flags := 0, C.uint32_t(C.ACL_EVENT_SYNC)
	if timed {
		kind, flags = 1, flags|C.ACL_EVENT_TIME_LINE
	}
	return d.fenceEvents[kind].New(func() (uintptr, error) {
		var event C.uintptr_t
		err := d.check(C.na_event_new(d.ctx(), flags, &event), doing)
		return uintptr(event), err
	})
}

// orderedDone reports whether the ordered streams have no work: the legacy default stream waits for it.
func (d *Device) orderedDone() (bool, error) {
	for _, o := range d.streams.All() {
		if o.ordered && o.Done() < o.Last() {
			if done, err := o.Query(); !done || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// sweep takes the streams of the library that closed streams have used and whose work is done.
func (d *Device) sweep() {
	for _, s := range d.streams.All() {
		s.mu.Lock()
		tail := s.tail
		s.mu.Unlock()
		if tail == nil || !tail.Wait(0) || !d.streams.Remove(s) {
			continue
		}
		s.QueryCached()
		if made := s.made(); d.opened() && !d.spares.PutUpTo(maxSpares, made) {
			d.destroy(made)
		}
	}
}

// destroy gives a stream without work back to the library.
func (d *Device) destroy(s spare) {
	if s.line != nil {
		C.na_line_end(s.line)
	}
	if s.h != 0 {
		_ = d.check(C.na_stream_destroy(d.ctx(), s.h), "close stream")
	}
}
