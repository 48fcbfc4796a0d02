package libcuda

import (
	"halstream/hal"
)

// copyShape is a copy of boxes of bytes, as the structures of the driver say it.
type copyShape struct {
	dst, src           uint64
	dstPitch, srcPitch uint64
	dstRows, srcRows   uint64 // from one layer to the next
	width, rows        uint64
	layers             uint64
}

// specs returns the copies of which a shape consists: one, if its layers follow each other.
func (k *copyShape) specs() []hal.CopySpec {
	if k.width == 0 || k.rows == 0 || k.layers == 0 {
		return nil
	}
	one := hal.CopySpec{Dst: k.dst, DstPitch: k.dstPitch, Src: k.src, SrcPitch: k.srcPitch, Width: k.width, Height: k.rows}
	if k.layers == 1 || k.dstRows == k.rows && k.srcRows == k.rows {
		one.Height = k.rows * k.layers
		if one.Height == 1 {
			one.DstPitch, one.SrcPitch = max(one.DstPitch, one.Width), max(one.SrcPitch, one.Width)
		}
		return []hal.CopySpec{one}
	}
	var all []hal.CopySpec
	for i := range k.layers {
		layer := one
		layer.Dst += i * k.dstPitch * k.dstRows
		layer.Src += i * k.srcPitch * k.srcRows
		all = append(all, layer)
	}
	return all
}

// copyEnd is one end of a copy in the structures of the driver.
type copyEnd struct {
	kind         int32
	host, device uint64
}

func (e *copyEnd) start() (uint64, error) {
	switch e.kind {
	case hostMemory:
		return e.host, nil
	case deviceMemory, unifiedMemory:
		return e.device, nil
	case arrayMemory:
		return 0, refuse(notSupported, "%s", noTextures)
	}
	return 0, refuse(invalidValue, "there is no kind of memory %d", e.kind)
}

// copy2D is CUDA_MEMCPY2D.
type copy2D struct {
	srcX, srcY uint64
	src        copyEnd
	_          uint64 // an array, which src refuses
	srcPitch   uint64
	dstX, dstY uint64
	dst        copyEnd
	_          uint64
	dstPitch   uint64
	width      uint64
	rows       uint64
}

func (k *copy2D) shape() (*copyShape, error) {
	from, err := k.src.start()
	if err != nil {
		return nil, err
	}
	to, err := k.dst.start()
	if err != nil {
		return nil, err
	}
	shape := &copyShape{dst: to + k.dstX + k.dstY*k.dstPitch, src: from + k.srcX + k.srcY*k.srcPitch, dstPitch: k.dstPitch,
		srcPitch: k.srcPitch, width: k.width, rows: k.rows, layers: 1, dstRows: k.rows, srcRows: k.rows}
	return shape.pitched()
}

// pitched gives rows a pitch where the program has left it out.
func (k *copyShape) pitched() (*copyShape, error) {
	if k.dstPitch == 0 {
		k.dstPitch = k.width
	}
	if k.srcPitch == 0 {
		k.srcPitch = k.width
	}
	if k.rows*k.layers > 1 && (k.dstPitch < k.width || k.srcPitch < k.width) {
		return nil, refuse(invalidValue, "rows of %d bytes do not fit a pitch of %d or %d", k.width, k.dstPitch, k.srcPitch)
	}
	return k, nil
}

// copy3D is CUDA_MEMCPY3D, and with the two contexts, which take the place of the reserved members, CUDA_MEMCPY3D_PEER.
type copy3D struct {
	srcX, srcY, srcZ, srcLevel uint64
	src                        copyEnd
	srcArray, srcContext       uint64
	srcPitch, srcRows          uint64
	dstX, dstY, dstZ, dstLevel uint64
	dst                        copyEnd
	dstArray, dstContext       uint64
	dstPitch, dstRows          uint64
	width, rows, layers        uint64
}

func (k *copy3D) shape() (*copyShape, error) {
	from, err := k.src.start()
	if err != nil {
		return nil, err
	}
	to, err := k.dst.start()
	if err != nil {
		return nil, err
	}
	shape := &copyShape{dst: to, src: from, dstPitch: k.dstPitch, srcPitch: k.srcPitch, dstRows: k.dstRows, srcRows: k.srcRows,
		width: k.width, rows: k.rows, layers: k.layers}
	if shape.dstRows == 0 {
		shape.dstRows = k.rows
	}
	if shape.srcRows == 0 {
		shape.srcRows = k.rows
	}
	if _, err := shape.pitched(); err != nil {
		return nil, err
	}
	shape.dst += k.dstX + (k.dstY+k.dstZ*shape.dstRows)*shape.dstPitch
	shape.src += k.srcX + (k.srcY+k.srcZ*shape.srcRows)*shape.srcPitch
	return shape, nil
}

// linear is a copy of bytes in a row.
func linear(dst, src, size uint64) *copyShape {
	return &copyShape{dst: dst, src: src, dstPitch: size, srcPitch: size, width: size, rows: 1, layers: 1, dstRows: 1, srcRows: 1}
}

// copy enqueues a copy; a blocking call waits for it.
func (c *caller) copy(s *stream, k *copyShape, call hal.CopyCall) error {
	rt := s.Device().Runtime()
	specs := k.specs()
	for i, spec := range specs {
		p, err := s.CopyAs(c.t, spec, call)
		if err != nil {
			return err
		}
		if p != nil && i == len(specs)-1 {
			return c.wait(rt, p, func() error { return failureOf(s.Device(), s.Stream) })
		}
		if p != nil {
			c.waitHere(p)
		}
	}
	return nil
}

// The ends of a copy that are device memory by the function's name.
const (
	anywhere = iota
	toDevice
	fromDevice
	withinDevice
)

// placed refuses memory that is none of the driver's where the function's name says so.
func placed(k *copyShape, ends int) error {
	for _, end := range []struct {
		bit     int
		address uint64
	}{{toDevice, k.dst}, {fromDevice, k.src}} {
		if ends&end.bit == 0 || k.width == 0 {
			continue
		}
		kind, _, _, err := lookup(end.address)
		if err == nil && kind == hal.Pageable {
			err = refuse(invalidValue, "%#x is in no memory of the device", end.address)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyLinear returns a function that copies bytes in a row: its arguments are the target, the source and the size, at
// these places, and for an asynchronous one the stream.
func copyLinear(ends, dst, src, size, on int) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		handle, call := uintptr(0), hal.BlockingCopy
		if on >= 0 {
			handle, call = a.handle(on), hal.AsyncCopy
		}
		s, err := c.stream(handle)
		if err != nil {
			return err
		}
		k := linear(a[dst], a[src], a[size])
		if err := placed(k, ends); err != nil {
			return err
		}
		return c.copy(s, k, call)
	}
}

// shaped is a structure of the driver that describes a copy.
type shaped interface {
	copy2D | copy3D
}

func shapeOf[T shaped](k *T) (*copyShape, error) {
	switch k := any(k).(type) {
	case *copy2D:
		return k.shape()
	case *copy3D:
		return k.shape()
	}
	return nil, nil
}

// copyBox returns a function that copies what a structure describes.
func copyBox[T shaped](on int) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		handle, call := uintptr(0), hal.BlockingCopy
		if on >= 0 {
			handle, call = a.handle(on), hal.AsyncCopy
		}
		s, err := c.stream(handle)
		if err != nil {
			return err
		}
		k, err := shapeOf(in[T](a, 0))
		if err != nil {
			return err
		}
		return c.copy(s, k, call)
	}
}

var copyFunctions = []function{
	{name: "cuMemcpy", version: 4000, twin: ptds, call: copyLinear(anywhere, 0, 1, 2, nowhere)},
	{name: "cuMemcpyHtoD_v2", version: 3020, twin: ptds, call: copyLinear(toDevice, 0, 1, 2, nowhere)},
	{name: "cuMemcpyDtoH_v2", version: 3020, twin: ptds, call: copyLinear(fromDevice, 0, 1, 2, nowhere)},
	{name: "cuMemcpyDtoD_v2", version: 3020, twin: ptds, call: copyLinear(withinDevice, 0, 1, 2, nowhere)},
	{name: "cuMemcpyPeer", version: 4000, twin: ptds, call: copyLinear(withinDevice, 0, 2, 4, nowhere)},
	{name: "cuMemcpyAsync", version: 4000, twin: ptsz, call: copyLinear(anywhere, 0, 1, 2, 3)},
	{name: "cuMemcpyHtoDAsync_v2", version: 3020, twin: ptsz, call: copyLinear(toDevice, 0, 1, 2, 3)},
	{name: "cuMemcpyDtoHAsync_v2", version: 3020, twin: ptsz, call: copyLinear(fromDevice, 0, 1, 2, 3)},
	{name: "cuMemcpyDtoDAsync_v2", version: 3020, twin: ptsz, call: copyLinear(withinDevice, 0, 1, 2, 3)},
	{name: "cuMemcpyPeerAsync", version: 4000, twin: ptsz, call: copyLinear(withinDevice, 0, 2, 4, 5)},
	{name: "cuMemcpy2D_v2", version: 3020, twin: ptds, call: copyBox[copy2D](nowhere)},
	{name: "cuMemcpy2DUnaligned_v2", version: 3020, twin: ptds, call: copyBox[copy2D](nowhere)},
	{name: "cuMemcpy2DAsync_v2", version: 3020, twin: ptsz, call: copyBox[copy2D](1)},
	{name: "cuMemcpy3D_v2", version: 3020, twin: ptds, call: copyBox[copy3D](nowhere)},
	{name: "cuMemcpy3DPeer", version: 4000, twin: ptds, call: copyBox[copy3D](nowhere)},
	{name: "cuMemcpy3DAsync_v2", version: 3020, twin: ptsz, call: copyBox[copy3D](1)},
	{name: "cuMemcpy3DPeerAsync", version: 4000, twin: ptsz, call: copyBox[copy3D](1)},
	{name: "cuMemcpyBatchAsync", version: 12080, twin: ptsz, call: copyBatch(8)},
	{name: "cuMemcpyBatchAsync_v2", version: 13000, twin: ptsz, call: copyBatch(7)},
	{name: "cuMemcpy3DBatchAsync", version: 12080, twin: ptsz, call: unsupported("copy the boxes one by one with cuMemcpy3DAsync")},
	{name: "cuMemcpy3DBatchAsync_v2", version: 13000, twin: ptsz, call: unsupported("copy the boxes one by one with cuMemcpy3DAsync")},
}

// copyBatch returns a function that enqueues copies one after the other.
func copyBatch(on int) func(c *caller, a *args) error {
	return onStream(on, func(c *caller, s *stream, a *args) error {
		if err := a.need(0, 1, 2); err != nil {
			return err
		}
		if a[on] == 0 && !c.perThread {
			return refuse(invalidValue, "a batch is not for the legacy default stream")
		}
		targets, sources, sizes := list[uint64](a, 0, a[3]), list[uint64](a, 1, a[3]), list[uint64](a, 2, a[3])
		for i, target := range targets {
			p, err := s.CopyAs(c.t, linear(target, sources[i], sizes[i]).specs()[0], hal.AsyncCopy)
			if err != nil {
				return err
			}
			if p != nil {
				c.waitHere(p)
			}
		}
		return nil
	})
}
