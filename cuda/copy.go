package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// maxStaged is the size in bytes up to which a copy from or to pageable memory goes
// through pinned memory of this package. For larger ones the driver stages, which may
// block the caller until the stream is done; no limit and no signal ends that wait.
const maxStaged = 32 << 20

// Copy implements driver.Stream.
func (s *Stream) Copy(c driver.Copy) (_ driver.Point, err error) {
	const doing = "copy"
	d := s.dev
	if err := s.beginEnqueue(doing); err != nil {
		return nil, err
	}
	defer s.endEnqueue()
	f := s.follow(c.Tag, nil)
	defer func() { f.End(err) }()
	size := c.Width * c.Height
	switch {
	case c.To != driver.OnDevice && c.From != driver.OnDevice:
		return nil, s.hostCopy(c)
	case c.Release != 0:
		return nil, s.copyFromStage(c)
	case c.From == driver.Pageable && size <= maxStaged:
		addr, err := d.Stage(size)
		if err != nil {
			return nil, err
		}
		hostCopy(addr, c.Src, c.Width, c.SrcPitch, c.Width, c.Height)
		c.Src, c.SrcPitch, c.Release = addr, c.Width, addr
		if err := s.copyFromStage(c); err != nil {
			d.Unstage(addr)
			return nil, err
		}
		return nil, nil
	case c.To == driver.Pageable && size <= maxStaged:
		return nil, s.copyToStage(c)
	}
	if c.Before != nil {
		if err := s.task(doing, "a look at the source of a copy", c.Before, func() {}); err != nil {
			return nil, err
		}
	}
	return nil, s.copy(c, doing)
}

// rowsOf returns a copy as C takes it, but for the contexts of a copy between devices.
func rowsOf(c *driver.Copy) C.hs_copy {
	rows := C.hs_copy{
		dst: C.uint64_t(c.Dst), src: C.uint64_t(c.Src),
		dpitch: C.uint64_t(c.DstPitch), spitch: C.uint64_t(c.SrcPitch),
		width: C.uint64_t(c.Width), height: C.uint64_t(c.Height),
		direction: C.HS_ON_DEVICE,
	}
	switch {
	case c.From != driver.OnDevice:
		rows.direction = C.HS_HOST_TO_DEVICE
	case c.To != driver.OnDevice:
		rows.direction = C.HS_DEVICE_TO_HOST
	}
	return rows
}

func (s *Stream) copy(c driver.Copy, doing string) error {
	rows := rowsOf(&c)
	switch {
	case rows.direction != C.HS_ON_DEVICE:
	case c.SrcDevice != c.DstDevice:
		to, from := s.dev.drv.devices[c.DstDevice], s.dev.drv.devices[c.SrcDevice]
		for _, d := range []*Device{to, from} {
			if err := d.usable(doing); err != nil {
				return err
			}
		}
		rows.to, rows.from = to.ctx(), from.ctx()
	}
	return s.enqueuedOne(C.hs_copy_async(s.dev.ctx(), s.h, &rows), doing)
}

// copyFromStage copies from memory of Stage, which is released when the copy is done.
// On an error the caller still owns it.
func (s *Stream) copyFromStage(c driver.Copy) error {
	const doing = "copy"
	if err := s.copy(c, doing); err != nil {
		return err
	}
	p, err := s.fence(doing)
	if err == nil {
		s.dev.staged.Add(p, c.Release)
	}
	if s.dev.IsLost() {
		return err // no copy reads it any more
	}
	return nil // without an event the end of the copy is not seen: the stage is not freed
}

// copyToStage copies to pinned memory, and from there on a host thread in stream
// order, so that the copy completes whether or not a thread waits for it.
func (s *Stream) copyToStage(c driver.Copy) error {
	const doing = "copy"
	d := s.dev
	addr, err := d.Stage(c.Width * c.Height)
	if err != nil {
		return err
	}
	target, pitch := c.Dst, c.DstPitch
	c.Dst, c.DstPitch = addr, c.Width
	if err := s.copy(c, doing); err != nil {
		d.Unstage(addr)
		return err
	}
	take := func() {
		hostCopy(target, addr, pitch, c.Width, c.Width, c.Height)
		d.Unstage(addr)
	}
	err = s.task(doing, "the end of a copy to pageable memory", take, func() { d.Unstage(addr) })
	if err != nil {
		// The copy to the stage is pending.
		if p, lost := s.fence(doing); lost == nil {
			d.staged.Add(p, addr)
		}
	}
	return err
}

// hostCopy copies between two ranges of host memory in stream order, on a host
// thread: the driver would block the caller meanwhile.
func (s *Stream) hostCopy(c driver.Copy) error {
	work := func() {
		if c.Before != nil {
			c.Before()
		}
		hostCopy(c.Dst, c.Src, c.DstPitch, c.SrcPitch, c.Width, c.Height)
	}
	release := func() {
		if c.Release != 0 {
			s.dev.Unstage(c.Release)
		}
	}
	return s.task("copy", "a copy between two places of the host", func() { work(); release() }, release)
}

func hostCopy(dst, src, dpitch, spitch, width, height uint64) {
	C.hs_host_copy(&C.hs_copy{dst: C.uint64_t(dst), src: C.uint64_t(src), dpitch: C.uint64_t(dpitch),
		spitch: C.uint64_t(spitch), width: C.uint64_t(width), height: C.uint64_t(height)})
}

// Fill implements driver.Stream.
func (s *Stream) Fill(f driver.Fill) (err error) {
	const doing = "fill"
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	op := s.follow(f.Tag, nil)
	defer func() { op.End(err) }()
	if f.On != driver.OnDevice {
		fill := func() {
			C.hs_host_fill(C.uint64_t(f.Dst), C.uint64_t(f.Count), C.uint32_t(f.Value), C.int(f.Size))
		}
		return s.task(doing, "a fill of pinned memory", fill, func() {})
	}
	return s.enqueuedOne(C.hs_fill(s.dev.ctx(), s.h, C.uint64_t(f.Dst), C.uint64_t(f.Count), C.uint32_t(f.Value), C.int(f.Size)), doing)
}

// Native implements driver.Stream.
func (s *Stream) Native(n driver.Native) (err error) {
	f := s.follow(n.Tag, nil)
	defer func() { f.End(err) }()
	title, work, drop := vendor.NativeWork(&s.Progress, n, func(fn, arg uint64) { C.hs_host_native(C.uint64_t(fn), C.uint64_t(arg)) })
	return s.task("call native", title, work, drop)
}

// maxCollect bounds how many copies are queried in one call.
const maxCollect = 8

// valueMemory says in which memory of a device the driver lets streams write and wait for values.
const valueMemory = "use an array of at most 4096 bytes that is allocated without a stream, or pinned memory"

// Else the text above is wrong, and this does not compile.
var _ = [1]int{}[smallMost-4096]

// Numbers of the driver's attributes for operations on values of 64 bits, and for
// the condition that a bit is set in neither.
const (
	attributeValues64   = C.HS_ATTRIBUTE_VALUES_64
	attributeMissingBit = C.HS_ATTRIBUTE_MISSING_BIT
)

// The driver's numbers of the conditions are those of hal; else this does not compile.
var (
	_ = [1]int{}[driver.AtLeast-C.HS_WAIT_GEQ]
	_ = [1]int{}[driver.Equal-C.HS_WAIT_EQ]
	_ = [1]int{}[driver.AnyBit-C.HS_WAIT_AND]
	_ = [1]int{}[driver.MissingBit-C.HS_WAIT_NOR]
)

// noCondition is the condition of a write.
const noCondition = -1

// WriteValue implements driver.Stream.
func (s *Stream) WriteValue(v driver.Value) error { return s.value(v, noCondition, "write value") }

// WaitValue implements driver.Stream.
func (s *Stream) WaitValue(v driver.Value) error {
	const doing = "wait value"
	if v.Condition == driver.MissingBit && s.dev.attribute(attributeMissingBit) == 0 {
		return driver.Errorf(driver.NotSupported, doing, "%s cannot wait for a bit that is set in neither value", s.dev.title())
	}
	return s.value(v, C.int(v.Condition), doing)
}

func (s *Stream) value(v driver.Value, condition C.int, doing string) (err error) {
	d := s.dev
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	f := s.follow(v.Tag, nil)
	defer func() { f.End(err) }()
	if !d.memops() || d.attribute(attributeValues64) == 0 {
		return driver.Errorf(driver.NotSupported, doing,
			"it needs stream memory operations of 64 bits, which %s or its driver has not (CUDA 11.7 has them)", d.title())
	}
	if v.On == driver.OnDevice && d.pooled.Has(v.Addr) {
		return driver.Errorf(driver.InvalidValue, doing, "%#x is memory of a pool of the driver's, where no stream can write a value "+
			"or wait for one; %s", v.Addr, valueMemory)
	}
	dev := C.CUdeviceptr(v.Addr) // the same where addresses are unified
	if v.On == driver.Pinned {
		status := C.hs_host_device(d.ctx(), C.uint64_t(v.Addr), &dev)
		if status != 0 && C.hs_code(status) != codeNotSupported {
			return d.check(status, doing)
		}
	}
	if err := s.enqueuedOne(C.hs_value(d.ctx(), s.h, dev, C.uint64_t(v.Value), condition), doing); err != nil {
		if e, ok := err.(*driver.Error); ok && e.Code == C.HS_INVALID_VALUE && v.On == driver.OnDevice {
			explained := *e
			explained.Text += fmt.Sprintf("; memory of a pool and managed memory hold no such values: %s", valueMemory)
			return &explained
		}
		return err
	}
	if condition != noCondition {
		s.AwaitsHostAt(s.Last(), s.Keep)
	}
	return nil
}
