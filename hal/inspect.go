package hal

import (
	"bytes"
	"hash/crc32"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/pages"
	"halstream/hal/park"
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
	// Observed is called when function id changed bytes that were declared as only
	// read. It needs a schedule that runs one operation at a time.
	Observed func(id uint32, changed []Range)
}

// SetInspector sets the inspector, nil for none. It is used only while there are
// listeners. Operations that were enqueued before keep the previous inspector.
func (rt *Runtime) SetInspector(i *Inspector) { rt.inspector.Store(i) }

// watchSource returns what a copy from pinned memory calls right before it reads,
// and what is called after the listeners were notified of the copy; both are nil
// without an inspector for such copies.
func (rt *Runtime) watchSource(id uint32, c CopySpec, span uint64) (before, afterNotify func()) {
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
		if c.sum() != sum {
			rt.callInOrder(func() { i.Refilled(id, source) })
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
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&r.Start)), r.Size)
}

// watch finds which bytes a function changes that were declared as only read.
type watch struct {
	rt     *Runtime
	id     uint32
	reads  []Range
	report func(uint32, []Range)
	before []snapshot
	ids    uint32 // the number of operations when the function began
}

// newWatch returns the watch of a function with these declared reads. It returns nil
// without an inspector for functions, and under a schedule where other work may
// change the same bytes at the same time.
func (rt *Runtime) newWatch(id uint32, reads []Range) *watch {
	i := rt.inspector.Load()
	if i == nil || i.Observed == nil || len(reads) == 0 {
		return nil
	}
	if !rt.Deterministic() {
		return nil
	}
	return &watch{rt: rt, id: id, reads: reads, report: i.Observed}
}

// begin is called right before the function runs.
func (w *watch) begin() {
	w.ids = w.rt.listeners.ids.Load()
	for _, r := range w.reads {
		if r.Size > 0 && pages.Readable(r.Start, r.Size) {
			w.before = append(w.before, takeSnapshot(r))
		}
	}
}

// end is called when the function has run. It reports changes only if the host made
// no call meanwhile, since a change could be the host's otherwise.
func (w *watch) end() {
	if w.rt.listeners.ids.Load() != w.ids {
		return
	}
	var changed []Range
	for _, p := range w.before {
		if pages.Readable(p.r.Start, p.r.Size) {
			changed = append(changed, p.changed()...)
		}
	}
	if len(changed) > 0 {
		w.rt.callInOrder(func() { w.report(w.id, changed) })
	}
}

const (
	// maxCopied is the size up to which a snapshot keeps the contents themselves.
	maxCopied = 64 << 10
	// maxPieces is the greatest number of checksums kept of a larger range.
	maxPieces = 4 << 10
	// maxGap is the number of unchanged bytes between changed ones that still count
	// as changed: a number that is overwritten rarely changes in every byte.
	maxGap = 8
)

// snapshot keeps the contents of a range, or checksums of its pieces, to find later
// what changed in it.
type snapshot struct {
	r    Range
	copy []byte
	sums []uint32
	size uint64 // of a piece
}

// takeSnapshot returns a snapshot of a readable range.
func takeSnapshot(r Range) snapshot {
	if r.Size <= maxCopied {
		return snapshot{r: r, copy: bytes.Clone(contents(r)), size: 1}
	}
	p := snapshot{r: r, size: (r.Size/maxPieces + 63) &^ 63}
	for at := uint64(0); at < r.Size; at += p.size {
		p.sums = append(p.sums, p.sum(at))
	}
	return p
}

// sum returns the checksum of the piece that begins at an offset.
func (p *snapshot) sum(at uint64) uint32 {
	return addSum(0, Range{p.r.Start + at, min(p.size, p.r.Size-at)})
}

// changed returns the parts of the range whose contents differ from the snapshot.
func (p *snapshot) changed() []Range {
	var found []Range
	differs := func(i int) bool { return p.sum(uint64(i)*p.size) != p.sums[i] }
	n := len(p.sums)
	if p.copy != nil {
		now := contents(p.r)
		if bytes.Equal(now, p.copy) {
			return nil
		}
		n = len(now)
		differs = func(i int) bool { return now[i] != p.copy[i] }
	}
	for i := range n {
		if !differs(i) {
			continue
		}
		at := uint64(i) * p.size
		start, end := p.r.Start+at, p.r.Start+min(at+p.size, p.r.Size)
		if last := len(found) - 1; last >= 0 && start-(found[last].Start+found[last].Size) < maxGap {
			found[last].Size = end - found[last].Start
		} else {
			found = append(found, Range{start, end - start})
		}
	}
	return found
}

// watchSink is the driver.Sink of a watched function.
type watchSink struct {
	s *Stream
	w *watch
}

// Ready implements driver.Sink.
func (x watchSink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return x.s.dev.rt.Funcs.push(level, readyFunc{token: token, stream: x.s, c: c, watch: x.w})
}

// Drop implements driver.Sink.
func (x watchSink) Drop(token uint64) *park.Parker { return x.s.Drop(token) }
