package libcuda

import (
	"encoding/binary"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// launch is a launch of a kernel, with its arguments as package hal takes them.
type launch struct {
	k             *kernel
	spec          hal.LaunchSpec
	reads, writes []hal.Range
}

// Marks in the list of a launch's other form of arguments. Source: CUDA driver API, CU_LAUNCH_PARAM_*.
const (
	packedPointer = 1
	packedSize    = 2
)

// arguments copies the arguments of a kernel: params is an array of addresses, one for each, and extra the other form, one
// place with all of them.
func (l *launch) arguments(params, extra uint64) error {
	sizes, known := l.k.f.Parameters()
	if !known {
		return refuse(notSupported, "the parameters of %s are not known", l.k.name)
	}
	places := l.k.f.Places()
	var from func(i int) (address uint64, err error)
	switch {
	case params != 0 && extra != 0:
		return refuse(invalidValue, "the arguments of %s are given in two forms", l.k.name)
	case len(sizes) == 0:
	case params != 0:
		from = func(i int) (uint64, error) { return *pointerAt[uint64](params + 8*uint64(i)), nil }
	case extra != 0:
		packed, size, err := packedArguments(extra)
		if err != nil {
			return err
		}
		from = func(i int) (uint64, error) {
			if uint64(places[i]+sizes[i]) > size {
				return 0, refuse(invalidValue, "%d bytes of arguments are fewer than %s takes", size, l.k.name)
			}
			return packed + uint64(places[i]), nil
		}
	default:
		return refuse(invalidValue, "%s takes %d arguments, and none are given", l.k.name, len(sizes))
	}
	letters := l.k.f.Accesses()
	for i, size := range sizes {
		address, err := from(i)
		if err == nil && address == 0 {
			err = refuse(invalidValue, "argument %d of %s is NULL", i+1, l.k.name)
		}
		if err != nil {
			return err
		}
		cells := make([]byte, driver.Cells(size)*driver.Cell)
		copy(cells, unsafe.Slice(pointerAt[byte](address), size))
		l.spec.Args = append(l.spec.Args, cells...)
		if letters[i] != '-' {
			l.accesses(cells[:size], letters[i])
		}
	}
	return nil
}

// packedArguments returns the place of all arguments of a launch and their size, which a list of pairs says.
func packedArguments(list uint64) (place, size uint64, err error) {
	for at := list; *pointerAt[uint64](at) != 0; at += 16 {
		value := *pointerAt[uint64](at + 8)
		switch mark := *pointerAt[uint64](at); {
		case value == 0:
			return 0, 0, refuse(invalidValue, "a launch has its arguments or their size at NULL")
		case mark == packedPointer:
			place = value
		case mark == packedSize:
			size = *pointerAt[uint64](value)
		default:
			return 0, 0, refuse(invalidValue, "there is no mark %#x in the list of a launch", mark)
		}
	}
	if place == 0 {
		return 0, 0, refuse(invalidValue, "a launch does not say where its arguments are")
	}
	return place, size, nil
}

// accesses notes the memory to which an argument has addresses.
func (l *launch) accesses(value []byte, letter byte) {
	for ; len(value) >= 8; value = value[8:] {
		kind, start, size, err := lookup(binary.LittleEndian.Uint64(value))
		if err != nil || kind == hal.Pageable {
			continue
		}
		r := hal.Range{Start: start, Size: size}
		if letter != 'w' {
			l.reads = append(l.reads, r)
		}
		if letter != 'r' {
			l.writes = append(l.writes, r)
		}
	}
}

// check refuses what the driver refuses beside package hal.
func (l *launch) check() error {
	dynamic, err := l.k.attribute(functionDynamic)
	if err != nil {
		return err
	}
	if int(l.spec.Shared) > dynamic {
		return refuse(invalidValue, "%s is launched with %d bytes of dynamic shared memory, and may have %d; allow more with "+
			"cuFuncSetAttribute", l.k.name, l.spec.Shared, dynamic)
	}
	if !l.spec.Cooperative {
		return nil
	}
	processors, err := attribute(l.k.module.x.dev, 16)
	if err != nil {
		return err
	}
	b, g := l.spec.Block, l.spec.Grid
	threads, threadsFit := product(uint64(b[0]), uint64(b[1]), uint64(b[2]))
	blocks, blocksFit := product(uint64(g[0]), uint64(g[1]), uint64(g[2]))
	if !threadsFit || !blocksFit || threads > uint64(l.k.f.Threads()) {
		return nil // which package hal refuses for any launch
	}
	if most := l.k.residents(int(threads), uint64(l.spec.Shared)) * processors; blocks > uint64(most) {
		return refuse(cooperativeTooLarge, "%d blocks of %s cannot be there at once; %d can", blocks, l.k.name, most)
	}
	return nil
}

// enqueue enqueues the launch on a stream.
func (l *launch) enqueue(c *caller, s *hal.Stream) error {
	return s.Launch(c.t, l.k.f, l.spec, l.reads, l.writes)
}

// newLaunch returns a launch of the kernel with a handle, in a context.
func (c *caller) newLaunch(handle uintptr, x *context, spec hal.LaunchSpec, params, extra uint64) (*launch, error) {
	k, err := kernelOf(handle)
	if err != nil {
		return nil, err
	}
	if k, err = k.in(c, x); err != nil {
		return nil, err
	}
	l := &launch{k: k, spec: spec}
	l.spec.Name = shownName(k.name)
	if err := l.check(); err != nil {
		return nil, err
	}
	return l, l.arguments(params, extra)
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	number int32
	_      int32
	value  hint
}

// eventAttribute is the value of an attribute by which a launch records an event.
type eventAttribute struct {
	event uintptr
	flags int32
	_     int32 // whether blocks trigger it as they begin
}

// valueOf returns the value of an attribute in its form.
func valueOf[T any](a *launchAttribute) *T { return (*T)(unsafe.Pointer(&a.value)) }

// applyAttributes applies attributes to a launch on a stream, and returns the events that are recorded with it.
func applyAttributes(spec *hal.LaunchSpec, s *stream, all []launchAttribute) (events []*event, err error) {
	for i := range all {
		one := &all[i]
		switch number := int(one.number); {
		case number == attributeNone, number == attributeSerialization, nodeHints[number]:
		case number == attributeCooperative:
			spec.Cooperative = *valueOf[int32](one) != 0
		case number == attributeCluster:
			spec.Cluster = *valueOf[[3]uint32](one)
		case number == attributeProgrammaticEvent, number == attributeCompletionEvent:
			e, err := valueOf[eventAttribute](one).check(s)
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		case number == attributeDeviceUpdatable:
			if *valueOf[int32](one) != 0 {
				return nil, refuse(notSupported, "kernels do not update nodes of graphs here; update the executable on the host")
			}
		default:
			return nil, refuse(invalidValue, "there is no attribute %d of a launch", number)
		}
	}
	return events, nil
}

// check returns the event of the attribute.
func (v *eventAttribute) check(s *stream) (*event, error) {
	e, err := eventOf(v.event)
	switch {
	case err != nil:
		return nil, err
	case e.flags&eventNoTiming == 0 || e.flags&eventInterprocess != 0 || v.flags != 0:
		return nil, refuse(invalidValue, "an event of a launch has no timing, is not shared, and is recorded without flags")
	case e.x.dev != s.Device():
		return nil, refuse(invalidHandle, "the event and the stream of the launch are of different devices")
	}
	return e, nil
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      uintptr
	attributes  uint64
	count       uint32
}

func launchKernel(cooperative bool) func(c *caller, a *args) error {
	return onStream(8, func(c *caller, s *stream, a *args) error {
		spec := hal.LaunchSpec{Grid: [3]uint32{a.u32(1), a.u32(2), a.u32(3)}, Block: [3]uint32{a.u32(4), a.u32(5), a.u32(6)},
			Shared: a.u32(7), Cooperative: cooperative}
		extra := a[10]
		if cooperative {
			extra = 0
		}
		l, err := c.newLaunch(a.handle(0), s.x, spec, a[9], extra)
		if err != nil {
			return err
		}
		return l.enqueue(c, s.Stream)
	})
}

var launchFunctions = []function{
	{name: "cuLaunchKernel", version: 4000, twin: ptsz, call: launchKernel(false)},
	{name: "cuLaunchCooperativeKernel", version: 9000, twin: ptsz, call: launchKernel(true)},
	{name: "cuLaunchKernelEx", version: 11060, twin: ptsz, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		config := in[launchConfig](a, 0)
		s, err := c.stream(config.stream)
		if err != nil {
			return err
		}
		spec := hal.LaunchSpec{Grid: config.grid, Block: config.block, Shared: config.shared}
		if config.count > 0 && config.attributes == 0 {
			return refuse(invalidValue, "there are %d attributes at NULL", config.count)
		}
		values := args{config.attributes}
		events, err := applyAttributes(&spec, s, list[launchAttribute](&values, 0, uint64(config.count)))
		if err != nil {
			return err
		}
		l, err := c.newLaunch(a.handle(1), s.x, spec, a[2], a[3])
		if err == nil {
			err = l.enqueue(c, s.Stream)
		}
		for _, e := range events { // blocks trigger an event, or have begun, at the latest when all have ended
			if err == nil {
				err = s.Record(c.t, e.Event)
			}
		}
		return err
	}},
}
