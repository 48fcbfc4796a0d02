package ascend

/*
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../libascendcl/package/include
#cgo LDFLAGS: -ldl -pthread
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// libraryVariable names the library to load instead of the system's.
const libraryVariable = "HALSTREAM_ASCEND_LIBRARY"

// Driver is the backend for Ascend NPUs.
type Driver struct {
	version  int // of AscendCL: major times 1000 plus minor
	devices  []*Device
	arrivals *arrivals
	pinned   pinned
	reports  atomic.Int64 // handed to threads of the program, and not ended
	left     atomic.Bool  // a device was closed while work of it still ran

	vendor.Sequencer
	enqueueLock vendor.EnqueueLock
}

// loading keeps two threads from filling the table of functions at once, and
// open counts the drivers that use the table.
var (
	loading sync.Mutex
	open    atomic.Int64
)

// Open loads the library and returns the backend. path is the library; "" takes
// the one that HALSTREAM_ASCEND_LIBRARY names, or else the system's. AscendCL is not finalized
// later: aclFinalize ends it for every library of the process.
//
// # Errors
//   - BackendAbsent: there is no library, none that can be used, or no device; the
//     text says which and what to do.
func Open(path string) (*Driver, error) {
	if path == "" {
		path = os.Getenv(libraryVariable)
	}
	if err := load(path); err != nil {
		return nil, err
	}
	var count C.uint32_t
	var major, minor C.int32_t
	if err := check(C.na_init(&count, &major, &minor), "start AscendCL"); err != nil {
		err.Kind = driver.BackendAbsent
		return nil, err
	}
	if count == 0 {
		return nil, absent("AscendCL shows no device; look at ASCEND_RT_VISIBLE_DEVICES and npu-smi, or choose HALSTREAM_BACKEND=host")
	}
	open.Add(1)
	return &Driver{version: int(major)*1000 + int(minor), devices: make([]*Device, count), arrivals: newArrivals(),
		Sequencer: vendor.NewSequencer(pause)}, nil
}

// Symbols returns the names of the library's functions that the backend looks up.
func Symbols() []string {
	names := make([]string, C.NA_COUNT)
	for i := range names {
		names[i] = C.GoString(C.na_symbol(C.int(i)))
	}
	return names
}

// pause lets the calling thread sleep for a moment with Python's lock released, and reports whether a signal has ended the sleep.
func pause() bool { return C.na_pause() != 0 }

func absent(format string, args ...any) *driver.Error {
	return driver.Errorf(driver.BackendAbsent, "use backend ascend", format, args...)
}

func load(path string) error {
	var file *C.char
	which := "libascendcl.so"
	if path != "" {
		file = C.CString(path)
		defer C.free(unsafe.Pointer(file))
		which = path
	}
	const room = 512
	text := (*C.char)(C.malloc(room))
	defer C.free(unsafe.Pointer(text))
	loading.Lock()
	defer loading.Unlock()
	var inUse C.int
	if open.Load() > 0 {
		inUse = 1
	}
	outcome := C.na_load(file, inUse, text, room)
	detail := C.GoString(text)
	switch {
	case outcome == C.NA_LOADED:
		return nil
	case outcome == C.NA_NO_LIBRARY && path != "":
		return absent("%s cannot be loaded (%s); let %s name CANN's libascendcl.so, or unset it", path, detail, libraryVariable)
	case outcome == C.NA_NO_LIBRARY:
		return absent("CANN's libascendcl.so cannot be loaded (%s); install CANN and run its set_env.sh, "+
			"or choose HALSTREAM_BACKEND=host", detail)
	case outcome == C.NA_OTHER:
		return absent("%s is not the AscendCL library that this process uses already; "+
			"choose HALSTREAM_BACKEND=host first, or start another process", which)
	}
	return absent("%s lacks the function %s; CANN 8.0 is the oldest release that will do", which, detail)
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return "ascend" }

// DeviceCount implements driver.Driver.
func (d *Driver) DeviceCount() int { return len(d.devices) }

// Close implements driver.Driver.
func (d *Driver) Close() {
	defer open.Add(-1)
	d.arrivals.close()
	for _, dev := range d.devices {
		if dev != nil {
			// Nothing hands functions over any more: a stream that reached one would stay there.
			d.arrivals.drop(dev)
		}
	}
	for _, dev := range d.devices {
		if dev != nil {
			dev.close()
		}
	}
	if !d.left.Load() { // else work that still runs may use it
		d.pinned.end(d)
	}
	for _, dev := range d.devices {
		if dev != nil {
			dev.release()
		}
	}
}

// anyDevice returns a device whose context can be used for calls about host memory.
func (d *Driver) anyDevice(doing string) (*Device, error) {
	var first *Device
	for _, dev := range d.devices {
		if dev != nil && dev.opened() {
			return dev, nil
		}
		if first == nil && dev != nil && !dev.IsLost() {
			first = dev
		}
	}
	if first == nil {
		first = d.devices[0]
	}
	if first == nil {
		return nil, driver.Errorf(driver.Closed, doing, "no device is open")
	}
	return first, first.usable(doing)
}

// CanAccess implements driver.VendorDriver.
func (d *Driver) CanAccess(from, to int) (bool, error) {
	const doing = "ask for peer access"
	if from == to {
		return false, nil
	}
	if err := d.devices[from].usable(doing); err != nil {
		return false, err
	}
	var can C.int32_t
	err := d.devices[from].check(C.na_can_access(d.devices[from].ctx(), C.int32_t(from), C.int32_t(to), &can), doing)
	return can != 0, err
}

// Enable implements driver.VendorDriver.
func (d *Driver) Enable(from, to int) error {
	const doing = "enable peer access"
	for _, dev := range []*Device{d.devices[from], d.devices[to]} {
		if err := dev.usable(doing); err != nil {
			return err
		}
	}
	return d.devices[from].check(C.na_enable_peer(d.devices[from].ctx(), C.int32_t(to)), doing)
}

// Probe implements driver.VendorDriver. AscendCL tells where an address lies, but not where its
// allocation begins and ends, so memory of other libraries is unknown here.
func (d *Driver) Probe(uint64) (where driver.Where, start, size uint64, ordinal int, known bool) {
	return 0, 0, 0, -1, false
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
	hal.Register("ascend", 2, func() (driver.Driver, error) {
		d, err := Open("")
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}

// follow begins the enqueue of an operation. A driver has one enqueue lock: each operation on an ordered stream concerns the
// legacy default stream, too, and the other way round.
func (d *Driver) follow(tag driver.Tag) vendor.Enqueuing { return d.Enqueue(tag, &d.enqueueLock, nil) }

// Refresh implements driver.VendorDriver.
func (d *Driver) Refresh() {
	for _, dev := range d.devices {
		if dev != nil && dev.opened() {
			for _, s := range dev.streams.All() {
				s.refresh()
			}
		}
	}
}

// AwaitsHost implements driver.VendorDriver. A wait for a value that another stream writes counts, too: the library
// does not say what ends a wait.
func (d *Driver) AwaitsHost() bool {
	if d.reports.Load() > 0 || d.arrivals.anyGate() {
		return true
	}
	for _, dev := range d.devices {
		if dev == nil || !dev.opened() {
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
