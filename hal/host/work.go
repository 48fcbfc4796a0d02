package host

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "copy.h"

static void hs_copy(uint64_t dst, uint64_t src, uint64_t dpitch, uint64_t spitch, uint64_t width, uint64_t height,
                    int streaming) {
	if (height == 1 || (dpitch == width && spitch == width)) {
		hs_copy_bytes(dst, src, width * height, streaming);
		return;
	}
	for (uint64_t i = 0; i < height; i++) hs_copy_bytes(dst + i * dpitch, src + i * spitch, width, 0);
}

static void hs_fill(uint64_t dst, uint64_t count, uint32_t value, int size) {
	if (size == 1) {
		memset((void *)(uintptr_t)dst, (int)value, count);
	} else if (size == 2) {
		uint16_t *p = (uint16_t *)(uintptr_t)dst;
		for (uint64_t i = 0; i < count; i++) p[i] = (uint16_t)value;
	} else {
		uint32_t *p = (uint32_t *)(uintptr_t)dst;
		for (uint64_t i = 0; i < count; i++) p[i] = value;
	}
}

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
static int64_t hs_thread(void) {
	static _Thread_local int64_t number; // a thread of Go's does not survive a fork
	if (number == 0) number = syscall(SYS_gettid);
	return number;
}
#else
static int64_t hs_thread(void) { return 0; }
#endif

static void hs_native(uint64_t fn, uint64_t arg, int64_t *thread) {
	__atomic_store_n(thread, hs_thread(), __ATOMIC_RELEASE);
	((void (*)(void *))(uintptr_t)fn)((void *)(uintptr_t)arg);
	__atomic_store_n(thread, 0, __ATOMIC_RELEASE);
}

static void hs_free(uint64_t p) { free((void *)(uintptr_t)p); }
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/touch"
)

// inlineMost is the size up to which a copy or fill is run by whoever runs the
// stream, instead of by an engine: handing it over would take longer.
const inlineMost = 4 << 10

// work is what an engine does for one operation. It runs in C, since a long
// loop in Go cannot be interrupted by the collector.
type work interface {
	// run does it, and reports whether it is done now: of shared work each of
	// the threads that run it does a part, and true goes to the one that ends it.
	run() bool
	short() bool
}

type delayWork struct{ ns int64 }

func (w delayWork) run() bool   { delay(w.ns); return true }
func (w delayWork) short() bool { return false }

type copyWork struct {
	driver.Copy
	share share
}

func (w *copyWork) run() bool {
	if w.shared() {
		return w.runShared(driver.Forever)
	}
	w.copyAll()
	return true
}

// copyAll copies on the calling thread, whatever the size.
func (w *copyWork) copyAll() {
	if w.Before != nil {
		w.Before()
	}
	C.hs_copy(C.uint64_t(touch.Alias(w.Dst)), C.uint64_t(touch.Alias(w.Src)), C.uint64_t(w.DstPitch), C.uint64_t(w.SrcPitch),
		C.uint64_t(w.Width), C.uint64_t(w.Height), streaming(w.Width*w.Height))
	if w.Release != 0 {
		C.hs_free(C.uint64_t(w.Release))
	}
}

func (w *copyWork) short() bool { return w.Width*w.Height <= inlineMost }

type fillWork driver.Fill

func (w *fillWork) run() bool {
	C.hs_fill(C.uint64_t(touch.Alias(w.Dst)), C.uint64_t(w.Count), C.uint32_t(w.Value), C.int(w.Size))
	return true
}

func (w *fillWork) short() bool { return w.Count*uint64(w.Size) <= inlineMost }

type nativeWork struct {
	driver.Native
	stream *Stream
	// thread is the system's number of the thread that runs it; 0 while none does, and
	// where the system has no such number.
	thread atomic.Int64
}

func (w *nativeWork) run() bool {
	if w.Before != nil {
		w.Before()
	}
	if w.Call == nil {
		C.hs_native(C.uint64_t(w.Fn), C.uint64_t(w.Arg), (*C.int64_t)(unsafe.Pointer(&w.thread)))
	} else if err := w.Call.Run(); err != nil {
		w.stream.eng.Lock()
		w.stream.fail(err) // before the operation counts as done
		w.stream.eng.Unlock()
	}
	if w.After != nil {
		w.After()
	}
	return true
}

func (w *nativeWork) short() bool { return false }

// Copy implements driver.Stream.
func (s *Stream) Copy(c driver.Copy) (driver.Point, error) {
	return nil, s.eng.submit(s, &op{kind: opWork, tag: c.Tag, ref: &copyWork{Copy: c}})
}

// Fill implements driver.Stream.
func (s *Stream) Fill(f driver.Fill) error {
	w := fillWork(f)
	return s.eng.submit(s, &op{kind: opWork, tag: f.Tag, ref: &w})
}

// Native implements driver.Stream.
func (s *Stream) Native(n driver.Native) error {
	return s.eng.submit(s, &op{kind: opWork, tag: n.Tag, ref: &nativeWork{Native: n, stream: s}})
}

// Last implements driver.Stream.
func (s *Stream) Last() uint64 { return s.words.Submitted.Load() }

// Mark implements driver.Stream. Where the legacy order would hold later work up,
// an empty operation stands for it.
func (s *Stream) Mark(tag driver.Tag) uint64 {
	e := s.eng
	e.Lock()
	e.sequenced(tag)
	if s.ordered {
		if last := s.dev.last; !last.open || (last.legacy != s.legacy && last.pending > 0) {
			e.add(s, &op{kind: opNop})
		}
	}
	place := s.words.Submitted.Load()
	e.point(sched.Enqueued, s, nil, 0)
	e.Unlock()
	return place
}

// Reached implements driver.Stream.
func (s *Stream) Reached(place uint64) bool { return s.words.Completed.Load() >= place }

// At implements driver.Stream.
func (s *Stream) At(seq uint64) driver.Point { return point{s.eng, place{s, seq}} }

// drop frees what a piece of work that will not run holds.
func (s *Stream) drop(w work) {
	if n, ok := w.(*nativeWork); ok && n.Call != nil {
		n.Call.Drop()
	}
	c, ok := w.(*copyWork)
	if !ok {
		return
	}
	if c.Release != 0 {
		C.hs_free(C.uint64_t(c.Release))
	}
	if c.Waited {
		s.fail(driver.Errorf(driver.Aborted, "copy", "the pending work of %s was dropped", s.title()))
	}
}
