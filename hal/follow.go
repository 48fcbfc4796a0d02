package hal

import (
	"time"

	"halstream/hal/driver"
)

var began = time.Now()

// Now returns nanoseconds of the clock that operations are timed with.
func (rt *Runtime) Now() int64 {
	if f, ok := rt.drv.(driver.Follower); ok {
		return f.Now()
	}
	return int64(time.Since(began))
}

// FollowExecution switches on or off that the backend notes when operations
// run, for those that somebody listens to.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot tell.
//
// Contract: O6.
func (rt *Runtime) FollowExecution(on bool) error {
	f, ok := rt.drv.(driver.Follower)
	if !ok {
		return driver.Errorf(driver.NotSupported, "follow execution",
			"the %s backend does not tell when operations run", rt.Name())
	}
	f.Follow(on)
	return nil
}

// Executions returns when operations ran, since the last call.
//
// Contract: O6.
func (rt *Runtime) Executions() []driver.Execution {
	if f, ok := rt.drv.(driver.Follower); ok {
		return f.Executions()
	}
	return nil
}
