package hal

import (
	"hash/crc32"
	"unsafe"

	"halstream/hal/touch"
)

// Inspector is notified of contents of memory that changed where a program may not
// expect it. Its functions are called like listeners, after these were notified of
// the operation. A function that is nil costs nothing.
type Inspector struct {
	// Source is called when copy id, which reads the pinned memory r, was enqueued.
	// Refilled reports whether r changes before the copy runs.
	Source func(id uint32, r Range)
	// Refilled is called when copy id ran and the pinned memory r that it reads did
	// not have the contents any more that it had when the copy was enqueued.
	Refilled func(id uint32, r Range)
	// InUse says whether no host thread is ordered behind copy id, and whether it is of
	// interest if the pinned memory that it read changes; nil for no such comparisons.
	InUse func(id uint32) bool
	// Overwritten is called, when a host thread begins to wait, for a copy that is in use
	// and whose source r has other contents than when the copy ran.
	Overwritten func(id uint32, r Range)
	// Observed is called when function id changed bytes that it did not declare as
	// written. It needs a schedule that runs one operation at a time.
	Observed func(id uint32, changed []Range)
	// Read is called when function id read bytes that it did not declare. It needs memory
	// that is watched by its pages: see WatchesPages.
	Read func(id uint32, ranges []Range)
	// Paged is called after each function of which Read and Observed learn by the pages;
	// touched says whether it touched or declared any memory that the runtime knows.
	// beside says that another function ran at the same time.
	Paged func(id uint32, touched, beside bool)
	// Compared is called after each function for which Observed would have been called
	// if it had changed something; all says that no device memory was left out.
	Compared func(id uint32, all bool)
}

// SetInspector sets the inspector, nil for none. It is used only while there are
// listeners. Operations that were enqueued before keep the previous inspector.
func (rt *Runtime) SetInspector(i *Inspector) {
	if i == nil {
		rt.CompareSources() // nobody waits for these copies any more while it listens
		rt.sources.forget(Range{})
	}
	rt.inspector.Store(i)
}

// watchSource returns what a copy from pinned memory calls right before it reads,
// and what is called after the listeners were notified of the copy; both are nil
// without an inspector for such copies. own says that the runtime allocated the memory,
// so that it is there until it is returned.
func (rt *Runtime) watchSource(id uint32, c CopySpec, span uint64, own bool) (before, afterNotify func()) {
	i := rt.inspector.Load()
	if i == nil || i.Refilled == nil {
		return nil, nil
	}
	source := Range{c.Src, span}
	if i.Source != nil {
		afterNotify = func() { i.Source(id, source) }
	}
	sum := c.sum()
	return func() {
		switch {
		case c.sum() != sum:
			rt.callInOrder(func() { i.Refilled(id, source) })
		case own:
			rt.sources.add(&copySource{id: id, c: c, r: source, sum: sum, in: i})
		}
	}, afterNotify
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxSummed bounds the bytes that one call of crc32.Update sums: the call cannot be
// preempted, so Go's garbage collector waits for its end.
const maxSummed = 256 << 10

// sum returns a checksum of the rows that the copy reads.
func (c CopySpec) sum() (sum uint32) {
	for row := range c.Height {
		sum = addSum(sum, Range{c.Src + row*c.SrcPitch, c.Width})
	}
	return sum
}

// addSum returns sum continued over the bytes of a range.
func addSum(sum uint32, r Range) uint32 {
	for b := contents(r); len(b) > 0; {
		n := min(len(b), maxSummed)
		sum = crc32.Update(sum, castagnoli, b[:n])
		b = b[n:]
	}
	return sum
}

// contents returns the memory of a range, which the host can read.
func contents(r Range) []byte {
	addr := touch.Alias(r.Start)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), r.Size)
}
