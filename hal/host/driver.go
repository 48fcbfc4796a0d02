// Package host is the built-in device: real asynchronous streams without any
// hardware.
//
// A stream is a queue and a counter of completed operations. It has no thread: when
// its head operation can run, the stream is given to the scheduler, which runs it on
// a thread of its choice. Operations that take time run on workers, a bounded number
// of threads; functions of the program are handed over as tokens and run on threads
// of the program.
package host

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/pages"
	"halstream/hal/park"
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
	// KernelLimit is after how many instructions, each for all threads of a block, a kernel is
	// taken for one that never ends; 0 means HALSTREAM_KERNEL_LIMIT or 2^34, which is minutes of
	// one processor.
	KernelLimit int
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
	if o.KernelLimit == 0 {
		if o.KernelLimit, err = number("HALSTREAM_KERNEL_LIMIT", 1<<34, math.MaxInt); err != nil {
			return nil, err
		}
	}
	if o.Scheduler == nil {
		o.Scheduler = sched.NewParallel()
	}
	if o.Clock == nil {
		o.Clock = machineClock()
	}
	e := &engine{real: o.Clock, engines: max(2, o.Engines), kernelLimit: int64(o.KernelLimit)}
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
	dev := &Device{eng: d.eng, ordinal: ordinal, last: &epoch{open: true}}
	dev.default_ = &Stream{eng: d.eng, dev: dev}
	dev.default_.level, dev.default_.ordered, dev.default_.legacy = driver.Levels-1, true, true
	dev.pinned = d.pinned
	dev.memory = newMemory(fmt.Sprintf("memory of device %d", ordinal), d.memory)
	d.devices = append(d.devices, dev)
	return dev, nil
}

// AllocHost implements driver.Driver.
func (d *Driver) AllocHost(size uint64) (uint64, error) { return d.pinned.provide(d.eng, size) }

// FreeHost implements driver.Driver.
func (d *Driver) FreeHost(addr uint64) { d.pinned.release(addr) }

// OwnsHost implements driver.Driver.
func (d *Driver) OwnsHost(addr uint64) bool { return d.pinned.owns(addr) }

// Register implements driver.Driver: the host device reads and writes all memory
// alike, so it only has to be there.
func (d *Driver) Register(addr, size uint64) error {
	if !pages.Writable(addr, size) {
		return driver.Errorf(driver.InvalidValue, "register memory",
			"%d bytes at %#x are not writable memory of this process", size, addr)
	}
	return nil
}

// Unregister implements driver.Driver.
func (d *Driver) Unregister(uint64) error { return nil }

// SetSchedule implements driver.Simulator.
func (d *Driver) SetSchedule(text string, c driver.Caller) error {
	stall, err := stallLimit()
	if err != nil && text != "parallel" {
		return err
	}
	next, err := sched.New(text, sched.Options{Caller: c, Stall: stall, Tick: unattendedTick})
	if err != nil {
		return err
	}
	e := d.eng
	e.Lock()
	if e.closed {
		e.Unlock()
		return errClosed("set schedule")
	}
	for _, dev := range d.devices {
		if s := dev.active; s != nil {
			why, titles := s.describe(maxChain), e.titles
			e.titles = nil
			e.Unlock()
			why = withTitles(why, titles)
			return driver.Errorf(driver.NotReady, "set schedule",
				"a schedule begins with no work pending, but %s; synchronize first", why)
		}
	}
	// Attached first: once it is in e.sched, every thread that takes the lock uses it.
	next.Attach(e)
	before := e.sched
	e.use(next, text)
	e.Unlock()
	before.Close()
	return nil
}

// unattendedTick is how often a deterministic schedule checks whether the program
// waits for the device outside the runtime.
var unattendedTick = 50 * time.Millisecond

// stallLimit returns how long a function may run before it counts as waiting for the
// host. It fails with InvalidValue.
func stallLimit() (time.Duration, error) {
	text := os.Getenv("HALSTREAM_STALL_S")
	if text == "" {
		return 5 * time.Second, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= 86400) {
		return 0, driver.Errorf(driver.InvalidValue, "set schedule",
			"HALSTREAM_STALL_S is %q; give a number of seconds above 0", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Schedule implements driver.Simulator.
func (d *Driver) Schedule() string {
	d.eng.Lock()
	defer d.eng.Unlock()
	return d.eng.spec
}

// Deterministic implements driver.Simulator.
func (d *Driver) Deterministic() bool { return !d.eng.parallel.Load() }

// Run implements driver.Simulator.
func (d *Driver) Run() driver.Run {
	d.eng.Lock()
	defer d.eng.Unlock()
	return d.eng.sched.Run()
}

// Now implements driver.Simulator.
func (d *Driver) Now() int64 {
	if d.eng.parallel.Load() {
		return d.eng.real.Now()
	}
	d.eng.mu.Lock()
	defer d.eng.mu.Unlock()
	return d.eng.clock.Now()
}

// Follow implements driver.Simulator.
func (d *Driver) Follow(on bool) {
	d.eng.Lock()
	d.eng.following = on
	d.eng.executed = nil
	d.eng.Unlock()
}

// Executions implements driver.Simulator.
func (d *Driver) Executions() []driver.Execution {
	d.eng.Lock()
	defer d.eng.Unlock()
	done := d.eng.executed
	d.eng.executed = nil
	return done
}

// OnSequence implements driver.Sequencer.
func (d *Driver) OnSequence(f func(driver.Tag)) { d.eng.onSequence = f }

// AbortDevice implements driver.Simulator.
func (d *Driver) AbortDevice(dev driver.Device) int {
	d.eng.Lock()
	defer d.eng.Unlock()
	return dev.(*Device).abort()
}

// AbortStream implements driver.Simulator. An operation that a worker or a host
// function already runs is not interrupted; the body of a node does not run again.
func (d *Driver) AbortStream(s driver.Stream) int {
	d.eng.Lock()
	defer d.eng.Unlock()
	return s.(*Stream).abort()
}

// WorkPending implements driver.Simulator.
func (d *Driver) WorkPending() <-chan struct{} {
	d.eng.Lock()
	defer d.eng.Unlock()
	for _, dev := range d.devices {
		if dev.active != nil {
			return alreadyClosed
		}
	}
	if d.eng.pending == nil {
		d.eng.pending = make(chan struct{})
	}
	return d.eng.pending
}

// alreadyClosed is a channel that is closed.
var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Quiet implements driver.Simulator.
func (d *Driver) Quiet() (quiet bool, mark uint64) {
	const prime = 1099511628211
	d.eng.Lock()
	defer d.eng.Unlock()
	quiet = true
	for _, dev := range d.devices {
		for s := dev.active; s != nil; s = s.next {
			if quiet && s.need() == driver.NeedNothing {
				quiet = false
			}
			for _, n := range []uint64{uint64(dev.ordinal), s.id, s.completed.Load(), s.submitted.Load(), s.pending()} {
				mark = (mark ^ n) * prime
			}
		}
	}
	return quiet, mark
}

// Busy implements driver.Simulator.
func (d *Driver) Busy() []driver.Busy {
	d.eng.Lock()
	defer d.eng.Unlock()
	var found []driver.Busy
	for _, dev := range d.devices {
		for s := dev.active; s != nil; s = s.next {
			found = append(found, s.busy())
		}
	}
	return found
}

// closeLimit is how long Close waits for running work.
const closeLimit = 2 * time.Second

// Close implements driver.Driver. Work that has not started is dropped, and
// threads that wait for it continue. A copy, a fill or a native function that runs
// uses memory of the devices, so Close waits for its end; if that takes longer than
// closeLimit, the memory stays mapped until the process ends.
func (d *Driver) Close() {
	e := d.eng
	e.Lock()
	if e.closed {
		e.Unlock()
		return
	}
	e.closed = true
	before := e.sched
	e.use(closed{}, e.spec)
	e.Unlock()
	before.Close()

	e.Lock()
	for _, dev := range d.devices {
		dev.abort()
		for _, w := range dev.idle {
			w.ended = true
			e.unpark(w.parker)
		}
		dev.idle = nil
	}
	d.runDropped()
	e.Unlock()
	ended := d.waitForWorkers(time.Now().Add(closeLimit))
	e.Lock()
	for _, dev := range d.devices {
		for _, s := range dev.activeStreams() {
			e.releaseThreads(s)
		}
	}
	e.Unlock()
	if !ended {
		return
	}
	d.pinned.unmap()
	for _, dev := range d.devices {
		dev.memory.unmap()
	}
}

// runDropped completes the head operations that abort turned into empty ones.
// The lock is held.
func (d *Driver) runDropped() {
	for again := true; again; {
		again = false
		for _, dev := range d.devices {
			for _, s := range dev.activeStreams() {
				if s.state == sched.Ready {
					d.eng.run(s)
					again = true
				}
			}
		}
	}
}

// waitForWorkers waits until no thread works on memory for a stream, and
// reports false if one still does at the deadline.
func (d *Driver) waitForWorkers(deadline time.Time) bool {
	e := d.eng
	e.Lock()
	defer e.Unlock()
	for _, dev := range d.devices {
		for _, s := range dev.activeStreams() {
			if s.state != sched.Running || s.q.front().kind != opWork {
				continue
			}
			w := park.Get()
			s.waiting.add(waiter{seq: s.completed.Load() + 1, parker: w})
			e.Unlock()
			woken := w.Park(max(0, int64(time.Until(deadline))), 0)
			e.Lock()
			if !woken && s.waiting.take(w) {
				park.Put(w)
				return false
			}
			if !woken {
				e.Unlock()
				w.Park(driver.Forever, 0) // another thread is about to unpark it
				e.Lock()
			}
			park.Put(w)
		}
	}
	return true
}

// errClosed is the error of a call on a backend that was closed.
func errClosed(doing string) error {
	return driver.Errorf(driver.Closed, doing, "the backend was closed; open it again")
}

// closed is the scheduler of an engine that was closed: it implements sched.Scheduler
// and runs nothing.
type closed struct{}

func (closed) Attach(sched.Runner)                                  {}
func (closed) Clock(real sched.Clock) sched.Clock                   { return real }
func (closed) Parallel() bool                                       { return true }
func (closed) Added(sched.Stream, string)                           {}
func (closed) Numbered(sched.Stream)                                {}
func (closed) Ready(sched.Stream)                                   {}
func (closed) Point(sched.Reason, sched.Stream, func() bool, int64) {}
func (closed) Unlocking() bool                                      { return false }
func (closed) Unlocked()                                            {}
func (closed) Run() driver.Run                                      { return driver.Run{} }
func (closed) Close()                                               {}

var (
	_ driver.Driver            = (*Driver)(nil)
	_ driver.Simulator         = (*Driver)(nil)
	_ driver.Device            = (*Device)(nil)
	_ driver.RecoverableDevice = (*Device)(nil)
	_ driver.Stream            = (*Stream)(nil)
	_ driver.Event             = (*Event)(nil)
)
