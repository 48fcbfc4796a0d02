package cuda

/*
#include <stdlib.h>
#include "calls.h"
#include "gil.h"
*/
import "C"

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// LeastVersion is the oldest driver that is supported, as cuDriverGetVersion gives
// it: CUDA 11.2.
const LeastVersion = 11020

// libraryVariable names the library to load instead of the system's.
const libraryVariable = "HALSTREAM_CUDA_LIBRARY"

// Driver is the CUDA backend.
type Driver struct {
	version int
	devices []*Device
	poller  *poller
	reports atomic.Int64 // handed to threads of the program, and not ended
	pinned  pinned
	left    atomic.Bool // a device was closed while work of it still ran

	vendor.Sequencer
}

// loading keeps two threads from filling the table of functions at once, and
// open counts the drivers that use the table.
var (
	loading sync.Mutex
	open    atomic.Int64
)

// Open loads the driver and returns the backend. path is the library; "" takes
// the one that HALSTREAM_CUDA_LIBRARY names, or else the system's.
//
// # Errors
//   - BackendAbsent: there is no driver, none that can be used, or no device;
//     the text says which and what to do.
func Open(path string) (*Driver, error) {
	if path == "" {
		path = os.Getenv(libraryVariable)
	}
	version, err := load(path)
	if err != nil {
		return nil, err
	}
	var count C.int
	if err := check(C.hs_init(&count), "start the CUDA driver"); err != nil {
		err.Kind = driver.BackendAbsent
		return nil, err
	}
	if count == 0 {
		return nil, absent("the driver shows no device; look at CUDA_VISIBLE_DEVICES, or choose HALSTREAM_BACKEND=host")
	}
	open.Add(1)
	return &Driver{version: version, devices: make([]*Device, count), poller: newPoller(),
		Sequencer: vendor.NewSequencer(pause)}, nil
}

// Symbols returns the names of the driver's functions that the backend looks up.
func Symbols() []string {
	names := make([]string, C.HS_COUNT)
	for i := range names {
		names[i] = C.GoString(C.hs_symbol(C.int(i)))
	}
	return names
}

// pause lets the calling thread sleep for a moment with Python's lock released, and reports whether a signal has ended the sleep.
func pause() bool { return C.hs_pause() != 0 }

func absent(format string, args ...any) *driver.Error {
	return driver.Errorf(driver.BackendAbsent, "use backend cuda", format, args...)
}

func load(path string) (int, error) {
	var file *C.char
	which := "the CUDA driver library"
	if path != "" {
		file = C.CString(path)
		defer C.free(unsafe.Pointer(file))
		which = path
	}
	const room = 512
	text := (*C.char)(C.malloc(room))
	defer C.free(unsafe.Pointer(text))
	var version C.int
	var inUse C.int
	loading.Lock()
	if open.Load() > 0 {
		inUse = 1
	}
	outcome := C.hs_load(file, LeastVersion, inUse, &version, text, room)
	loading.Unlock()
	detail := C.GoString(text)
	major, minor := version/1000, version%1000/10
	switch outcome {
	case C.HS_LOADED:
		return int(version), nil
	case C.HS_NO_LIBRARY:
		if path != "" {
			return 0, absent("%s cannot be loaded (%s); let %s name a CUDA driver, or unset it", path, detail, libraryVariable)
		}
		return 0, absent("no NVIDIA driver is installed (%s); install the GPU's driver, or choose HALSTREAM_BACKEND=host", detail)
	case C.HS_OTHER:
		return 0, absent("%s is not the CUDA driver that this process uses already; "+
			"choose HALSTREAM_BACKEND=host first, or start another process", which)
	case C.HS_TOO_OLD:
		return 0, absent("%s is of CUDA %d.%d, and %d.%d is the oldest that will do; update the GPU's driver",
			which, major, minor, LeastVersion/1000, LeastVersion%1000/10)
	case C.HS_LACKS:
		return 0, absent("%s (CUDA %d.%d) lacks the function %s; reinstall the GPU's driver", which, major, minor, detail)
	}
	if path != "" {
		return 0, absent("%s is no CUDA driver: %s; let %s name one, or unset it", which, detail, libraryVariable)
	}
	return 0, absent("%s is no CUDA driver: %s; reinstall the GPU's driver", which, detail)
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return "cuda" }

// DeviceCount implements driver.Driver.
func (d *Driver) DeviceCount() int { return len(d.devices) }

// Close implements driver.Driver.
func (d *Driver) Close() {
	defer open.Add(-1)
	d.poller.close()
	for _, dev := range d.devices {
		if dev != nil {
			// The poller runs no blocker any more: a stream that reached one
			// would stay there, and freeing pinned memory waits for all streams.
			d.poller.dropBlockers(dev)
			dev.launches.endAll()
		}
	}
	d.poller.asks.Wait() // for a call of the driver, which the streams may have held up
	for _, dev := range d.devices {
		if dev != nil {
			dev.close()
		}
	}
	d.pinned.end(d)
	for _, dev := range d.devices {
		if dev != nil {
			dev.releaseContext()
		}
	}
}

// CanAccess implements driver.VendorDriver.
func (d *Driver) CanAccess(from, to int) (bool, error) {
	if from == to {
		return false, nil
	}
	var can C.int
	err := check(C.hs_can_access(d.devices[from].dev, d.devices[to].dev, &can), "ask for peer access")
	if err != nil {
		return false, err
	}
	return can != 0, nil
}

// Enable implements driver.VendorDriver.
func (d *Driver) Enable(from, to int) error {
	const doing = "enable peer access"
	for _, dev := range []*Device{d.devices[from], d.devices[to]} {
		if err := dev.usable(doing); err != nil {
			return err
		}
	}
	s := C.hs_enable_peer(d.devices[from].ctx(), d.devices[to].ctx())
	if C.hs_code(s) != codePeerEnabled {
		if err := d.devices[from].check(s, doing); err != nil {
			return err
		}
	}
	// Peer access between contexts is not for memory of pools, which have their own.
	other := d.devices[to].state()
	if other.pool == 0 {
		return nil
	}
	return d.devices[to].check(C.hs_pool_access(other.ctx, other.pool, d.devices[from].dev), doing)
}

var (
	_ driver.Driver       = (*Driver)(nil)
	_ driver.VendorDriver = (*Driver)(nil)
	_ driver.Sequencer    = (*Driver)(nil)
	_ driver.Device       = (*Device)(nil)
	_ driver.VendorDevice = (*Device)(nil)
	_ driver.Stream       = (*Stream)(nil)
	_ driver.VendorStream = (*Stream)(nil)
	_ driver.Event        = (*Event)(nil)
)

func init() {
	hal.Register("cuda", 1, func() (driver.Driver, error) {
		d, err := Open("")
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}

// AwaitsHost implements driver.VendorDriver. A wait for a value that another stream
// writes counts, too: the driver does not say what ends a wait.
func (d *Driver) AwaitsHost() bool {
	if d.reports.Load() > 0 || d.poller.anyGate() {
		return true
	}
	for _, dev := range d.devices {
		if !dev.opened() {
			continue
		}
		for _, s := range dev.streams.All() {
			if s.AwaitsHost(s.refresh) {
				return true
			}
		}
	}
	return false
}

// CheckBody implements driver.BodyChecker.
func (d *Driver) CheckBody(on int, n *driver.GraphNode) string {
	switch {
	case n.Kind == driver.EmptyNode || isWhole(n, true) && n.Device == on:
		return ""
	case n.Device != on:
		return fmt.Sprintf("it is on device %d, and the body begins on device %d", n.Device, on)
	}
	return "the driver runs fills, copies and kernels there, but nothing of the host; put it before or behind the condition, " +
		"or decide on the host between two launches"
}

// Refresh implements driver.VendorDriver.
func (d *Driver) Refresh() {
	for _, dev := range d.devices {
		if dev.opened() {
			for _, s := range dev.streams.All() {
				s.refresh()
			}
		}
	}
}

// Probe implements driver.VendorDriver. Memory from a pool or a slab of this package is unknown
// here: hal keeps its blocks in use, and its freed memory stays mapped.
func (d *Driver) Probe(addr uint64) (where driver.Where, start, size uint64, ordinal int, known bool) {
	pools := map[C.CUmemoryPool]bool{}
	var any *Device
	for _, dev := range d.devices {
		if dev.opened() {
			any = dev
			pools[dev.state().pool] = true
			if dev.slabs.has(addr) {
				return 0, 0, 0, -1, false
			}
		}
	}
	if any == nil || d.pinned.owns(addr) {
		return 0, 0, 0, -1, false
	}
	var kind C.uint32_t
	var on C.int
	var from, bytes C.uint64_t
	var pool C.CUmemoryPool
	s := C.hs_probe(any.ctx(), C.CUdeviceptr(addr), &kind, &on, &from, &bytes, &pool)
	if any.check(s, "look at memory") != nil || pool != 0 && pools[pool] {
		return 0, 0, 0, -1, false
	}
	switch kind {
	case memoryHost:
		return driver.Pinned, uint64(from), uint64(bytes), -1, true
	case memoryDevice:
		if on >= 0 && int(on) < len(d.devices) && d.devices[on] != nil && d.devices[on].unfreed.has(uint64(from)) {
			return 0, 0, 0, -1, false
		}
		return driver.OnDevice, uint64(from), uint64(bytes), int(on), true
	}
	return 0, 0, 0, -1, false
}

// stalls reports whether work of a device may wait for the host. Where work of one device waits for
// another's all of them may. It calls no driver, so what the host has done already may count.
func (d *Driver) stalls() bool {
	if d.reports.Load() > 0 || d.poller.anyBlocked() {
		return true
	}
	for _, dev := range d.devices {
		if dev == nil || !dev.opened() {
			continue
		}
		if dev.calling.Load() > 0 {
			return true
		}
		for _, s := range dev.streams.All() {
			if s.MayAwaitHost() && !dev.Unusable() {
				return true
			}
		}
	}
	return false
}

// Open implements driver.Driver.
func (d *Driver) Open(ordinal int) (driver.Device, error) {
	dev := &Device{drv: d, ordinal: ordinal}
	dev.Init(deviceCalls{dev})
	for flags := range dev.fenceEvents {
		dev.fenceEvents[flags].Init(&dev.Device, uint8(flags))
	}
	const room = 256
	name := (*C.char)(C.malloc(room))
	defer C.free(unsafe.Pointer(name))
	if err := check(C.hs_device(C.int(ordinal), &dev.dev, name, room), "open device"); err != nil {
		return nil, err
	}
	dev.name = C.GoString(name)
	dev.legacy = dev.add(&Stream{h: legacyHandle, level: driver.Levels - 1})
	d.devices[ordinal] = dev
	return dev, nil
}
