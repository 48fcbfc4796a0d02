package driver

// Memory is implemented by devices that have memory of their own. Addresses
// are numbers: what they point to may not be reachable from the host.
type Memory interface {
	// Alloc returns the address of size bytes, aligned to 256. It fails with
	// OutOfMemory.
	Alloc(size uint64) (uint64, error)
	// Free gives a block back. Nothing uses it any more.
	Free(addr uint64)
	// Info returns the free and the total bytes.
	Info() (free, total uint64, err error)
	// Owns reports whether an address lies where the device's memory lies, in
	// use or not. It may be called under locks, so it never calls a vendor's library.
	Owns(addr uint64) bool
}

// Pinner is implemented by drivers that have host memory devices can read late.
type Pinner interface {
	// AllocHost returns the address of size bytes of pinned memory.
	AllocHost(size uint64) (uint64, error)
	// FreeHost gives pinned memory back.
	FreeHost(addr uint64)
	// OwnsHost reports whether an address lies where pinned memory lies, under the
	// same rule as Memory.Owns.
	OwnsHost(addr uint64) bool
	// Register makes memory of the program pinned; Unregister undoes it.
	Register(addr, size uint64) error
	Unregister(addr uint64) error
}

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
	// the copy is done: memory of Stager.Stage, or of C's malloc where the device
	// has no Stager. From is Pinned or Pageable then.
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

// Native describes a call of the C function at Fn with Arg, without Python's lock.
type Native struct {
	Fn, Arg uint64
	// Before and After, if not nil, are called right before and after it, on its
	// thread, with no lock held.
	Before, After func()
	Tag           Tag
}

// Worker is implemented by streams that can copy, fill, and call native
// functions. Every range has been checked.
type Worker interface {
	// Copy enqueues a copy. Where c.Waited is set the caller waits for the
	// returned point, or for the stream's if it is nil, before it returns.
	Copy(c Copy) (Point, error)
	Fill(f Fill) error
	Native(n Native) error
	// Last returns the place of the operation enqueued last.
	Last() uint64
	// Mark returns the place at which all work before this call is done, that
	// of other streams included which later work of this one would wait for.
	Mark() uint64
	// Reached reports whether the operation at a place is done, as far as is
	// known: it may be called under locks, so it never calls a vendor's library.
	Reached(place uint64) bool
	// At returns the point at which the operation at a place is done.
	At(place uint64) Point
}
