package libcuda

// #include <stdlib.h>
// #include "fill.h"
import "C"

import (
	"unsafe"

	"halstream/hal"
)

// fillShape is rows of memory that get one value.
type fillShape struct {
	dst, pitch  uint64
	value       uint32
	size        uint32 // of an element
	width, rows uint64
}

// enqueue enqueues the fill on a stream as one operation.
func (k *fillShape) enqueue(c *caller, s *hal.Stream) error {
	row := k.width * uint64(k.size)
	_, fits := product(k.width, uint64(k.size), k.rows)
	_, pitchFits := product(k.pitch, k.rows)
	switch {
	case k.size != 1 && k.size != 2 && k.size != 4:
		return refuse(invalidValue, "elements have 1, 2 or 4 bytes, not %d", k.size)
	case k.width == 0 || k.rows == 0:
		return nil
	case !fits || k.rows > 1 && !pitchFits:
		return refuse(invalidValue, "%d rows of %d elements are more than there can be", k.rows, k.width)
	case k.rows == 1 || k.pitch == row:
		return s.Fill(c.t, k.dst, k.value, uint8(k.size), k.width*k.rows)
	case k.pitch < row || k.dst%uint64(k.size) != 0 || k.pitch%uint64(k.size) != 0:
		return refuse(invalidValue, "rows of %d elements of %d bytes do not fit a pitch of %d", k.width, k.size, k.pitch)
	}
	last := k.dst + (k.rows-1)*k.pitch + row
	if _, start, size, err := lookup(k.dst); err != nil || last > start+size {
		if err == nil {
			err = refuse(invalidValue, "%d rows at %#x leave their memory", k.rows, k.dst)
		}
		return err
	}
	made := (*C.hs_cuda_fill)(C.malloc(C.sizeof_hs_cuda_fill))
	*made = C.hs_cuda_fill{dst: C.uint64_t(k.dst), pitch: C.uint64_t(k.pitch), width: C.uint64_t(k.width), rows: C.uint64_t(k.rows),
		value: C.uint32_t(k.value), size: C.uint32_t(k.size)}
	err := s.NativeFunc(c.t, &hal.NativeFunc{Name: "fill", Function: uint64(uintptr(C.hs_cuda_fill_rows)),
		Accesses: []hal.Access{{Start: k.dst, Bytes: row, Rows: k.rows, Pitch: k.pitch, Mode: hal.Writes}},
		Argument: uint64(uintptr(unsafe.Pointer(made))), Release: uint64(uintptr(C.free))})
	if err != nil {
		C.free(unsafe.Pointer(made))
	}
	return err
}

// fill returns a function that fills elements of a size; rows says that it takes a pitch, a width and a height, and on
// where its stream is, none for a blocking one.
func fill(size uint32, rows bool, on int) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		handle := uintptr(0)
		if on >= 0 {
			handle = a.handle(on)
		}
		s, err := c.stream(handle)
		if err != nil {
			return err
		}
		k := &fillShape{dst: a[0], value: a.u32(1), size: size, width: a[2], rows: 1}
		if rows {
			k = &fillShape{dst: a[0], pitch: a[1], value: a.u32(2), size: size, width: a[3], rows: a[4]}
		}
		k.value &= uint32(1<<(8*size) - 1)
		kind, start, _, err := lookup(k.dst)
		if err != nil {
			return err
		}
		if err := k.enqueue(c, s.Stream); err != nil || on >= 0 {
			return err
		}
		if one := allocationAt(start); kind != hal.Pinned && (one == nil || !one.managed) && !s.x.waits(k.dst) {
			return nil // a fill of device memory does not block
		}
		p, err := s.Point(c.t)
		if err != nil {
			return err
		}
		return c.wait(s.Device().Runtime(), p, func() error { return failureOf(s.Device(), s.Stream) })
	}
}

var fillFunctions = []function{
	{name: "cuMemsetD8_v2", version: 3020, twin: ptds, call: fill(1, false, nowhere)},
	{name: "cuMemsetD16_v2", version: 3020, twin: ptds, call: fill(2, false, nowhere)},
	{name: "cuMemsetD32_v2", version: 3020, twin: ptds, call: fill(4, false, nowhere)},
	{name: "cuMemsetD2D8_v2", version: 3020, twin: ptds, call: fill(1, true, nowhere)},
	{name: "cuMemsetD2D16_v2", version: 3020, twin: ptds, call: fill(2, true, nowhere)},
	{name: "cuMemsetD2D32_v2", version: 3020, twin: ptds, call: fill(4, true, nowhere)},
	{name: "cuMemsetD8Async", version: 3020, twin: ptsz, call: fill(1, false, 3)},
	{name: "cuMemsetD16Async", version: 3020, twin: ptsz, call: fill(2, false, 3)},
	{name: "cuMemsetD32Async", version: 3020, twin: ptsz, call: fill(4, false, 3)},
	{name: "cuMemsetD2D8Async", version: 3020, twin: ptsz, call: fill(1, true, 5)},
	{name: "cuMemsetD2D16Async", version: 3020, twin: ptsz, call: fill(2, true, 5)},
	{name: "cuMemsetD2D32Async", version: 3020, twin: ptsz, call: fill(4, true, 5)},
}
