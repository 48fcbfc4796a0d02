package hal

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

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
	moves   int     // what had happened under the schedule by then
	overlap bool    // another function was running
	blocks  bool    // compare all memory of the devices
	pages   bool    // see what the function touches by its pages
	reads   []Range // declared
	// declares says that the function declares all that it accesses: what it touches is no access,
	// and no other function's either.
	declares bool
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
	w.ids, w.moves = w.rt.listeners.ids.Load(), w.rt.Run().Moves
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
	alone := w.rt.Deterministic() && !w.overlap && w.rt.listeners.ids.Load() == w.ids && w.rt.Run().Moves == w.moves
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
	w.rt.AfterNotified(func() {
		if len(changed) > 0 {
			w.report.Observed(w.id, changed)
		}
		if alone && w.blocks && w.report.Compared != nil {
			w.report.Compared(w.id, w.all)
		}
	})
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

// WatchPages switches on or off that accesses to the memory of host devices, and to
// pinned memory, are seen by their pages: for memory that is allocated meanwhile.
//
// # Errors
//   - NotSupported: the system cannot, or does not permit it.
//
// Contract: V23, V25.
func WatchPages(on bool) error {
	if on {
		return touch.Start()
	}
	touch.Stop()
	return nil
}

// TellTouches sets the function in C that is called when an access of the process's first thread outside
// of operations was seen by its page, before the access goes on; nil for none. It runs on a thread of
// its own, must not wait for the other one, and may have that one call [Runtime.ReportTouchedHere] soon.
func TellTouches(f unsafe.Pointer) { touch.Tell(f) }

// UnknownTouches returns how many accesses were seen of which it is not known who made
// them: those of threads that have not called the runtime since, and those beyond what is
// kept.
func UnknownTouches() int { return int(touch.Lost()) }

// unseen counts blocks that were given out while pages were watched: those that share a
// page with another one, and those whose pages are not watched.
var unseen struct{ sharing, unwatched atomic.Int64 }

// UnseenBlocks returns how many blocks were given out while pages were watched that share a
// page with another block, where an access to one hides a later one to the other; and how many
// lie in memory that was allocated before, of which no access is seen.
//
// Contract: V23.
func UnseenBlocks() (sharing, unwatched int) {
	return int(unseen.sharing.Load()), int(unseen.unwatched.Load())
}

// isWatched reports whether accesses to the byte at an address can be seen by its page.
func isWatched(addr uint64) bool { return touch.Alias(addr) != addr }

// watched reports whether what the function writes to r is seen by its pages.
func (w *watch) watched(r Range) bool { return w.pages && !w.declares && isWatched(r.Start) }

// endPages reports what the function read without declaring it, and returns what it wrote.
// With compare nothing else can have changed the memory.
func (w *watch) endPages(compare bool) (writes []Range) {
	read, written, beside := touch.End(w.id, compare && !w.declares)
	if w.declares {
		return nil
	}
	declared := slices.Concat(w.reads, w.writes)
	reads, writes := w.rt.known(read), w.rt.known(written)
	touched := len(reads)+len(writes)+len(declared) > 0
	reads = without(reads, declared)
	w.rt.AfterNotified(func() {
		if len(reads) > 0 && w.report.Read != nil {
			w.report.Read(w.id, reads)
		}
		if w.report.Paged != nil {
			w.report.Paged(w.id, touched, beside)
		}
	})
	return writes
}

// onThread returns begin and end for a caller whose calls of both, and of the function
// between them, are to be on one thread.
func (w *watch) onThread() (begin, end func()) {
	return func() { runtime.LockOSThread(); w.begin() }, func() { w.end(); runtime.UnlockOSThread() }
}

// Names of what a thread touched before the call that noticed it, and in the line that it was in
// shortly after that or before.
const (
	seenByPage = "seen by its page, before this call"
	seenInLine = "seen by its page, in this line or before it"
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
	// HandedIn is called when operation id, which was announced with HandsIn, has run: with what it
	// has accessed. One that was dropped has accessed nothing.
	HandedIn func(id uint32, reads, writes []Range)
	// KernelRan is called before HandedIn with what a run of kernel id tells besides that.
	KernelRan func(id uint32, r KernelReport)
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

// sources are the copies from pinned memory that have run and that no host thread may
// have waited for yet: their sources are compared again when the host begins a wait,
// since to change one before that is wrong however early the copy ran.
type sources struct {
	mu    sync.Mutex // held while memory is compared, so that none is returned meanwhile
	list  []*copySource
	piece [8 << 10]byte // of registered memory, of a size that is read without a fault
}

type copySource struct {
	id  uint32
	c   CopySpec
	r   Range
	sum uint32
	in  *Inspector
	// registered: the memory is the program's, which may return it to the system without a call.
	registered bool
}

// sumNow returns the sum of what a source has now; false if it is not there any more. The lock is held.
func (l *sources) sumNow(s *copySource) (sum uint32, there bool) {
	if !s.registered {
		return s.c.sum(), true
	}
	at := uint64(uintptr(unsafe.Pointer(&l.piece))) // of the runtime, which does not move
	for row := range s.c.Height {
		for done := uint64(0); done < s.c.Width; {
			n := min(s.c.Width-done, uint64(len(l.piece)))
			if !pages.Read(at, touch.Alias(s.c.Src+row*s.c.SrcPitch+done), n) {
				return 0, false
			}
			sum = crc32.Update(sum, castagnoli, l.piece[:n])
			done += n
		}
	}
	return sum, true
}

// size returns how many bytes are compared.
func (s *copySource) size() uint64 { return s.c.Width * s.c.Height }

const (
	// maxSources is how many copies are compared at the begin of a wait.
	maxSources = 64
	// maxSourceBytes bounds the bytes of all of them, and of each.
	maxSourceBytes = 64 << 20
)

// add keeps the source of a copy that has just run.
func (l *sources) add(s *copySource) {
	if s.in.InUse == nil || s.size() > maxSourceBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, s)
	first, bytes := len(l.list), uint64(0)
	for first > 0 && len(l.list)-first < maxSources && bytes+l.list[first-1].size() <= maxSourceBytes {
		first--
		bytes += l.list[first].size()
	}
	l.list = slices.Delete(l.list, 0, first)
}

// forget ends the comparisons of memory that is returned, of all with size 0.
func (l *sources) forget(r Range) {
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(s *copySource) bool {
		return r.Size == 0 || s.r.Start < r.Start+r.Size && r.Start < s.r.Start+s.r.Size
	})
	l.mu.Unlock()
}
