package driver

// The interfaces of this file are for backends that stand on a vendor's library.

// VendorDriver is implemented by drivers of a vendor's library.
type VendorDriver interface {
	// Probe returns the allocation that holds an address, and the ordinal of its
	// device (-1: the host's). known is false for memory the library does not know.
	Probe(addr uint64) (where Where, start, size uint64, ordinal int, known bool)
	// Refresh asks the library how far all streams are whose places Stream.Reached
	// was asked for in vain; Reached answers from what the last Refresh found. No
	// lock of the caller's may be held.
	Refresh()
	// AwaitsHost reports whether a stream has reached, or may reach next, something
	// that only a thread of the program can end: a gate, a wait for a value or for a
	// settable event, a report. No lock of the caller's may be held.
	AwaitsHost() bool
	// CanAccess reports whether device from can use memory of device to.
	CanAccess(from, to int) (bool, error)
	// Enable lets device from use memory of device to; again does nothing.
	Enable(from, to int) error
}

// VendorDevice is implemented by devices of a vendor's library.
type VendorDevice interface {
	// Priorities returns how many priorities the device distinguishes, from 1 to
	// Levels; levels are below that.
	Priorities() int
	// External returns a stream for a handle of the vendor's. Closing it leaves
	// the vendor's stream alone. It fails with InvalidHandle for a handle that
	// the library does not know, and with WrongDevice for one of another device.
	External(handle uint64) (Stream, error)
	// PerThread returns the calling thread's default stream of the library. Other
	// threads may wait for its work but not give it any. Closing it leaves the
	// library's alone.
	PerThread(o StreamOptions) (Stream, error)
	// Stage returns the address of size bytes that the host writes to, and that
	// the device can read late: copies from pageable memory go through them.
	// Copy.Release gives them back.
	Stage(size uint64) (uint64, error)
	// Unstage gives them back when no copy was enqueued.
	Unstage(addr uint64)
	// A device of a vendor's library that was lost stays so for the rest of the process.
	LosableDevice
	FactDevice
	KernelDevice
}

// FactDevice is implemented by devices that know more about themselves.
type FactDevice interface {
	// Fact returns a fact about the device as text: "uuid", "pci", "major",
	// "minor", "processors", "warp", "clock_khz", "driver", "unified", "pools",
	// "memops", or "attribute:N" by the vendor's number. It fails with NotSupported for those that
	// the device does not have.
	Fact(name string) (string, error)
}

// VendorStream is implemented by streams of a vendor's library.
type VendorStream interface {
	// Handle is the number by which the library knows the stream.
	Handle() uint64
	// Made returns how the stream was made; ID is 0 for one of External.
	Made() StreamOptions
	// Keep makes Stream.Reached exact for the operation enqueued last, instead of
	// true only when later ones are done, too.
	Keep()
	// Launch enqueues a launch of a function.
	Launch(l Launch) error
}

// CapturedStream is implemented by streams that another library can capture.
type CapturedStream interface {
	// Captured reports whether another library captures the stream.
	Captured() bool
}

// RefusedPoint is implemented by points for which a program cannot wait.
type RefusedPoint interface {
	Point
	// Refused says why.
	Refused() *Error
}

// VendorEvent is implemented by events of a vendor's library.
type VendorEvent interface {
	// Handle returns the number by which the library knows the event. It does not change
	// afterwards, and in the library it stands for the latest record. A record that another
	// library makes with it counts as the latest one here, too.
	Handle() (uint64, error)
}
