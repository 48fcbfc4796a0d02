//go:build !linux

package host

import "halstream/hal/driver"

// sharing is nothing here: memory is shared by files that exist only in memory, and by /proc.
type sharing struct{}

func (*sharing) returned(offset, size uint64) {}
func (*sharing) close()                       {}

// Share implements driver.SharingDevice.
func (d *Device) Share(addr, size uint64) (driver.SharedMemory, error) {
	return driver.SharedMemory{}, driver.Errorf(driver.NotSupported, "share memory with other processes", "only on Linux")
}

// Provide implements driver.SharingDevice.
func (d *Device) Provide(size uint64) (uint64, driver.SharedMemory, error) {
	m, err := d.Share(0, size)
	return 0, m, err
}

// Withdraw implements driver.SharingDevice.
func (d *Device) Withdraw(driver.SharedMemory) {}

// Map implements driver.SharingDevice.
func (d *Device) Map(driver.SharedMemory) (uint64, error) {
	return 0, driver.Errorf(driver.NotSupported, "map memory of another process", "only on Linux")
}

// Runs implements driver.SharingDevice.
func (d *Device) Runs(int, uint64) bool { return true }

// Unmap implements driver.SharingDevice.
func (d *Device) Unmap(addr, size uint64) {}
