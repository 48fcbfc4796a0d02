package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"sync"

	"halstream/hal/driver"
)

// Copy implements driver.Stream. Pageable memory goes through pinned memory of this package: the library would
// block the caller until the stream is done, and no limit and no signal ends that wait.
func (s *Stream) Copy(c driver.Copy) (driver.Point, error) {
	const doing = "copy"
	return nil, s.enqueue(c.Tag, doing, func() error {
		switch {
		case c.To != driver.OnDevice && c.From != driver.OnDevice:
			return s.hostCopy(c, doing)
		case c.Release != 0:
			return s.copyFromStage(c, doing)
		case c.From == driver.Pageable:
			addr, err := s.dev.Stage(c.Width * c.Height)
			if err != nil {
				return err
			}
			hostCopy(addr, c.Src, c.Width, c.SrcPitch, c.Width, c.Height)
			c.Src, c.SrcPitch, c.Release = addr, c.Width, addr
			if err := s.copyFromStage(c, doing); err != nil {
				s.dev.Unstage(addr)
				return err
			}
			return nil
		case c.To == driver.Pageable:
			return s.copyToStage(c, doing)
		}
		if c.Before != nil {
			if err := s.launch(s.working("a look at the source of a copy", c.Before, func() {}), doing); err != nil {
				return err
			}
		}
		return s.copy(c, doing)
	})
}

// copy enqueues a copy that the library can do. Planes within devices are copied row by row: only few chips can
// do it at once.
func (s *Stream) copy(c driver.Copy, doing string) error {
	rows := C.na_rows{
		dst: C.uint64_t(c.Dst), src: C.uint64_t(c.Src), dpitch: C.uint64_t(c.DstPitch), spitch: C.uint64_t(c.SrcPitch),
		width: C.uint64_t(c.Width), height: C.uint64_t(c.Height), kind: C.ACL_MEMCPY_DEVICE_TO_DEVICE,
	}
	switch {
	case c.From != driver.OnDevice:
		rows.kind = C.ACL_MEMCPY_HOST_TO_DEVICE
	case c.To != driver.OnDevice:
		rows.kind = C.ACL_MEMCPY_DEVICE_TO_HOST
	default:
		for _, other := range []int{c.SrcDevice, c.DstDevice} {
			if err := s.dev.reach(other); err != nil {
				return err
			}
		}
		if c.Height > 1 {
			rows.height = 1
			return s.copyRows(rows, c.Height, doing)
		}
	}
	return s.took(C.na_copy(s.dev.ctx(), s.h, &rows), doing)
}

// copyRows enqueues a copy row by row. Where the library refuses a row behind others, the copy counts as enqueued, and the
// error is the stream's: rows that are pending use the memory.
func (s *Stream) copyRows(row C.na_rows, height uint64, doing string) error {
	for i := range height {
		if err := s.dev.check(C.na_copy(s.dev.ctx(), s.h, &row), doing); err != nil {
			if i == 0 {
				return err
			}
			s.fail(err.(*driver.Error))
			break
		}
		row.dst += row.dpitch
		row.src += row.spitch
	}
	s.enqueued.Add(1)
	return nil
}

// reach lets the device use the memory of another one, once.
func (d *Device) reach(other int) error {
	if other == d.ordinal || other < 0 {
		return nil
	}
	if _, done := d.peers.Load(other); done {
		return nil
	}
	if err := d.drv.Enable(d.ordinal, other); err != nil {
		return err
	}
	d.peers.Store(other, true)
	return nil
}

// copyFromStage copies from memory of Stage, which is released when the copy is done. On an error the caller still owns it.
func (s *Stream) copyFromStage(c driver.Copy, doing string) error {
	if err := s.copy(c, doing); err != nil {
		return err
	}
	if p, err := s.point(doing); err == nil {
		s.dev.staged.add(p, c.Release)
	} // without a mark the end of the copy is not seen: the stage is not freed
	return nil
}

// copyToStage copies to pinned memory, and from there on a host thread in stream order, so that the copy completes whether or
// not a thread waits for it.
func (s *Stream) copyToStage(c driver.Copy, doing string) error {
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
	err = s.launch(s.working("the end of a copy to pageable memory", take, func() { d.Unstage(addr) }), doing)
	if err != nil {
		if p, refused := s.point(doing); refused == nil { // the copy to the stage is pending
			d.staged.add(p, addr)
		}
	}
	return err
}

// hostCopy copies between two ranges of host memory in stream order, on a host thread: AscendCL refuses such copies.
func (s *Stream) hostCopy(c driver.Copy, doing string) error {
	release := func() {
		if c.Release != 0 {
			s.dev.Unstage(c.Release)
		}
	}
	work := func() {
		if c.Before != nil {
			c.Before()
		}
		hostCopy(c.Dst, c.Src, c.DstPitch, c.SrcPitch, c.Width, c.Height)
		release()
	}
	return s.launch(s.working("a copy between two places of the host", work, release), doing)
}

func hostCopy(dst, src, dpitch, spitch, width, height uint64) {
	C.na_host_copy(&C.na_rows{dst: C.uint64_t(dst), src: C.uint64_t(src), dpitch: C.uint64_t(dpitch),
		spitch: C.uint64_t(spitch), width: C.uint64_t(width), height: C.uint64_t(height)})
}

// Stage implements driver.VendorDevice.
func (d *Device) Stage(size uint64) (uint64, error) {
	d.staged.collect(d)
	return d.drv.AllocHost(size)
}

// Unstage implements driver.VendorDevice.
func (d *Device) Unstage(addr uint64) { d.drv.FreeHost(addr) }

// staged is pinned memory that copies in flight read or write.
type staged struct {
	mu   sync.Mutex
	list []staging
}

type staging struct {
	point *point
	addr  uint64
}

func (p *staged) add(at *point, addr uint64) {
	p.mu.Lock()
	p.list = append(p.list, staging{at, addr})
	p.mu.Unlock()
}

// collect frees memory that is no longer in use.
func (p *staged) collect(d *Device) {
	p.mu.Lock()
	list := p.list
	p.list = nil
	p.mu.Unlock()
	for _, s := range list {
		if s.point.Wait(0) {
			d.Unstage(s.addr)
			continue
		}
		p.add(s.point, s.addr)
	}
}
