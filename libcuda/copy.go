package libcuda

import (
	"iter"
	"slices"

	"halstream/hal"
	"halstream/hal/driver"
)

// copyShape is a copy of boxes of bytes, as the structures of the driver say it.
type copyShape struct {
	dst, src           uint64
	dstPitch, srcPitch uint64
	dstRows, srcRows   uint64 // from one layer to the next
	width, rows        uint64
	layers             uint64
}

// single returns the one copy of which a shape consists, if its layers follow each other.
func (k *copyShape) single() (one hal.CopySpec, single bool) {
	one = hal.CopySpec{Dst: k.dst, DstPitch: k.dstPitch, Src: k.src, SrcPitch: k.srcPitch, Width: k.width, Height: k.rows}
	if k.layers != 1 && (k.dstRows != k.rows || k.srcRows != k.rows) {
		return one, false
	}
	one.Height = k.rows * k.layers
	if one.Height == 1 {
		one.DstPitch, one.SrcPitch = max(one.DstPitch, one.Width), max(one.SrcPitch, one.Width)
	}
	return one, true
}

// specs returns the copies of which a shape consists. Its sizes fit memory.
func (k *copyShape) specs() iter.Seq[hal.CopySpec] {
	return func(yield func(hal.CopySpec) bool) {
		if k.width == 0 || k.rows == 0 || k.layers == 0 {
			return
		}
		one, single := k.single()
		if single {
			yield(one)
			return
		}
		for i := range k.layers {
			layer := one
			layer.Dst += i * k.dstPitch * k.dstRows
			layer.Src += i * k.srcPitch * k.srcRows
			if !yield(layer) {
				return
			}
		}
	}
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
	_, fits := product(k.width, k.rows, k.layers)
	for _, end := range [][2]uint64{{k.dstPitch, k.dstRows}, {k.srcPitch, k.srcRows}} {
		rows, rowsFit := k.rows, true
		if k.layers > 1 {
			rows, rowsFit = product(end[1], k.layers)
		}
		_, endFits := product(end[0], rows)
		fits = fits && (rows <= 1 || rowsFit && endFits)
	}
	if !fits {
		return nil, refuse(invalidValue, "%d layers of %d rows of %d bytes are more than there can be", k.layers, k.rows, k.width)
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
	points, err := c.enqueueCopies(s, k.specs(), call)
	if err == nil && call == hal.BlockingCopy && s.x.waits(k.dst, k.src) {
		var all driver.Point
		if all, err = s.Point(c.t); err == nil {
			points = append(points, all)
		}
	}
	if len(points) == 0 {
		return err
	}
	return c.waitAll(s.Device().Runtime(), points, func() error {
		if err != nil {
			return err
		}
		return failureOf(s.Device(), s.Stream)
	})
}

// enqueueCopies enqueues copies one after the other, up to the first that fails, and returns what the caller waits for.
func (c *caller) enqueueCopies(s *stream, specs iter.Seq[hal.CopySpec], call hal.CopyCall) (points driver.Points, err error) {
	for spec := range specs {
		p, err := s.CopyAs(c.t, spec, call)
		if err != nil {
			return points, err
		}
		if p != nil {
			points = append(points, p)
		}
	}
	return points, nil
}

// The ends of a copy that are device memory by the function's name.
const (
	anywhere = iota
	toDevice
	fromDevice
	withinDevice
)

// checkEnds refuses memory that is none of the driver's where the function's name says so.
func checkEnds(k *copyShape, ends int) error {
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
		if err := checkEnds(k, ends); err != nil {
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
	{name: "cuMemcpyBatchAsync", version: 12080, twin: ptsz, call: onStream(8, func(c *caller, s *stream, a *args) error {
		return c.copyBatch(s, a, 8, 7)
	})},
	{name: "cuMemcpyBatchAsync_v2", version: 13000, twin: ptsz, call: onStream(7, func(c *caller, s *stream, a *args) error {
		return c.copyBatch(s, a, 7, nowhere)
	})},
	{name: "cuMemcpy3DBatchAsync", version: 12080, twin: ptsz, call: unsupported("copy the boxes one by one with cuMemcpy3DAsync")},
	{name: "cuMemcpy3DBatchAsync_v2", version: 13000, twin: ptsz, call: unsupported("copy the boxes one by one with cuMemcpy3DAsync")},
}

// When the source of a copy in a batch is read. Source: CUDA driver API, CUmemcpySrcAccessOrder.
const (
	orderStream     = 1
	orderDuringCall = 2
	orderAny        = 3
)

// batchAttributes is CUmemcpyAttributes.
type batchAttributes struct {
	order int32
	_, _  location // hints of where source and destination are
	_     uint32   // flags, hints too
}

// batchOrder checks the attributes of a batch, and reports whether a source is to be read before the call returns.
func batchOrder(a *args) (duringCall bool, err error) {
	attributes, first := list[batchAttributes](a, 4, a[6]), list[uint64](a, 5, a[6])
	if a[6] > a[3] || len(attributes) != len(first) || uint64(len(first)) != a[6] {
		return false, refuse(invalidValue, "%d attributes are not for %d copies", a[6], a[3])
	}
	for i, one := range attributes {
		if one.order < orderStream || one.order > orderAny {
			return false, refuse(invalidValue, "there is no order %d of the accesses to a source", one.order)
		}
		if i == 0 && first[i] != 0 || i > 0 && first[i] <= first[i-1] || first[i] >= a[3] {
			return false, refuse(invalidValue, "attribute %d of a batch of %d copies begins with copy %d", i, a[3], first[i])
		}
		duringCall = duringCall || one.order == orderDuringCall
	}
	return duringCall, nil
}

// copyBatch enqueues copies one after the other; failed is where the number of one that fails is stored.
func (c *caller) copyBatch(s *stream, a *args, on, failed int) error {
	if err := a.need(0, 1, 2); err != nil {
		return err
	}
	if failed >= 0 {
		put(a, failed, ^uint64(0)) // none of them
	}
	if a[on] == 0 && !c.perThread {
		return refuse(invalidValue, "a batch is not for the legacy default stream")
	}
	duringCall, err := batchOrder(a)
	if err != nil {
		return err
	}
	if duringCall && s.Captures() {
		return refuse(notSupported, "a batch in a capture cannot read its sources during the call; leave that to the stream")
	}
	targets, err := elements[uint64](a, 0, 3)
	if err != nil {
		return err
	}
	sources, sizes := list[uint64](a, 1, a[3]), list[uint64](a, 2, a[3])
	var specs []hal.CopySpec
	for i, target := range targets {
		if sizes[i] == 0 {
			if failed >= 0 {
				put(a, failed, uint64(i))
			}
			return refuse(invalidValue, "copy %d of the batch has no bytes", i)
		}
		one, _ := linear(target, sources[i], sizes[i]).single()
		specs = append(specs, one)
	}
	points, err := c.enqueueCopies(s, slices.Values(specs), hal.AsyncCopy)
	if err == nil && duringCall {
		var all driver.Point
		if all, err = s.Point(c.t); err == nil {
			points = append(points, all)
		}
	}
	return c.waitAll(s.Device().Runtime(), points, func() error { return err })
}
