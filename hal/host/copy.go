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

static void hs_free(uint64_t p) { free((void *)(uintptr_t)p); }
*/
import "C"

import (
	"halstream/hal/driver"
	"halstream/hal/touch"
)

// inlineMost is the size up to which a copy or fill is run by whoever runs the
// stream, instead of by a worker: handing it over would take longer.
const inlineMost = 4 << 10

// copyWork is a copy, and fillWork a fill, in C.
type copyWork driver.Copy

func (w *copyWork) run() {
	if w.Before != nil {
		w.Before()
	}
	C.hs_copy(C.uint64_t(touch.Alias(w.Dst)), C.uint64_t(touch.Alias(w.Src)), C.uint64_t(w.DstPitch), C.uint64_t(w.SrcPitch),
		C.uint64_t(w.Width), C.uint64_t(w.Height), streaming(w.Width*w.Height))
	w.release()
}

// release frees the memory of C that the copy has for itself, if it has some.
func (w *copyWork) release() {
	if w.Release != 0 {
		C.hs_free(C.uint64_t(w.Release))
	}
}

func (w *copyWork) short() bool { return w.Width*w.Height <= inlineMost }

// streamingFrom is the size from which copies use streaming stores.
var streamingFrom = uint64(C.hs_streaming_from())

// streaming says whether a copy of that size uses streaming stores.
func streaming(size uint64) C.int {
	if size > streamingFrom {
		return 1
	}
	return 0
}

type fillWork driver.Fill

func (w *fillWork) run() {
	C.hs_fill(C.uint64_t(touch.Alias(w.Dst)), C.uint64_t(w.Count), C.uint32_t(w.Value), C.int(w.Size))
}

func (w *fillWork) short() bool { return w.Count*uint64(w.Size) <= inlineMost }
