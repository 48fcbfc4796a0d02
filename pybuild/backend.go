package pybuild

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"halstream/hal"
	"halstream/hal/driver"
)

var rt *hal.Runtime

// over is set by Shutdown: no call enqueues anything after it, and threads that
// wait in the extension stay there.
var over atomic.Bool

// streamIDs and threadIDs are the ids of each device's default streams.
var legacyIDs, perThreadIDs []int64

func init() {
	// A thread of Python that calls in needs a processor of Go's at once, also
	// while the pump and the engines have theirs.
	runtime.GOMAXPROCS(runtime.NumCPU() + 4)
	// The heap is small and short-lived events fill it: collect less often.
	debug.SetGCPercent(400)
	absent := func(name string, rank int, why string) {
		hal.Register(name, rank, func() (driver.Driver, error) {
			return nil, driver.Errorf(driver.BackendAbsent, "use backend "+name, "%s", why)
		})
	}
	absent("cuda", 1, "the cuda backend is not part of this version of halstream; use HALSTREAM_BACKEND=host")
	absent("ascend", 2, "the ascend backend is not part of this version of halstream; use HALSTREAM_BACKEND=host")
}

// backend returns the runtime, opened at the first use.
func backend() (*hal.Runtime, error) {
	if over.Load() {
		return nil, raise(driver.Errorf(driver.Closed, "use runtime",
			"the interpreter is ending and the runtime has shut down; do this before the program's end"))
	}
	if rt != nil {
		return rt, nil
	}
	name := getenv("HALSTREAM_BACKEND")
	if name == "" {
		name = "auto"
	}
	return rt, use(name)
}

func use(name string) error {
	limit := 32
	if text := getenv("HALSTREAM_HOST_THREADS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 4096 {
			return raise(driver.Errorf(driver.InvalidValue, "use backend",
				"HALSTREAM_HOST_THREADS is %q; give a whole number from 1 to 4096", text))
		}
		limit = n
	}
	for _, variable := range []string{"HALSTREAM_HOST_DEVICES", "HALSTREAM_HOST_ENGINES", "HALSTREAM_HOST_MEMORY"} {
		// Backends read Go's copy of the environment.
		if now := getenv(variable); now != os.Getenv(variable) {
			if err := os.Setenv(variable, now); err != nil {
				return raise(err)
			}
		}
	}
	opened, err := hal.OpenBackend(name, limit)
	if err != nil {
		return raise(err)
	}
	rt, legacyIDs, perThreadIDs = opened, nil, nil
	for i := range rt.Devices() {
		d, _ := rt.Device(i)
		legacyIDs = append(legacyIDs, insert(d.Legacy()))
		perThreadIDs = append(perThreadIDs, insert(perThread{d}))
	}
	followCheck(rt)
	return nil
}

func device(ordinal int64) (*hal.Device, error) {
	r, err := backend()
	if err != nil {
		return nil, err
	}
	d, err := r.Device(int(ordinal))
	return d, raise(err)
}

// Backend returns the name of the backend in use.
func Backend() (name string, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return "", err
	}
	return r.Name(), nil
}

// UseBackend changes the backend; no stream or event may be alive.
func UseBackend(name string) (done int64, err error) {
	defer guard(&err)
	if rt != nil {
		if n := rt.Live(); n > 0 {
			return 0, raise(driver.Errorf(driver.InvalidValue, "use backend",
				"%d stream(s) and event(s) are alive; close them first", n))
		}
		if n := rt.Blocks(); n > 0 {
			return 0, raise(driver.Errorf(driver.InvalidValue, "use backend",
				"%d block(s) of memory are alive; free them first", n))
		}
		if rt.Pending() > 0 {
			return 0, raise(driver.Errorf(driver.NotReady, "use backend",
				"work is pending; synchronize the devices first"))
		}
	}
	before, ids := rt, append(legacyIDs, perThreadIDs...)
	if err := use(name); err != nil {
		return 0, err
	}
	if before != nil {
		for _, id := range ids {
			remove(id)
		}
		unlocked(before.Close)
	}
	return 1, nil
}

// DeviceCount returns the number of devices.
func DeviceCount() (n int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return int64(r.Devices()), nil
}

// DeviceName returns the hardware's name.
func DeviceName(ordinal int64) (name string, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	return d.Name(), nil
}

// DeviceUsed returns 1 once a stream of the device was made or asked for.
func DeviceUsed(ordinal int64) (used int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	return truth(d.Used()), nil
}

// DeviceGreatestPriority returns the priority of the most urgent streams.
func DeviceGreatestPriority(ordinal int64) (priority int64, err error) {
	defer guard(&err)
	if _, err := device(ordinal); err != nil {
		return 0, err
	}
	return hal.GreatestPriority, nil
}

// DeviceSync waits for all work enqueued on the device so far; 1 if it is done.
func DeviceSync(ordinal, limit int64) (done int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	p, err := d.Point(caller())
	if err != nil {
		return 0, raise(err)
	}
	return await(p, limit), nil
}

// DeviceAbort drops the work of the device that has not started.
func DeviceAbort(ordinal int64) (n int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	dropped, err := d.Abort(caller())
	return int64(dropped), raise(err)
}

// DeviceDescribe says which streams are pending and why.
func DeviceDescribe(ordinal int64) (text string, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	return d.Describe(), nil
}

// Live returns how many streams and events are open.
func Live() (n int64, err error) {
	defer guard(&err)
	if rt == nil {
		return 0, nil
	}
	return int64(rt.Live()), nil
}

// Threads returns how many host threads the runtime knows.
func Threads() (n int64, err error) {
	defer guard(&err)
	return int64(len(threads) - 1 - len(freeSlots)), nil
}

// Goroutines returns how many goroutines there are, for tests of leaks.
func Goroutines() int64 { return int64(runtime.NumGoroutine()) }

// Shutdown waits at most limit nanoseconds for all pending work, sends the
// threads that run functions away, and returns how many operations were left.
func Shutdown(limit int64) (left int64, err error) {
	defer guard(&err)
	if rt == nil {
		return 0, nil
	}
	end := time.Now().Add(time.Duration(limit))
	for i := range rt.Devices() {
		d, _ := rt.Device(i)
		if p, err := d.Point(nil); err == nil {
			await(p, max(0, int64(time.Until(end))))
		}
	}
	left = int64(rt.Pending())
	over.Store(true)
	rt.Funcs.Close()
	return left, nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
