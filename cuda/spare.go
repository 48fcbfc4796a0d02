package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"os"
	"slices"
	"sync"
)

// spareStreams are streams of the driver that no stream of the program uses at present.
// The driver may wait for the device when it makes a stream or destroys one, and deals
// its hardware queues out to the streams that it makes: as long as streams are used
// again, as few queues are shared as possible.
type spareStreams struct {
	mu   sync.Mutex
	made uint64
	list []spareStream // by the order in which the driver made them
}

// spareStream is a stream of the driver. It can be used again when end is reached, the
// point behind the work that its last user has enqueued.
type spareStream struct {
	h    C.CUstream
	nth  uint64 // of the streams that the driver has made
	kind streamKind
	end  *point
}

// streamKind is what cannot be changed of a stream of the driver.
type streamKind struct {
	ordered bool
	level   uint8
}

// maxSpareStreams bounds how many streams a device keeps, of all kinds together.
const maxSpareStreams = 64

// earlyMarks is how many events of the driver a device makes at its start.
const earlyMarks = 64

// spareWait is for how many nanoseconds a new stream waits for one that was just closed:
// it may be about to reach its end.
const spareWait = 100_000

// connections says how many hardware queues the driver has, which does not tell.
func connections() string {
	if text := os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS"); text != "" {
		return text + " of them (CUDA_DEVICE_MAX_CONNECTIONS)"
	}
	return "8 of them"
}

// take removes and returns the stream of a kind that the driver has made first, and that
// has no work.
func (p *spareStreams) take(kind streamKind) (found spareStream, ok bool) {
	p.mu.Lock()
	candidates := slices.Clone(p.list)
	p.mu.Unlock()
	limit := int64(spareWait)
	for _, c := range candidates {
		if c.kind != kind {
			continue
		}
		// It may call the driver, for which the list must not be locked.
		if c.end != nil && !c.end.Wait(limit) {
			limit = 0
			continue
		}
		if p.remove(c.nth) {
			return c, true
		}
	}
	return spareStream{}, false
}

func (p *spareStreams) remove(nth uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.index(nth)
	if ok {
		p.list = slices.Delete(p.list, i, i+1)
	}
	return ok
}

func (p *spareStreams) index(nth uint64) (int, bool) {
	return slices.BinarySearchFunc(p.list, nth, func(s spareStream, nth uint64) int { return int(s.nth) - int(nth) })
}

// put keeps a stream, and reports false if there are enough.
func (p *spareStreams) put(s spareStream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxSpareStreams {
		return false
	}
	i, _ := p.index(s.nth)
	p.list = slices.Insert(p.list, i, s)
	return true
}

// has reports whether a handle is that of a stream that is kept.
func (p *spareStreams) has(h C.CUstream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.list, func(s spareStream) bool { return s.h == h })
}

// all removes and returns all streams.
func (p *spareStreams) all() []spareStream {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

// takeStream returns a stream of the driver without work.
func (d *Device) takeStream(kind streamKind, doing string) (spareStream, error) {
	if s, ok := d.spares.take(kind); ok {
		return s, nil
	}
	return d.makeStream(kind, doing)
}

func (d *Device) makeStream(kind streamKind, doing string) (spareStream, error) {
	flags := nonBlockingStream
	if kind.ordered {
		flags = 0
	}
	made := spareStream{kind: kind}
	priority := d.state().greatest + int(kind.level)
	if err := d.check(C.hs_stream_new(d.ctx(), C.uint32_t(flags), C.int(priority), &made.h), doing); err != nil {
		return spareStream{}, err
	}
	d.spares.mu.Lock()
	d.spares.made++
	made.nth = d.spares.made
	d.spares.mu.Unlock()
	return made, nil
}

// giveStream keeps a stream of the driver for later, or destroys it.
func (d *Device) giveStream(s spareStream) {
	if d.unusable() || d.spares.put(s) {
		return
	}
	_ = d.check(C.hs_stream_destroy(d.ctx(), s.h), "close stream")
}

// prepare makes what calls of the driver that may wait for the device would be needed
// for later. What fails here is made when it is needed.
func (d *Device) prepare(doing string) {
	if s, err := d.takeSlot(doing); err == nil {
		d.slots.give(s)
	}
	// One of each kind that programs mostly use: more would use up the hardware queues.
	for _, ordered := range []bool{true, false} {
		s, err := d.makeStream(streamKind{ordered, uint8(d.Priorities() - 1)}, doing)
		if err != nil {
			break
		}
		d.giveStream(s)
	}
	var early []*mark
	for range earlyMarks {
		m, err := d.newMark(eventDisableTiming, doing)
		if err != nil {
			break
		}
		early = append(early, m)
	}
	for _, m := range early {
		m.release()
	}
	d.drv.pinned.early(d.ctx())
}

// destroySpares destroys the streams that are kept, when the device is closed.
func (d *Device) destroySpares() {
	for _, s := range d.spares.all() {
		_ = d.check(C.hs_stream_destroy(d.ctx(), s.h), "close stream")
	}
}
