package hal

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"

	"halstream/hal/touch"
)

// WatchesPages reports whether accesses to memory that is allocated from now on are
// seen by their pages, whoever makes them; see package touch.
//
// Contract: V23.
func (rt *Runtime) WatchesPages() bool { return touch.Active() && rt.sim != nil }

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

// countUnseen counts a block that is about to be added to the map, and those that it shares
// pages with. The caller holds the memory's lock.
func (rt *Runtime) countUnseen(b *Block) {
	if !isWatched(b.Start) {
		unseen.unwatched.Add(1)
		return
	}
	end := b.Start + b.Size
	for _, beside := range []Range{
		{b.Start &^ (touch.Page - 1), b.Start & (touch.Page - 1)},
		{end, touch.RoundUp(end) - end},
	} {
		if beside.Size == 0 {
			continue
		}
		if other := rt.memory.blocks.Overlapping(beside.Start, beside.Size); other != nil {
			for _, one := range []*Block{b, other} {
				if !one.sharesPage {
					one.sharesPage = true
					unseen.sharing.Add(1)
				}
			}
		}
	}
}

// isWatched reports whether accesses to the byte at an address can be seen by its page.
func isWatched(addr uint64) bool { return touch.Alias(addr) != addr }

// watched reports whether what the function writes to r is seen by its pages.
func (w *watch) watched(r Range) bool { return w.pages && isWatched(r.Start) }

// endPages reports what the function read without declaring it, and returns what it wrote.
// With compare nothing else can have changed the memory.
func (w *watch) endPages(compare bool) (writes []Range) {
	read, written, beside := touch.End(w.id, compare)
	declared := slices.Concat(w.reads, w.writes)
	reads, writes := w.rt.known(read), w.rt.known(written)
	touched := len(reads)+len(writes)+len(declared) > 0
	reads = without(reads, declared)
	w.rt.callInOrder(func() {
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

// known returns the parts of ranges that lie in blocks, by address.
func (rt *Runtime) known(ranges []touch.Range) (found []Range) {
	if len(ranges) == 0 {
		return nil
	}
	slices.SortFunc(ranges, func(a, b touch.Range) int { return cmp.Compare(a.Start, b.Start) })
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for _, r := range ranges {
		b := rt.memory.blocks.Find(r.Start)
		if b == nil {
			continue // it was freed
		}
		size := min(r.Size, b.Start+b.Size-r.Start)
		if n := len(found); n > 0 && found[n-1].Start+found[n-1].Size >= r.Start {
			last := &found[n-1] // the first byte of a write is among those that changed
			last.Size = max(last.Size, r.Start+size-last.Start)
			continue
		}
		found = append(found, Range{r.Start, size})
	}
	return found
}

// seenByPage is the name of what a thread touched before the call that noticed it.
const seenByPage = "seen by its page, before this call"

// ReportTouched notifies the listeners of what the calling thread, which t stands for,
// has read and written itself since it called last.
//
// Contract: V24.
func (rt *Runtime) ReportTouched(t *Thread) {
	if !rt.WatchesPages() || t == nil || !t.Bound || t.running.stream != nil {
		return
	}
	read, written := touch.TakeHost()
	for _, accesses := range []struct {
		kind OperationKind
		what []Range
	}{{OpHostRead, rt.known(read)}, {OpHostWrite, rt.known(written)}} {
		if len(accesses.what) == 0 {
			continue
		}
		o := Operation{Kind: accesses.kind, Name: seenByPage, Thread: t, Host: true, Reads: accesses.what}
		if o.Kind == OpHostWrite {
			o.Reads, o.Writes = nil, accesses.what
		}
		rt.notify(o)
	}
}
