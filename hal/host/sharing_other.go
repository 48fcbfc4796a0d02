//go:build !linux

package host

import "halstream/hal/driver"

// sharing is nothing here: memory is shared by files that exist only in memory, and by /proc.
type sharing struct{}

func (*sharing) returned(offset, size uint64) {}
func (*sharing) close()                       {}

var errSharing = driver.Errorf(driver.NotSupported, "share memory between processes", "only on Linux")

func (r *region) share(addr, size uint64) (driver.SharedMemory, error) {
	return driver.SharedMemory{}, errSharing
}

func provideShared(size uint64) (uint64, driver.SharedMemory, error) {
	return 0, driver.SharedMemory{}, errSharing
}

func withdrawShared(driver.SharedMemory) {}

func mapShared(driver.SharedMemory) (uint64, error) { return 0, errSharing }

func unmapShared(addr, size uint64) {}

func isRunning(process int, started uint64) bool { return true }
