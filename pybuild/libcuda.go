package pybuild

// extern void halstreamDriverEnds(void);
import "C"

import (
	"sync"

	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/libcuda"
)

// The CUDA driver's functions are part of the extension: programs in Python that use them share its runtime.

func init() {
	libcuda.Use(&libcuda.Process{
		Runtime: driverRuntime,
		Thread:  func(number uint32) *hal.Thread { return python.ThreadAt(int32(number)) },
		Wait:    driverWait,
	})
}

// driverRuntime returns the runtime in use for a call without Python's lock.
func driverRuntime() (rt *hal.Runtime, err error) {
	if now := python.Current(); now != nil {
		return now.Runtime, nil
	}
	if !python.WithLock(func() {
		atExit.Do(func() { python.AtExit(C.halstreamDriverEnds) })
		rt, err = backend()
	}) {
		err = driver.Errorf(driver.Closed, "use runtime", "the interpreter is ending and the runtime has shut down")
	}
	return rt, err
}

var atExit sync.Once

// halstreamDriverEnds ends the runtime where the program has not imported the package, which does so by itself.
//
//export halstreamDriverEnds
func halstreamDriverEnds() { _, _ = Shutdown(endLimit) }

// endLimit is how many nanoseconds the end of a program waits for pending work.
const endLimit = 5_000_000_000

// errEnded is the error of a wait whose end has been printed, or is raised by Python.
var errEnded = driver.Errorf(driver.Timeout, "synchronize", "the wait was ended: it can never end, or a signal came")

// driverWait waits as calls of the package do: signals of the program are handled, and a wait that can never end is
// reported.
func driverWait(_ uint32, _ *hal.Runtime, p driver.Point) (err error) {
	waited := python.WithLock(func() {
		if _, raised := python.Await(p, driver.Forever); raised {
			err = errEnded
		}
	})
	if !waited {
		p.Wait(driver.Forever)
	}
	return err
}
