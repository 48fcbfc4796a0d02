package driver

// The interfaces of this file are for backends that stand on a vendor's library.

// Ranged is implemented by devices that tell fewer than Levels priorities apart.
type Ranged interface {
	// Priorities returns how many there are, from 1; levels are below that.
	Priorities() int
}

// Handled is implemented by streams that the vendor's library knows by a number.
type Handled interface {
	Handle() uint64
}

// Foreign is implemented by devices on which streams of other libraries of the
// process can be used.
type Foreign interface {
	// External returns a stream for a handle of the vendor's. Closing it leaves
	// the vendor's stream alone. It fails with InvalidHandle for a handle that
	// the library does not know, and with WrongDevice for one of another device.
	External(handle uint64) (Stream, error)
}

// PerThreader is implemented by devices whose library keeps a default stream for
// each of the system's threads.
type PerThreader interface {
	// PerThread returns the calling thread's. Other threads may wait for its work
	// but not give it any. Closing it leaves the library's alone.
	PerThread(o StreamOptions) (Stream, error)
}

// Prober is implemented by drivers that can say what memory of other libraries is.
type Prober interface {
	// Probe returns the allocation that holds an address, and the ordinal of its
	// device (-1: the host's). known is false for memory the library does not know.
	Probe(addr uint64) (where Where, start, size uint64, ordinal int, known bool)
}

// Stager is implemented by devices that can only read memory of their own kind
// late. Copies from pageable memory go through it.
type Stager interface {
	// Stage returns the address of size bytes that the host writes to. Copy.Release
	// gives them back.
	Stage(size uint64) (uint64, error)
	// Unstage gives them back when no copy was enqueued.
	Unstage(addr uint64)
}

// Keeper is implemented by streams that tell exactly when an operation is done
// only where they were asked to.
type Keeper interface {
	// Keep makes Reached exact for the operation enqueued last, instead of true
	// only when later ones are done, too.
	Keep()
}

// Refresher is implemented by drivers that must ask their library how far its
// streams are. Worker.Reached answers from what the last Refresh found.
type Refresher interface {
	// Refresh asks for all streams whose places somebody looked at in vain. No
	// lock of the caller's may be held.
	Refresh()
}

// Losable is implemented by devices that an error can make useless for the rest
// of the process.
type Losable interface {
	// Lost returns the error that did, nil while the device can be used. It never
	// calls the vendor's library. Points of a lost device are reached.
	Lost() *Error
}

// Made is implemented by streams of Foreign that can tell how they were made.
type Made interface {
	// Made returns it; ID is 0.
	Made() StreamOptions
}

// Informant is implemented by devices that can tell facts about themselves.
type Informant interface {
	// Fact returns one as text: "uuid", "pci", "major", "minor", "processors",
	// "warp", "clock_khz", "driver", "unified", "pools", "memops", or
	// "attribute:N" by the vendor's number. It fails with NotSupported.
	Fact(name string) (string, error)
}

// Peers is implemented by drivers whose devices may reach each other's memory.
type Peers interface {
	// CanAccess reports whether device from can use memory of device to.
	CanAccess(from, to int) (bool, error)
	// Enable makes it so; again does nothing.
	Enable(from, to int) error
}

// Loader is implemented by devices that run programs of the vendor's.
type Loader interface {
	// Load makes a module of an image: text that ends with NUL, or a binary. The
	// error of one with mistakes carries the compiler's words.
	Load(image []byte) (Module, error)
}

// Module is a loaded program.
type Module interface {
	// Function returns a function of the program by its name in it.
	Function(name string) (Function, error)
	// Close gives the module up; nothing of it is pending.
	Close()
}

// Function is a function that streams of its device can launch.
type Function interface {
	// Threads returns how many threads a block may have.
	Threads() int
}

// Cell is how many bytes each argument of a Launch takes.
const Cell = 16

// Launch describes a launch of a function.
type Launch struct {
	Function    Function
	Grid, Block [3]uint32
	// Shared is the bytes of dynamic shared memory.
	Shared uint32
	// Args are the arguments' values, each at the start of a Cell.
	Args []byte
	// Cooperative launches run all blocks at once or fail.
	Cooperative bool
	Tag         Tag
}

// Launcher is implemented by streams that launch functions.
type Launcher interface {
	Launch(l Launch) error
}
