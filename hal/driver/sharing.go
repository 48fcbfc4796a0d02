package driver

// SharingDevice is a Device whose memory other processes of the machine can map.
type SharingDevice interface {
	// Share lets other processes map a range of the device's memory for as long as this one runs. Nothing works on the
	// pages of the range meanwhile.
	Share(addr, size uint64) (SharedMemory, error)
	// Provide maps new memory, all zeros, that others can map as well until Withdraw. Unmap ends it here, too.
	Provide(size uint64) (addr uint64, m SharedMemory, err error)
	// Withdraw ends what Provide has begun for those that have not mapped it yet.
	Withdraw(m SharedMemory)
	// Map maps what another process shares, until Unmap.
	Map(m SharedMemory) (addr uint64, err error)
	// Runs reports whether a process runs, and is the one that began at started, unless that is 0.
	Runs(process int, started uint64) bool
	// Unmap ends a mapping of Map or Provide.
	Unmap(addr, size uint64)
}

// SharedMemory is what another process needs to find memory that this one shares: bytes of a file that the process has
// open.
type SharedMemory struct {
	// Process is the number of the process, and Started when it began in clock ticks of the system, which tells it from
	// a later one with its number.
	Process int
	Started uint64
	// File is the file's descriptor in the process, and Offset and Size are the range in it.
	File         int
	Offset, Size uint64
}
