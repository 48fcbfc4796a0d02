package hal

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"halstream/hal/driver"
	"halstream/hal/host"
	"halstream/hal/status"
)

// Runtime is one opened backend with its devices.
type Runtime struct {
	drv       driver.Driver
	devices   []*Device
	skipped   []string
	listeners listeners
	inspector atomic.Pointer[Inspector]
	sources   sources
	watching  atomic.Int32 // functions that run and are watched
	// Funcs is the queue from which threads take the functions on streams.
	Funcs *Queue
	// live counts the streams and events that are not closed.
	live   atomic.Int64
	ended  atomic.Bool
	memory memoryState
	// sim is drv if its devices are simulated, vendor is drv if it is the driver of a
	// vendor's library; else they are nil.
	sim      driver.Simulator
	vendor   driver.VendorDriver
	eventIDs atomic.Uint64
	status   *atomic.Uint32
	// lost is set for good once a native function has made a device useless.
	lost    atomic.Bool
	gateIDs atomic.Uint64
	// captures are the captures in progress. kept and places are set by SetKept and SetPlaces.
	captures captures
	kept     atomic.Pointer[func(uint64)]
	places   atomic.Pointer[func(uint32) string]
	// strictReuse is set while blocks are given out again as early as the mirrored
	// allocators do it.
	strictReuse atomic.Bool
}

// Open makes a runtime of a driver, which the runtime closes. threads bounds how many
// threads may run functions at once.
//
// # Errors
//   - [ErrAbsent]: the driver has no device.
//   - The error of the driver for a device that it cannot open.
func Open(drv driver.Driver, threads int) (*Runtime, error) {
	if err := takePoller(); err != nil {
		drv.Close()
		return nil, err
	}
	rt := &Runtime{drv: drv, Funcs: newQueue(threads), status: status.NewWord()}
	rt.listeners.status = rt.status
	rt.sim, _ = drv.(driver.Simulator)
	rt.vendor, _ = drv.(driver.VendorDriver)
	if q, ok := drv.(driver.Sequencer); ok {
		q.OnSequence(rt.listeners.notifier.sequence)
	}
	for i := range drv.DeviceCount() {
		d, err := drv.Open(i)
		if err != nil {
			drv.Close()
			return nil, err
		}
		dev := &Device{rt: rt, ordinal: i, d: d, levels: driver.Levels}
		dev.losable, _ = d.(driver.LosableDevice)
		if dev.vendor, _ = d.(driver.VendorDevice); dev.vendor != nil {
			dev.levels = max(1, min(driver.Levels, dev.vendor.Priorities()))
		}
		dev.legacy = &Stream{dev: dev, d: d.Legacy(), level: uint8(dev.levels - 1), isDefault: true}
		rt.devices = append(rt.devices, dev)
	}
	if len(rt.devices) == 0 {
		drv.Close()
		return nil, driver.Errorf(driver.BackendAbsent, "open backend", "%s has no device", drv.Name())
	}
	return rt, nil
}

// takePoller has Go's runtime take the file descriptors of its poller now. It would take them with the first timer, and
// end the process where there are none left.
func takePoller() error {
	const needed = 4
	var err error
	var free []int
	for range needed {
		var fd int
		if fd, err = syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
			break
		}
		free = append(free, fd)
	}
	for _, fd := range free {
		_ = syscall.Close(fd)
	}
	if err != nil {
		return driver.Errorf(driver.BackendAbsent, "open backend", "the process has %d file descriptors left (%v), and the "+
			"runtime needs %d: close some, or raise the limit (ulimit -n)", len(free), err, needed)
	}
	// The poller is made by the first timer that has a function: one of the time package with a channel has none until
	// somebody waits for it.
	time.AfterFunc(time.Hour, func() {}).Stop()
	return nil
}

// Opener opens a backend. If the backend cannot be used it returns an error of kind
// BackendAbsent whose text gives the reason.
type Opener func() (driver.Driver, error)

var (
	openersMu sync.Mutex
	openers   = map[string]Opener{}
	ranks     = map[string]int{}
)

// Register adds a backend under a name. "auto" opens the usable backend with the
// lowest rank. Register panics if the name is taken.
func Register(name string, rank int, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	if _, taken := openers[name]; taken || open == nil {
		panic("hal: backend " + name + " registered twice or without an opener")
	}
	openers[name], ranks[name] = open, rank
}

func init() {
	Register("host", 100, func() (driver.Driver, error) { return host.Open(host.Options{}) })
}

// OpenBackend opens a backend by name. "auto" opens the first by rank that can be
// used; Skipped then returns why those before it could not.
//
// # Errors
//   - [ErrAbsent]: it cannot be used here; the text gives the reason.
//   - [ErrInvalidValue]: no backend has this name, or a setting of the backend is
//     invalid. "auto" reports such a setting at once, too.
//
// Contract: D3.
func OpenBackend(name string, threads int) (*Runtime, error) {
	openersMu.Lock()
	var names []string
	for n := range openers {
		names = append(names, n)
	}
	openersMu.Unlock()
	sort.Slice(names, func(i, j int) bool { return ranks[names[i]] < ranks[names[j]] })
	if name != "auto" {
		open, ok := openers[name]
		if !ok {
			return nil, driver.Errorf(driver.InvalidValue, "use backend",
				"no backend is called %q; choose auto, %s", name, strings.Join(names, ", "))
		}
		drv, err := open()
		if err != nil {
			return nil, err
		}
		return Open(drv, threads)
	}
	var reasons []string
	for _, n := range names {
		drv, err := openers[n]()
		if err == nil {
			var rt *Runtime
			if rt, err = Open(drv, threads); err == nil {
				rt.skipped = reasons
				return rt, nil
			}
		}
		if errors.Is(err, ErrInvalidValue) {
			return nil, err // a wrong setting, which the user must see
		}
		text := err.Error()
		if e, ok := err.(*Error); ok {
			text = e.Text
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", n, text))
	}
	return nil, driver.Errorf(driver.BackendAbsent, "use backend", "%s", strings.Join(reasons, "; "))
}

// Name returns the backend's name.
func (rt *Runtime) Name() string { return rt.drv.Name() }

// Skipped returns why each backend that "auto" prefers to this one could not be
// used: "cuda: ...".
//
// Contract: D3.
func (rt *Runtime) Skipped() []string { return rt.skipped }

// Devices returns the number of devices.
//
// Contract: D1.
func (rt *Runtime) Devices() int { return len(rt.devices) }

// Device returns a device by its ordinal.
//
// # Errors
//   - [ErrInvalidDevice]: there is no such device.
//
// Contract: D1.
func (rt *Runtime) Device(ordinal int) (*Device, error) {
	if ordinal < 0 || ordinal >= len(rt.devices) {
		return nil, driver.Errorf(driver.InvalidDevice, "device",
			"device %d does not exist: the %s backend has %d, numbered from 0",
			ordinal, rt.drv.Name(), len(rt.devices))
	}
	return rt.devices[ordinal], nil
}

// Live returns the number of streams and events that are not closed.
//
// Contract: L5.
func (rt *Runtime) Live() int { return int(rt.live.Load()) }

// Pending returns the number of operations that are enqueued and not done.
func (rt *Runtime) Pending() (n int) {
	for range rt.refreshRounds() {
		rt.refresh()
		n = 0
		for _, d := range rt.devices {
			n += d.d.Pending()
		}
		if n == 0 {
			break
		}
	}
	return n
}

// Close ends the runtime: threads that wait for functions are released, work
// that has not started is dropped, and copies, fills and native functions that run
// are waited for, since they access memory that is freed with the runtime. Closing
// again does nothing.
//
// Contract: L6.
func (rt *Runtime) Close() {
	if !rt.ended.CompareAndSwap(false, true) {
		return
	}
	rt.Funcs.Close()
	for _, d := range rt.devices {
		d.pool.drain(d)
	}
	rt.drv.Close()
}

// SetSchedule begins a new run under a schedule: "parallel", the default, or
// the text of a deterministic one, under which the device moves only during
// calls and a program with one thread does the same each time.
//
// # Errors
//   - [ErrNotSupported]: the backend's order cannot be chosen.
//   - [ErrInvalidValue]: no schedule has this text.
//   - [ErrNotReady]: work is pending; the text names it.
//   - [ErrInHostFunction].
//
// Contract: X1.
func (rt *Runtime) SetSchedule(t *Thread, text string, c driver.Caller) error {
	const op = "set schedule"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if rt.sim == nil {
		return driver.Errorf(driver.NotSupported, op, "schedules need the host device, and the backend in use is %s: "+
			"its hardware chooses the order; set HALSTREAM_BACKEND=host", rt.Name())
	}
	if err := rt.sim.SetSchedule(text, c); err != nil {
		return err
	}
	// What a run reads before it writes it must not depend on earlier runs. Memory
	// that the pool takes from the device is overwritten, so the pool begins empty.
	rt.reapAll()
	for _, d := range rt.devices {
		d.pool.trim(d, 0)
	}
	return nil
}

// OrderCalls has a simulated device that is on real threads run operations in the order of the calls from now on, and
// with on false puts it back on real threads where it was that. It first waits a while for work that is pending. Where some
// stays, and under any other schedule nothing changes.
//
// # Errors: as for SetSchedule, but for ErrNotReady.
//
// Contract: X21.
func (rt *Runtime) OrderCalls(t *Thread, on bool, c driver.Caller) error {
	if err := t.checkCaller("set schedule"); err != nil {
		return err
	}
	from, to := "parallel", driver.Unlogged
	if !on {
		from, to = to, from
	}
	if rt.sim == nil || rt.Schedule() != from {
		return nil
	}
	rt.settle()
	err := rt.SetSchedule(t, to, c)
	if errors.Is(err, ErrNotReady) {
		return nil
	}
	return err
}

// For how long a change of the schedule waits for pending work, and how often it looks.
const (
	settleLimit = time.Second
	settleLook  = 200 * time.Microsecond
)

// settle waits until no work is pending, or what is pending waits for the program, or for a while.
func (rt *Runtime) settle() {
	waits, mark := false, uint64(0)
	for end := time.Now().Add(settleLimit); rt.Pending() > 0 && time.Now().Before(end); time.Sleep(settleLook) {
		quiet, now := rt.Quiet()
		if quiet && waits && now == mark {
			return
		}
		waits, mark = quiet, now
	}
}

// Deterministic reports whether a deterministic schedule is in force, under which
// the devices move only during calls.
//
// Contract: X1.
func (rt *Runtime) Deterministic() bool {
	return rt.sim != nil && rt.sim.Deterministic()
}

// Schedule returns the text of the schedule in force.
func (rt *Runtime) Schedule() string {
	if rt.sim != nil {
		return rt.sim.Schedule()
	}
	return "parallel"
}

// Run returns the calls and the operations that ran since a deterministic schedule
// was set, in order.
//
// Contract: X1.
func (rt *Runtime) Run() driver.Run {
	if rt.sim != nil {
		return rt.sim.Run()
	}
	return driver.Run{}
}

// processStart is the origin of the clock of Now where no device is simulated.
var processStart = time.Now()

// Now returns the time of operations, in nanoseconds of the simulated device's clock
// or else of a monotonic one.
func (rt *Runtime) Now() int64 {
	if rt.sim != nil {
		return rt.sim.Now()
	}
	return int64(time.Since(processStart))
}

// FollowExecution switches on or off that the backend records when operations begin
// and end. It records only operations that have listeners.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot record it.
//
// Contract: O6.
func (rt *Runtime) FollowExecution(on bool) error {
	if rt.sim == nil {
		return driver.Errorf(driver.NotSupported, "follow execution",
			"the %s backend does not record when operations run", rt.Name())
	}
	rt.sim.Follow(on)
	return nil
}

// Executions returns the begins and ends of operations recorded since the last call.
//
// Contract: O6.
func (rt *Runtime) Executions() []driver.Execution {
	if rt.sim != nil {
		return rt.sim.Executions()
	}
	return nil
}

// ReportsWaits reports whether the backend can list what its streams wait for (Busy).
func (rt *Runtime) ReportsWaits() bool {
	return rt.sim != nil
}

// Quiet reports whether the runtime makes no progress by itself: every pending stream
// waits for something, and no thread is about to take a function, or has been woken for one
// and does not run yet, as it gets no processor or Python's lock. Functions that run
// are not considered. If two calls return the same mark, the same operations were
// pending at both.
//
// Contract: W1, W2.
func (rt *Runtime) Quiet() (quiet bool, mark uint64) {
	if rt.sim == nil {
		return false, 0
	}
	quiet, mark = rt.sim.Quiet()
	return quiet && waking.Load() == 0 && rt.Funcs.settled(), mark
}

// WorkPending returns a channel that is closed once a stream has pending work: at once if
// one has. It is never closed where the backend does not say so.
//
// Contract: W5.
func (rt *Runtime) WorkPending() <-chan struct{} {
	if rt.sim == nil {
		return nil
	}
	return rt.sim.WorkPending()
}

// AwaitsHost reports whether a stream waits for something that only a thread of the
// program can end: a gate, a wait for a value or for a settable event, a report. A
// thread that may be the one that has to act must not wait for streams without a limit.
//
// Contract: M16.
func (rt *Runtime) AwaitsHost() bool {
	if rt.vendor != nil {
		return rt.vendor.AwaitsHost()
	}
	for _, b := range rt.Busy() {
		switch b.Need {
		case driver.NeedGate, driver.NeedEvent, driver.NeedValue, driver.NeedReport:
			return true
		}
	}
	return false
}

// Busy returns all streams with pending work, and what each waits for. It returns
// none if the backend cannot list them (ReportsWaits).
//
// Contract: W1, W2.
func (rt *Runtime) Busy() []driver.Busy {
	if rt.sim != nil {
		return rt.sim.Busy()
	}
	return nil
}

// Error is the error type of every call of this package.
type Error = driver.Error

// One error for each kind, to be matched with errors.Is.
var (
	ErrNotReady       = &Error{Kind: driver.NotReady, Text: "not ready"}
	ErrInvalidHandle  = &Error{Kind: driver.InvalidHandle, Text: "invalid handle"}
	ErrClosed         = &Error{Kind: driver.Closed, Text: "closed"}
	ErrInvalidValue   = &Error{Kind: driver.InvalidValue, Text: "invalid value"}
	ErrInvalidDevice  = &Error{Kind: driver.InvalidDevice, Text: "invalid device"}
	ErrWrongDevice    = &Error{Kind: driver.WrongDevice, Text: "wrong device"}
	ErrWrongContext   = &Error{Kind: driver.WrongContext, Text: "wrong context"}
	ErrNoContext      = &Error{Kind: driver.NoContext, Text: "no context"}
	ErrTiming         = &Error{Kind: driver.TimingDisabled, Text: "timing disabled"}
	ErrCapture        = &Error{Kind: driver.Capture, Text: "capture"}
	ErrUnrecorded     = &Error{Kind: driver.Unrecorded, Text: "unrecorded"}
	ErrNotSupported   = &Error{Kind: driver.NotSupported, Text: "not supported"}
	ErrNotSubscribed  = &Error{Kind: driver.NotSubscribed, Text: "not subscribed"}
	ErrAbsent         = driver.ErrAbsent
	ErrHostFunction   = &Error{Kind: driver.HostFunction, Text: "host function failed"}
	ErrInHostFunction = &Error{Kind: driver.InHostFunction, Text: "in host function"}
	ErrTimeout        = &Error{Kind: driver.Timeout, Text: "timed out"}
	ErrAborted        = &Error{Kind: driver.Aborted, Text: "aborted"}
	ErrDeviceLost     = &Error{Kind: driver.DeviceLost, Text: "device lost"}
	ErrOutOfMemory    = &Error{Kind: driver.OutOfMemory, Text: "out of memory"}
)

// otherRuntimeError rejects an object of another Runtime: a process may open
// several, and nothing orders the work of one against that of another.
func otherRuntimeError(op, what string) *Error {
	return driver.Errorf(driver.WrongDevice, op,
		"%s belongs to another Runtime; only objects of one Runtime can be ordered with each other", what)
}

// closedError rejects the use of a closed object.
func closedError(op, what string) *Error {
	return driver.Errorf(driver.Closed, op, "the %s is closed; create a new one", what)
}

// Fingerprint returns 16 digits that stand for what each thread has called in the run under the
// schedule, whatever turns the threads took.
func (rt *Runtime) Fingerprint() string {
	threads := map[uint32]uint64{}
	for _, c := range rt.Run().Calls {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s %d %d", c.Thread, c.Kind, c.Stream, threads[c.Thread])
		threads[c.Thread] = h.Sum64()
	}
	var sum uint64
	for _, h := range threads {
		sum += h
	}
	return fmt.Sprintf("%016x", sum)
}

// NewEvent makes an event. With d nil it belongs to the device of its first record.
//
// # Errors
//   - [ErrInvalidValue]: no event has this kind, or the event would be both
//     interprocess and timed.
//   - [ErrWrongDevice]: d belongs to another Runtime.
//   - [ErrInHostFunction].
//
// Contract: E1, E7.
func (rt *Runtime) NewEvent(t *Thread, d *Device, o EventOptions) (*Event, error) {
	if err := t.checkCaller("create event"); err != nil {
		return nil, err
	}
	if o.Kind > Recorded {
		return nil, driver.Errorf(driver.InvalidValue, "create event", "there is no kind %d of events", o.Kind)
	}
	e := &Event{rt: rt, id: rt.eventIDs.Add(1), opts: o}
	if d != nil {
		if d.rt != rt {
			return nil, e.otherRuntime("record")
		}
		if err := e.make(d); err != nil {
			return nil, err
		}
	}
	rt.live.Add(1)
	if rt.listened() {
		rt.notifyHost(Operation{Kind: OpNewEvent, Event: e, Thread: t})
	}
	return e, nil
}

// OpenEvent makes an event that stands for one of another process: for whichever record either of them has made last.
//
// # Errors
//   - [ErrInvalidValue]: handle is none, or the process that made it has closed the event or ended, or belongs to another user.
//   - [ErrWrongContext]: this process made the handle.
//   - [ErrWrongDevice]: there is no such device here.
//   - [ErrNotSupported]: this backend or system cannot.
//   - [ErrInHostFunction], [ErrOutOfMemory].
//
// Contract: E10. Source: CUDA driver API, cuIpcOpenEventHandle.
func (rt *Runtime) OpenEvent(t *Thread, handle ShareHandle) (*Event, error) {
	const op = "open event of another process"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	d, device, m, err := sharedBy(rt, op, handle, eventMark, "an event")
	if err != nil {
		return nil, err
	}
	if m.Size != recordPageSize {
		return nil, driver.Errorf(driver.InvalidValue, op, "this is no handle of an event of this version of halstream")
	}
	addr, err := device.Map(m)
	if err != nil {
		return nil, err
	}
	e, err := rt.NewEvent(t, d, EventOptions{Interprocess: true})
	if err != nil {
		device.Unmap(addr, m.Size)
		return nil, err
	}
	e.shared.Store(newSharedRecords(d, device, addr, m, false))
	return e, nil
}

// SetKept sets the function that is called with the token of each function that a graph
// keeps, which can run any number of times: until it is dropped. It is called on the
// thread that makes the call.
//
// Contract: G6.
func (rt *Runtime) SetKept(f func(token uint64)) { rt.kept.Store(&f) }

// Status returns the word in which C code sees by the bits of package status what the runtime does.
func (rt *Runtime) Status() *atomic.Uint32 { return rt.status }

// NewGraph makes a graph without nodes.
//
// # Errors
//   - [ErrNotSupported]: the backend has no graphs.
//   - [ErrInHostFunction].
//
// Contract: G5.
func (rt *Runtime) NewGraph(t *Thread) (*Graph, error) {
	const op = "create graph"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if _, err := rt.graphDriver(op); err != nil {
		return nil, err
	}
	return rt.newGraph(), nil
}

func (rt *Runtime) newGraph() *Graph { return &Graph{rt: rt, keep: newKeep(rt)} }

// graphDriver returns the driver's graphs. It fails with NotSupported if there are none.
func (rt *Runtime) graphDriver(op string) (driver.GraphDriver, error) {
	if g, ok := rt.drv.(driver.GraphDriver); ok {
		return g, nil
	}
	return nil, driver.Errorf(driver.NotSupported, op,
		"graphs are not built yet for the %s backend; use the host backend, or enqueue the operations one by one", rt.Name())
}

// SetPlaces sets the function that returns the text of a place of the program, such as
// "app.py:41", for the number that the function of SetSites has returned.
func (rt *Runtime) SetPlaces(f func(site uint32) string) { rt.places.Store(&f) }

// at returns " at" and the place of the program that a number stands for, "" if unknown.
func (rt *Runtime) at(site uint32) string {
	if f := rt.places.Load(); f != nil && site != 0 {
		if text := (*f)(site); text != "" {
			return " at " + text
		}
	}
	return ""
}

// CheckUnsafe rejects a call that is unsafe while streams capture, such as an
// allocation, as the modes of the captures and of the calling thread demand. Captures
// that forbid it are invalidated.
//
// # Errors: [ErrCapture], [ErrInHostFunction].
//
// Contract: G2. Source: CUDA driver API, cuThreadExchangeStreamCaptureMode.
func (rt *Runtime) CheckUnsafe(t *Thread, op string) error {
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if rt.captures.count.Load() == 0 || t == nil || t.captureMode == RelaxedMode {
		return nil
	}
	a := &rt.captures
	a.mu.Lock()
	var found []*Capture
	for _, c := range a.active {
		forbids := c.thread == t && c.mode != RelaxedMode ||
			t.captureMode == GlobalMode && c.thread != t && c.mode == GlobalMode
		if forbids && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	a.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	err := captureError(codeUnsupported, op, "this call is unsafe while %s captures: make it before the capture, "+
		"or capture in thread-local or relaxed mode", found[0].origin.title())
	for _, c := range found {
		_ = c.fail(err)
	}
	return err
}

// NoteLossesReported says that the program was told with which error each of the devices
// that are lost now was lost. Of calls that fail the caller of this package knows whether
// the program gets their error.
//
// Contract: D7.
func (rt *Runtime) NoteLossesReported() {
	for _, d := range rt.devices {
		if d.loss() != nil {
			d.lossReported.Store(true)
		}
	}
}
