package hal

import (
	"bytes"
	"cmp"
	"slices"

	"halstream/hal/driver"
	"halstream/hal/pages"
	"halstream/hal/park"
	"halstream/hal/touch"
)

// watch finds which bytes a function changes that it did not declare as written.
type watch struct {
	rt      *Runtime
	id      uint32
	ranges  []Range // of memory that may be another one than a device's
	writes  []Range // declared
	report  *Inspector
	before  []snapshot
	all     bool
	ids     uint32  // the number of operations when the function began
	steps   int     // what had happened under the schedule by then
	overlap bool    // another function was running
	blocks  bool    // compare all memory of the devices
	pages   bool    // see what the function touches by its pages
	reads   []Range // declared
}

// newWatch returns the watch of a function with these declared writes: of ranges that
// it declares as read, or that it can reach. It returns nil without an inspector for
// functions, and under a schedule where other work may change the same bytes at the
// same time.
func (rt *Runtime) newWatch(id uint32, writes []Range, ranges ...[]Range) *watch {
	i := rt.inspector.Load()
	if i == nil || i.Observed == nil || !rt.Deterministic() && !rt.WatchesPages() {
		return nil
	}
	return &watch{rt: rt, id: id, ranges: slices.Concat(ranges...), writes: writes, report: i}
}

// newWideWatch is newWatch for a function that may change what it does not declare: it
// watches all memory of the devices, too, and what is watched by its pages.
func (rt *Runtime) newWideWatch(id uint32, a Accesses) *watch {
	w := rt.newWatch(id, a.Writes, a.Reads, a.Reached)
	if w != nil {
		w.blocks, w.pages, w.reads = rt.Deterministic(), rt.WatchesPages(), a.Reads
	}
	return w
}

// begin is called right before the function runs.
func (w *watch) begin() {
	if w.pages {
		touch.Begin(w.id) // it waits for other functions
	}
	w.overlap = w.rt.watching.Add(1) > 1
	if !w.rt.Deterministic() {
		return
	}
	w.ids, w.steps = w.rt.listeners.ids.Load(), len(w.rt.Run().Steps)
	room := uint64(maxCompared)
	var blocks []Range
	if w.blocks {
		blocks, w.all = w.rt.comparableBlocks(room)
	}
	for _, b := range blocks {
		w.before = append(w.before, takeSnapshot(b, &room))
	}
	for _, r := range w.ranges {
		inBlock := func(b Range) bool { return r.Start >= b.Start && r.Start-b.Start+r.Size <= b.Size }
		if r.Size > 0 && !slices.ContainsFunc(blocks, inBlock) && !w.watched(r) && pages.Readable(r.Start, r.Size) {
			w.before = append(w.before, takeSnapshot(r, &room))
		}
	}
}

// end is called when the function has run. It reports changes only if nothing else
// happened meanwhile, since a change could be another one's otherwise.
func (w *watch) end() {
	w.rt.watching.Add(-1)
	before := w.before
	w.before = nil
	alone := w.rt.Deterministic() && !w.overlap && w.rt.listeners.ids.Load() == w.ids && len(w.rt.Run().Steps) == w.steps
	var touched []Range
	if w.pages {
		touched = w.endPages(alone)
	}
	if !alone {
		before = nil
	}
	var changed []Range
	for _, p := range before {
		if pages.Readable(p.r.Start, p.r.Size) {
			changed = append(changed, p.changed()...)
		}
	}
	changed = append(changed, touched...)
	changed = without(changed, w.writes)
	w.rt.callInOrder(func() {
		if len(changed) > 0 {
			w.report.Observed(w.id, changed)
		}
		if alone && w.blocks && w.report.Compared != nil {
			w.report.Compared(w.id, w.all)
		}
	})
}

// comparableBlocks returns the blocks of device memory, the smallest ones first, as
// far as they are at most room bytes together, and whether these are all.
func (rt *Runtime) comparableBlocks(room uint64) (blocks []Range, all bool) {
	rt.memory.mu.Lock()
	for b := range rt.memory.blocks.All() {
		if b.Kind == DeviceMemory && !b.foreign && b.module == nil && !isWatched(b.Start) {
			blocks = append(blocks, Range{b.Start, b.Size})
		}
	}
	rt.memory.mu.Unlock()
	slices.SortFunc(blocks, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Start, b.Start))
	})
	for i, b := range blocks {
		if b.Size > room {
			return blocks[:i], false
		}
		room -= b.Size
	}
	return blocks, true
}

const (
	// maxCompared bounds the bytes that are copied before each function.
	maxCompared = 8 << 20
	// maxPieces is the greatest number of checksums kept of a range that is not copied.
	maxPieces = 4 << 10
	// maxChanges is how many ranges are exact. Of more, those with fewer than maxGap
	// bytes between them count as one.
	maxChanges = 4 << 10
	maxGap     = 8
	// compareStep is how many bytes are compared at once.
	compareStep = 256
)

// snapshot keeps the contents of a range, or checksums of its pieces, to find later
// what changed in it.
type snapshot struct {
	r    Range
	copy []byte
	sums []uint32
	size uint64 // of a piece
}

// takeSnapshot returns a snapshot of a readable range: a copy if there is room, which
// is reduced then.
func takeSnapshot(r Range, room *uint64) snapshot {
	if r.Size <= *room {
		*room -= r.Size
		return snapshot{r: r, copy: bytes.Clone(contents(r))}
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
	if p.copy == nil {
		for i, sum := range p.sums {
			if at := uint64(i) * p.size; p.sum(at) != sum {
				found = appendRange(found, Range{p.r.Start + at, min(p.size, p.r.Size-at)}, 0)
			}
		}
		return found
	}
	now := contents(p.r)
	for at := 0; at < len(now); at += compareStep {
		end := min(at+compareStep, len(now))
		if bytes.Equal(now[at:end], p.copy[at:end]) {
			continue
		}
		for i := at; i < end; i++ {
			if now[i] != p.copy[i] {
				found = appendRange(found, Range{p.r.Start + uint64(i), 1}, 0)
			}
		}
	}
	if len(found) <= maxChanges {
		return found
	}
	merged := found[:0]
	for _, r := range found {
		merged = appendRange(merged, r, maxGap-1)
	}
	return merged
}

// appendRange appends a range behind those in list, or extends the last one if at most
// gap bytes lie between them.
func appendRange(list []Range, r Range, gap uint64) []Range {
	if n := len(list); n > 0 {
		if last := &list[n-1]; r.Start-(last.Start+last.Size) <= gap {
			last.Size = r.Start + r.Size - last.Start
			return list
		}
	}
	return append(list, r)
}

// without returns what of ranges, which do not overlap, lies in none of others.
func without(ranges, others []Range) []Range {
	if len(ranges) == 0 || len(others) == 0 {
		return ranges
	}
	byStart := func(a, b Range) int { return cmp.Compare(a.Start, b.Start) }
	others = slices.SortedFunc(slices.Values(others), byStart)
	slices.SortFunc(ranges, byStart)
	var left []Range
	first := 0 // of the others that may end behind the start of the range
	for _, r := range ranges {
		for first < len(others) && others[first].Start+others[first].Size <= r.Start {
			first++
		}
		end := r.Start + r.Size
		for _, o := range others[first:] {
			if o.Start >= end {
				break
			}
			if o.Start > r.Start {
				left = append(left, Range{r.Start, o.Start - r.Start})
			}
			r.Start = max(r.Start, min(o.Start+o.Size, end))
		}
		if r.Start < end {
			left = append(left, Range{r.Start, end - r.Start})
		}
	}
	return left
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
