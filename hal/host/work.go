package host

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void hs_copy(uint64_t dst, uint64_t src, uint64_t dpitch, uint64_t spitch, uint64_t width, uint64_t height) {
	char *to = (char *)(uintptr_t)dst;
	const char *from = (const char *)(uintptr_t)src;
	if (height == 1 || (dpitch == width && spitch == width)) {
		memcpy(to, from, width * height);
		return;
	}
	for (uint64_t i = 0; i < height; i++) memcpy(to + i * dpitch, from + i * spitch, width);
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

static void hs_native(uint64_t fn, uint64_t arg) { ((void (*)(void *))(uintptr_t)fn)((void *)(uintptr_t)arg); }

static void hs_free(uint64_t p) { free((void *)(uintptr_t)p); }
*/
import "C"

import "halstream/hal/driver"

// inlineMost is the size up to which a copy or fill is run by whoever runs the
// stream, instead of by an engine: handing it over would take longer.
const inlineMost = 4 << 10

// work is what an engine does for one operation. It runs in C, since a long
// loop in Go cannot be interrupted by the collector.
type work interface {
	run()
	short() bool
}

type delayWork struct{ ns int64 }

func (w delayWork) run()        { delay(w.ns) }
func (w delayWork) short() bool { return false }

type copyWork driver.Copy

func (w *copyWork) run() {
	C.hs_copy(C.uint64_t(w.Dst), C.uint64_t(w.Src), C.uint64_t(w.DstPitch), C.uint64_t(w.SrcPitch),
		C.uint64_t(w.Width), C.uint64_t(w.Height))
	if w.Release != 0 {
		C.hs_free(C.uint64_t(w.Release))
	}
}

func (w *copyWork) short() bool { return w.Width*w.Height <= inlineMost }

type fillWork driver.Fill

func (w *fillWork) run() {
	C.hs_fill(C.uint64_t(w.Dst), C.uint64_t(w.Count), C.uint32_t(w.Value), C.int(w.Size))
}

func (w *fillWork) short() bool { return w.Count*uint64(w.Size) <= inlineMost }

type nativeWork struct{ fn, arg uint64 }

func (w nativeWork) run()        { C.hs_native(C.uint64_t(w.fn), C.uint64_t(w.arg)) }
func (w nativeWork) short() bool { return false }

// Copy implements driver.Worker.
func (s *Stream) Copy(c driver.Copy) error {
	w := copyWork(c)
	s.eng.submit(s, op{kind: opWork, ref: &w})
	return nil
}

// Fill implements driver.Worker.
func (s *Stream) Fill(f driver.Fill) error {
	w := fillWork(f)
	s.eng.submit(s, op{kind: opWork, ref: &w})
	return nil
}

// Native implements driver.Worker.
func (s *Stream) Native(fn, arg uint64) error {
	s.eng.submit(s, op{kind: opWork, ref: nativeWork{fn, arg}})
	return nil
}

// Last implements driver.Worker.
func (s *Stream) Last() uint64 { return s.submitted.Load() }

// Reached implements driver.Worker.
func (s *Stream) Reached(place uint64) bool { return s.completed.Load() >= place }

// drop frees what a piece of work that will not run holds.
func drop(w work) {
	if c, ok := w.(*copyWork); ok && c.Release != 0 {
		C.hs_free(C.uint64_t(c.Release))
	}
}

var _ driver.Worker = (*Stream)(nil)
