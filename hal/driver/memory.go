package driver

// Where says what kind of memory a range lies in.
type Where uint8

// The kinds of memory.
const (
	// Pageable memory is the program's own.
	Pageable Where = iota
	// Pinned memory is the host's; devices read and write it when a stream gets there.
	Pinned
	// OnDevice memory is a device's.
	OnDevice
)

// Copy describes a copy of Height rows of Width bytes; one row when Height is 1.
type Copy struct {
	Dst, Src           uint64
	DstPitch, SrcPitch uint64
	Width, Height      uint64
	// To and From say where the two ranges lie. DstDevice and SrcDevice are the
	// ordinals of their devices, -1 for the host.
	To, From             Where
	DstDevice, SrcDevice int
	// Release, if not 0, is what the source was staged in, to be given back once
	// the copy is done: memory of VendorDevice.Stage, or of C's malloc where the
	// device is no VendorDevice. From is Pinned or Pageable then.
	Release uint64
	// Waited says that the caller waits for the copy: an abort that drops it
	// leaves an Aborted error on the stream.
	Waited bool
	// Before, if not nil, is called right before the copy reads, with no lock held.
	Before func()
	// Tag is the operation's number.
	Tag Tag
}

// Fill describes Count elements of Size bytes (1, 2 or 4), each set to Value.
type Fill struct {
	Dst, Count uint64
	Value      uint32
	Size       uint8
	// On is Pinned or OnDevice.
	On  Where
	Tag Tag
}

// Native describes a call of the C function at Fn with Arg, without Python's lock; or,
// where Call is not nil, that call.
type Native struct {
	Fn, Arg uint64
	Call    NativeCall
	// Before and After, if not nil, are called right before and after it, on its
	// thread, with no lock held.
	Before, After func()
	Tag           Tag
	// ShowsThread says that Busy has the number of the thread that runs Call. It always has that of Fn's.
	ShowsThread bool
}

// NativeCall is a function that can fail. Exactly one of Run and Drop is called, once,
// unless Stream.Native returns an error: then neither is.
type NativeCall interface {
	// Run runs it on the calling thread and returns its error, which the backend makes
	// the stream's. An error of kind DeviceLost is returned by devices that are a
	// LosableDevice only: it makes the device of the stream lost.
	Run() *Error
	// Drop says that it will not run. It may be called with locks held.
	Drop()
	// Title names it in texts.
	Title() string
}
