// Package host is the built-in device: real asynchronous streams without any
// hardware.
//
// A stream is a queue and a counter of completed operations. It has no thread: when
// its head operation can run, the stream is given to the scheduler, which runs it on
// a thread of its choice. Operations that take time run on engines, a bounded number
// of threads; functions of the program are handed over as tokens and run on threads
// of the program.
package host

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/prio"
	"halstream/hal/status"
)

// Options configures the host backend. The zero value is the default.
type Options struct {
	// Devices is their number; 0 means HALSTREAM_HOST_DEVICES or 2.
	Devices int
	// Engines bounds how many operations that take time run at once on one
	// device; 0 means HALSTREAM_HOST_ENGINES or the number of processors, and
	// never less than 2.
	Engines int
	// Memory bounds each device's memory, and the pinned memory, in bytes; 0 means
	// HALSTREAM_HOST_MEMORY or half of the machine's.
	Memory uint64
	// Scheduler decides which stream runs next; nil means the parallel one.
	Scheduler sched.Scheduler
	// Clock is the devices' clock; nil means machineClock.
	Clock sched.Clock
}

// Driver is the host backend.
type Driver struct {
	eng     *engine
	count   int
	memory  uint64
	pinned  memory
	devices []*Device
}

// Open returns a new host backend.
//
// # Errors
//   - InvalidValue: an environment variable is not a number in its range.
func Open(o Options) (*Driver, error) {
	var err error
	if o.Devices == 0 {
		if o.Devices, err = number("HALSTREAM_HOST_DEVICES", 2, 64); err != nil {
			return nil, err
		}
	}
	if o.Engines == 0 {
		if o.Engines, err = number("HALSTREAM_HOST_ENGINES", max(2, runtime.NumCPU()), 1024); err != nil {
			return nil, err
		}
	}
	if o.Memory == 0 {
		if o.Memory, err = memoryLimit(); err != nil {
			return nil, err
		}
	}
	if o.Scheduler == nil {
		o.Scheduler = sched.NewParallel()
	}
	if o.Clock == nil {
		o.Clock = machineClock()
	}
	e := &engine{real: o.Clock, engines: max(2, o.Engines)}
	e.use(o.Scheduler, "parallel")
	e.sched.Attach(e)
	return &Driver{eng: e, count: o.Devices, memory: o.Memory, pinned: newMemory("pinned memory", o.Memory)}, nil
}

// number reads a positive number from the environment.
func number(variable string, otherwise, most int) (int, error) {
	text, ok := os.LookupEnv(variable)
	if !ok || text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, driver.Errorf(driver.InvalidValue, "open host backend",
			"%s is %q; give a whole number from 1 to %d", variable, text, most)
	}
	return n, nil
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return "host" }

// DeviceCount implements driver.Driver.
func (d *Driver) DeviceCount() int { return d.count }

// Open implements driver.Driver.
func (d *Driver) Open(ordinal int) (driver.Device, error) {
	dev := &Device{eng: d.eng, ordinal: ordinal, last: &epoch{open: true}, order: status.NewWord(), runsOn: -1}
	dev.default_ = dev.newStream()
	dev.default_.level, dev.default_.ordered, dev.default_.legacy = driver.Levels-1, true, true
	dev.default_.words.Special.Or(status.Bound)
	dev.pinned = d.pinned
	dev.memory = newMemory(fmt.Sprintf("memory of device %d", ordinal), d.memory)
	d.devices = append(d.devices, dev)
	return dev, nil
}

// Device is one host device.
type Device struct {
	eng      *engine
	ordinal  int
	default_ *Stream
	last     *epoch         // of the legacy order, the one that takes new work
	order    *atomic.Uint32 // not 0 while a new operation of an ordered stream may have to wait for the legacy one's
	active   *Stream        // list of streams with work
	busy     int            // engines at work
	// leaving says how many of these have no more to do, as a thread that took part
	// has ended their copy, and are about to look for work. next is for them.
	leaving  int
	next     []assigned
	runsOn   int32 // the processor of the engine that began, or ended, work last; -1: not known
	resting  []*resting
	memory   memory
	pinned   memory              // of the driver
	backlog  prio.Queue[*Stream] // streams whose operation waits for an engine
	branches branches
}

// Name implements driver.Device.
func (d *Device) Name() string {
	return fmt.Sprintf("host device %d (%s, %d processors)", d.ordinal, runtime.GOARCH, runtime.NumCPU())
}

// Legacy implements driver.Device.
func (d *Device) Legacy() driver.Stream { return d.default_ }

// NewStream implements driver.Device.
func (d *Device) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	s := d.newStream()
	s.id, s.level, s.ordered = o.ID, o.Level, o.Ordered
	if s.ordered {
		s.words.Order = d.order
	}
	return s, nil
}

// newStream returns a stream with words of its own, which go to a later one when
// nothing refers to the stream any more: as long as it has work, its device does.
func (d *Device) newStream() *Stream {
	w := status.New(d.ordinal)
	s := &Stream{eng: d.eng, dev: d, words: w}
	s.first = w.Submitted.Load()
	runtime.AddCleanup(s, (*status.Stream).Free, w)
	return s
}

// NewEvent implements driver.Device.
func (d *Device) NewEvent(o driver.EventOptions) (driver.Event, error) {
	return &Event{eng: d.eng, dev: d, opts: o}, nil
}

// Point implements driver.Device.
func (d *Device) Point() driver.Point {
	d.eng.Lock()
	defer d.eng.Unlock()
	if !d.eng.parallel.Load() {
		return d.all()
	}
	var ps driver.Points
	for s := d.active; s != nil; s = s.next {
		ps = append(ps, point{d.eng, place{s, s.words.Submitted.Load()}})
	}
	return ps
}

// Pending implements driver.Device.
func (d *Device) Pending() int {
	d.eng.Lock()
	defer d.eng.Unlock()
	n := 0
	for s := d.active; s != nil; s = s.next {
		if s.parent() == nil { // a launch counts once
			n += int(s.pending())
		}
	}
	return n
}

// AbortDevice implements driver.Simulator.
func (d *Driver) AbortDevice(dev driver.Device) int {
	d.eng.Lock()
	defer d.eng.Unlock()
	return dev.(*Device).abort()
}

// abort drops what has not started. The lock is held.
func (d *Device) abort() (n int) {
	for _, s := range d.activeStreams() {
		n += s.abort()
	}
	return n
}

// activate adds a stream that has work now. The lock is held.
func (d *Device) activate(s *Stream) {
	if e := d.eng; e.pending != nil { // once after each call of WorkPending
		close(e.pending)
		e.pending = nil
	}
	s.prev, s.next = nil, d.active
	if d.active != nil {
		d.active.prev = s
	}
	d.active = s
}

func (d *Device) deactivate(s *Stream) {
	if s.prev == nil {
		d.active = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Simulator = (*Driver)(nil)
	_ driver.Device    = (*Device)(nil)
	_ driver.Stream    = (*Stream)(nil)
	_ driver.Event     = (*Event)(nil)
)
