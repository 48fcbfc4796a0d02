package host

import (
	"time"

	"halstream/hal/driver"
	"halstream/ptx"
)

// ShortenUnattendedTick shortens how long the device waits before it goes on by itself. It
// is called before any test runs.
func ShortenUnattendedTick() { unattendedTick = 10 * time.Millisecond }

// KernelMemory returns the list of memory that a launch was given.
func KernelMemory(l driver.PreparedLaunch) *ptx.Memory { return l.(*kernelRun).l.Memory }
