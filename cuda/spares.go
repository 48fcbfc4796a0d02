package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"halstream/hal/vendor"
)

// spareStreams are streams of the driver that no stream of the program uses at present.
// The driver may wait for the device when it makes a stream or destroys one, and deals
// its hardware queues out to the streams that it makes: as long as streams are used
// again, as few queues are shared as possible.
type spareStreams struct {
	vendor.Cache[spareStream] // by the order in which the driver made them

	mu    sync.Mutex
	made  uint64
	turns map[uint8]uint64 // of each level, how often the driver dealt out a queue
}

// spareStream is a stream of the driver. It can be used again when end is reached, the
// point behind the work that its last user has enqueued.
type spareStream struct {
	h     C.CUstream
	nth   uint64 // of the streams that the driver has made
	dealt uint64 // by which turn the driver has dealt out a hardware queue of its level
	kind  streamKind
	end   *vendor.Fence
}

// streamKind is what cannot be changed of a stream of the driver.
type streamKind struct {
	ordered bool
	level   uint8
}

// maxSpareStreams bounds how many streams a device keeps, of all kinds together, while the host holds none.
const maxSpareStreams = 128

// How many streams of each kind in use a device has ready beyond those that are open: of the ordinary level as
// many as torch makes for its pool. A GPU was seen to make the next stream only when no stream was held any more.
const (
	spareOfKind     = 8
	spareOfOrdinary = 32
)

// earlyFenceEvents is how many events of the driver a device makes at its start, by their flags.
var earlyFenceEvents = [eventFlavours]int{
	eventDisableTiming:                     256,
	eventDisableTiming | eventBlockingSync: 16,
	eventBlockingSync:                      16,
	0:                                      64,
}

// spareWait is for how many nanoseconds a new stream waits for one that was just closed:
// it may be about to reach its end.
const spareWait = 100_000

// connections says how many hardware queues the driver has, which does not tell.
func connections() string {
	text := fmt.Sprintf("%d of them", queueCount())
	if os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS") != "" {
		text += " (CUDA_DEVICE_MAX_CONNECTIONS)"
	}
	return text
}

// queueCount returns how many hardware queues the streams of a level share.
func queueCount() uint64 {
	const usual, most = 8, 32
	n, err := strconv.ParseUint(os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS"), 10, 64)
	if err != nil || n == 0 {
		return usual
	}
	return min(n, most)
}

// take removes and returns a stream of a kind that has no work, in the queue that is used least;
// of several the one that the driver has made first.
func (p *spareStreams) take(kind streamKind, loads []int) (found spareStream, ok bool) {
	candidates := slices.DeleteFunc(p.List(), func(s spareStream) bool { return s.kind != kind })
	slices.SortStableFunc(candidates, func(a, b spareStream) int { return cmp.Compare(a.load(loads), b.load(loads)) })
	limit := int64(spareWait)
	for _, c := range candidates {
		// It may call the driver, for which the list must not be locked.
		if c.end != nil && !c.end.Wait(limit) {
			limit = 0
			continue
		}
		if _, ok := p.TakeFirst(func(s spareStream) bool { return s.nth == c.nth }); ok {
			return c, true
		}
	}
	return spareStream{}, false
}

// put keeps a stream.
func (p *spareStreams) put(s spareStream) {
	p.PutInOrder(s, func(a, b spareStream) int { return cmp.Compare(a.nth, b.nth) })
}

// lacks reports whether fewer streams of a kind are kept than there should be, most.
func (p *spareStreams) lacks(kind streamKind, most int) bool {
	list := p.List()
	return len(list) < maxSpareStreams && len(slices.DeleteFunc(list, func(s spareStream) bool { return s.kind != kind })) < most
}

// has reports whether a handle is that of a stream that is kept.
func (p *spareStreams) has(h C.CUstream) bool {
	return slices.ContainsFunc(p.List(), func(s spareStream) bool { return s.h == h })
}

// load returns how many streams are open in the queue of s.
func (s spareStream) load(loads []int) int { return loads[s.dealt%uint64(len(loads))] }

// number counts a stream that the driver has made. The queue of the ordinary level that was
// dealt out first is the legacy default stream's.
func (p *spareStreams) number(made *spareStream, ordinary uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns == nil {
		p.turns = map[uint8]uint64{ordinary: 1}
	}
	p.made++
	made.nth = p.made
	made.dealt = p.turns[made.kind.level]
	p.turns[made.kind.level]++
}
