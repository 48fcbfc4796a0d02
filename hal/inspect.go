package hal

import (
	"bytes"
	"hash/crc32"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/pages"
	"halstream/hal/park"
)

// Inspector is notified of what operations found in memory. Its functions are
// called as listeners are, after these were notified of the operation. One that
// is nil costs nothing.
type Inspector struct {
	// Source: copy id was enqueued, and whether the pinned memory r that it reads
	// changes until it runs is reported by Refilled.
	Source func(id uint32, r Range)
	// Refilled: when copy id ran, the pinned memory r that it reads had other
	// contents than when it was enqueued.
	Refilled func(id uint32, r Range)
	// Observed: function id changed these bytes, which it said it only reads.
	// Asked for only under a schedule that runs one operation at a time.
	Observed func(id uint32, changed []Range)
}

// SetInspector sets the inspector, nil for none. It is used only while there are
// listeners; operations enqueued before keep the one they had.
func (rt *Runtime) SetInspector(i *Inspector) { rt.inspector.Store(i) }

// watchSource returns what a copy from pinned memory calls before it reads, and what
// is to be called once the listeners know of the copy; both nil without an
// inspector that wants it.
func (rt *Runtime) watchSource(id uint32, c CopySpec, span uint64) (before, then func()) {
	i := rt.inspector.Load()
	if i == nil || i.Refilled == nil {
		return nil, nil
	}
	source := Range{c.Src, span}
	if i.Source != nil {
		then = func() { i.Source(id, source) }
	}
	sum := c.sum()
	return func() {
		if c.sum() != sum {
			rt.callInOrder(func() { i.Refilled(id, source) })
		}
	}, then
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxSummed bounds how much is summed in one go: the collector waits meanwhile.
const maxSummed = 256 << 10

// sum is a checksum of the rows that the copy reads.
func (c CopySpec) sum() (sum uint32) {
	for row := range c.Height {
		sum = addSum(sum, Range{c.Src + row*c.SrcPitch, c.Width})
	}
	return sum
}

func addSum(sum uint32, r Range) uint32 {
	for b := contents(r); len(b) > 0; {
		n := min(len(b), maxSummed)
		sum = crc32.Update(sum, castagnoli, b[:n])
		b = b[n:]
	}
	return sum
}

// contents is the memory of a range, which the host can read.
func contents(r Range) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&r.Start)), r.Size)
}

// watch finds out which of the bytes that a function said it reads it changes.
type watch struct {
	rt     *Runtime
	id     uint32
	reads  []Range
	report func(uint32, []Range)
	before []snapshot
	ids    uint32 // of operations, when the function began
}

// newWatch returns the watch for a function with these reads, nil without an
// inspector that wants it, and under a schedule where other work may change the
// same bytes meanwhile.
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

// end is called when it has run. What it changed counts only if the host did
// nothing meanwhile, which could have been the one who changed it.
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
	// copyMost is the size up to which a snapshot keeps the contents themselves.
	maxCopied = 64 << 10
	// pieces is how many checksums it keeps of anything larger.
	maxPieces = 4 << 10
	// gapMost is how many unchanged bytes between two changed ones count as
	// changed: numbers that are written seldom change in every byte.
	maxGap = 8
)

// snapshot is what is kept of a range to find out later what changed in it.
type snapshot struct {
	r    Range
	copy []byte
	sums []uint32
	size uint64 // of a piece
}

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

func (p *snapshot) sum(at uint64) uint32 {
	return addSum(0, Range{p.r.Start + at, min(p.size, p.r.Size-at)})
}

// changed returns the pieces whose contents are not what they were.
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

// watchSink is the sink of a function that is watched.
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
