package hal

/*
#include <stdint.h>
#include <stdlib.h>

// Called by the thread that enqueues a copy; ends the process if there is no memory.
static uint64_t hs_stage_alloc(uint64_t size) {
	void *buffer = malloc(size);
	if (buffer == NULL) abort();
	return (uint64_t)(uintptr_t)buffer;
}

// Called by the same thread if the copy was not enqueued after all.
static void hs_stage_free(uint64_t buffer) { free((void *)(uintptr_t)buffer); }
*/
import "C"

import (
	"cmp"
	"slices"

	"halstream/hal/bestfit"
	"halstream/hal/driver"
	"halstream/hal/native"
	"halstream/hal/pages"
)

// Nop enqueues an operation that does nothing.
//
// # Errors: [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
func (s *Stream) Nop(t *Thread) error {
	if err := s.checkEnqueue(t, "nop"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addNode(s, &Node{kind: driver.EmptyNode})
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpNop, Thread: t})
	}
	return s.settle(t, id, s.d.Nop(id))
}

// Delay enqueues an operation that keeps an engine busy for ns nanoseconds.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
func (s *Stream) Delay(t *Thread, ns int64) error {
	if err := s.checkEnqueue(t, "delay"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addNode(s, &Node{kind: driver.DelayNode, spec: &driver.GraphWork{Delay: ns}})
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpDelay, Thread: t})
	}
	return s.settle(t, id, s.d.Delay(ns, id))
}

// Gate enqueues an operation that blocks s until the gate is opened.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: O3.
func (s *Stream) Gate(t *Thread) (driver.Gate, error) {
	if err := s.checkEnqueue(t, "gate"); err != nil {
		return nil, err
	}
	if c := s.capture.Load(); c != nil {
		return nil, c.refuse(s, "gate", "wait for an external event instead")
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpGate, Thread: t})
	}
	opened, err := s.d.Gate(s.dev.rt.gateIDs.Add(1), id)
	if id != 0 {
		s.dev.rt.listeners.endAnnounce(id, err)
	}
	return opened, err
}

// Accesses is what a function works on.
type Accesses struct {
	Reads, Writes []Range
	// Reached is memory that the function can reach without declaring it: where
	// functions can be watched, what it changes there counts as written.
	Reached []Range
	// Complete says that it works on nothing else, also where it has named no range.
	Complete bool
}

// Native enqueues a call of the C function at fn, void f(void *), with arg.
//
// # Errors
//   - [ErrInvalidValue]: fn is 0.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M11, M12.
func (s *Stream) Native(t *Thread, fn, arg uint64, a Accesses) error {
	const op = "call native"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if fn == 0 {
		return driver.Errorf(driver.InvalidValue, op, "the function's address is 0")
	}
	if c := s.capture.Load(); c != nil {
		return c.addNode(s, &Node{kind: driver.NativeNode, spec: &driver.GraphWork{Native: &driver.Native{Fn: fn, Arg: arg}},
			reads: a.Reads, writes: a.Writes, complete: a.Complete, blocks: s.dev.rt.blocksOf(a.Reads, a.Writes)})
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpNative, Thread: t, Reads: a.Reads, Writes: a.Writes, Complete: a.Complete})
	}
	spec := driver.Native{Fn: fn, Arg: arg, Tag: id}
	if id != 0 {
		if watch := s.dev.rt.newWideWatch(id, a); watch != nil {
			spec.Before, spec.After = watch.onThread()
		}
	}
	blocks := s.beginUses("a native function", a.Reads, a.Writes)
	return s.settle(t, id, s.using(blocks, func() error { return s.d.Native(spec) }))
}

// HostFunc enqueues a function: when s reaches it, a thread that serves the runtime's
// queue receives token, and later work waits until that thread reports the end. A
// report queue that s is subscribed to does not receive it: it receives reports only.
//
// # Errors
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: H1, H3, A10.
func (s *Stream) HostFunc(t *Thread, token uint64) error { return s.HostFuncOn(t, token, Accesses{}) }

// HostFuncOn is HostFunc for a function with declared accesses. The memory of blocks
// it accesses is not reused before it has ended.
//
// # Errors: as for HostFunc.
//
// Contract: H1, H3, M11.
func (s *Stream) HostFuncOn(t *Thread, token uint64, a Accesses) error {
	if err := s.checkEnqueue(t, "call"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addFunc(s, token, a, 0)
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpCall, Thread: t, Token: token, Reads: a.Reads, Writes: a.Writes, Complete: a.Complete})
	}
	f := driver.HostFunc{Token: token, Sink: s, Tag: id}
	if id != 0 {
		if w := s.dev.rt.newWideWatch(id, a); w != nil {
			f.Sink = watchSink{s, w}
		}
	}
	if len(a.Reads)+len(a.Writes) == 0 {
		return s.settle(t, id, s.d.HostFunc(f))
	}
	blocks := s.beginUses("a function", a.Reads, a.Writes)
	return s.settle(t, id, s.using(blocks, func() error { return s.d.HostFunc(f) }))
}

// HostFuncNoWait enqueues a function whose end neither later work nor a synchronize
// waits for: a thread receives token when s reaches it.
//
// # Errors: as for HostFunc.
//
// Contract: H3, M12.
func (s *Stream) HostFuncNoWait(t *Thread, token uint64) error {
	if err := s.checkEnqueue(t, "pass"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addToken(s, nil, token)
	}
	return s.settle(t, 0, s.d.HostFunc(driver.HostFunc{Token: token, Sink: s, Passing: true}))
}

// beginUses marks every block that contains the start of a range as used on s by the
// operation that what names, and returns those blocks.
func (s *Stream) beginUses(what string, lists ...[]Range) []*Block {
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*Block
	for _, list := range lists {
		for _, r := range list {
			if b := m.blocks.Find(r.Start); b != nil {
				b.beginUse(s, what)
				found = append(found, b)
			}
		}
	}
	return found
}

// Abort drops the pending work of s except what already runs, and returns the number
// of operations dropped. A thread blocked in Synchronize gets [ErrAborted].
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: A8.
func (s *Stream) Abort(t *Thread) (int, error) {
	if err := s.checkNotCaptured(t, "abort"); err != nil {
		return 0, err
	}
	sim := s.dev.rt.sim
	if sim == nil {
		return 0, driver.Errorf(driver.NotSupported, "abort", "the %s backend cannot drop enqueued work", s.dev.rt.Name())
	}
	return sim.AbortStream(s.d), nil
}

// CopyCall is the kind of call that a copy is made by. It decides when the call returns,
// and what it orders for the host.
type CopyCall uint8

const (
	// EnqueuedCopy is [Stream.Copy]: where it waits, the host comes after the copy.
	EnqueuedCopy CopyCall = iota
	// BlockingCopy is CUDA's copy without the suffix Async. It always waits.
	BlockingCopy
	// AsyncCopy is CUDA's copy with that suffix. It waits as [Stream.Copy] does.
	AsyncCopy
	// StagedCopy is a copy of CANN's. It waits for every copy from or to pageable memory.
	StagedCopy
	// FillingCopy is a copy by which the runtime fills memory with elements of more than 4 bytes: to listeners it is
	// a fill. It waits as [Stream.Copy] does, but not for copies between pinned blocks.
	FillingCopy
	copyCalls
)

// hostOrder is what a copy orders for the host, as listeners are notified of it: what the
// vendor's call guarantees, which may be less than what the backend does.
type hostOrder uint8

const (
	// ordersAll: where the call waits, the host comes after the work on the stream, the
	// copy included.
	ordersAll hostOrder = iota
	// ordersEarlier: the host comes after what was enqueued before the copy, and may change the source.
	ordersEarlier
	// ordersSource: the host may change the source.
	ordersSource
	// ordersNothing: the call may return at once.
	ordersNothing
)

// waits reports whether a copy of a size between blocks returns only when it is done.
func (c CopyCall) waits(src, dst *Block, size uint64) bool {
	if c == BlockingCopy || dst == nil || c != FillingCopy && src.onHost() && dst.onHost() {
		return true
	}
	return src == nil && (c == StagedCopy || size > maxStaged)
}

// orders returns what a copy between blocks orders for the host.
func (c CopyCall) orders(src, dst *Block) hostOrder {
	switch {
	case c == EnqueuedCopy, c == StagedCopy, c == FillingCopy, src.onHost() && dst.onHost():
		return ordersAll
	case c == BlockingCopy && src == nil:
		return ordersEarlier
	case src == nil:
		return ordersSource
	case c == BlockingCopy && !src.onHost() && !dst.onHost(), c == AsyncCopy && dst == nil:
		return ordersNothing
	}
	return ordersAll
}

// CopyAs is Copy by another kind of call. What the host comes after is what the vendor
// documents, which listeners are notified of, whatever the backend does; "nothing" includes
// calls that wait here:
//
//	from      to        BlockingCopy                  AsyncCopy          StagedCopy
//	host      host      the copy                      the copy           the copy
//	device    pinned    the copy                      nothing            nothing
//	device    pageable  the copy                      nothing            the copy
//	pinned    device    the copy                      nothing            nothing
//	pageable  device    what was enqueued before it,  that the source    the copy
//	                    and that the source was read  was read
//	device    device    nothing                       nothing            nothing
//
// Managed memory counts as that of a device.
//
// # Errors: as for Copy, and [ErrInvalidValue] for a kind that does not exist.
//
// Contract: M5, M6, V8, V9. Source: CUDA driver API, "API synchronization behavior",
// Memcpy; CANN, aclrtMemcpyAsync.
func (s *Stream) CopyAs(t *Thread, c CopySpec, call CopyCall) (driver.Point, error) {
	if call >= copyCalls {
		return nil, driver.Errorf(driver.InvalidValue, "copy", "there is no kind %d of copies", call)
	}
	if call == BlockingCopy && s.capture.Load() == nil {
		if err := s.dev.rt.CheckUnsafe(t, "copy"); err != nil {
			return nil, err
		}
	}
	return s.copy(t, c, call)
}

// FillBlocking is Fill as a call that blocks where the target is memory of the host, or
// managed. The result, if not nil, is the point that the caller waits for.
//
// # Errors: as for Fill.
//
// Contract: M8, V8. Source: CUDA driver API, "API synchronization behavior", Memset,
// synchronous.
func (s *Stream) FillBlocking(t *Thread, dst uint64, value uint32, size uint8, count uint64) (driver.Point, error) {
	captured := s.capture.Load() != nil
	if !captured {
		if err := s.dev.rt.CheckUnsafe(t, "fill"); err != nil {
			return nil, err
		}
	}
	if err := s.Fill(t, dst, value, size, count); err != nil || count == 0 || captured {
		return nil, err
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	b := m.blocks.Find(dst)
	seen := b != nil && (b.onHost() || b.managed)
	m.mu.Unlock()
	if !seen {
		return nil, nil
	}
	return s.observe(t, s.d.Point()), nil
}

// DrainPoint returns the point at which all work enqueued on s so far is done, for a call
// that documents no wait: listeners are not notified when it is reached, so that nothing
// counts as ordered by it.
//
// # Errors: as for Point.
//
// Contract: V9, F6.
func (s *Stream) DrainPoint(t *Thread) (driver.Point, error) {
	if err := s.checkNotCaptured(t, "synchronize"); err != nil {
		return nil, err
	}
	return s.d.Point(), nil
}

// maxStaged is the size up to which a copy from pageable memory reads the source
// within the call, as the vendors' do; a larger copy returns when it is done.
const maxStaged = 64 << 10

// CopySpec describes a copy of Height rows of Width bytes each, with
// Pitch bytes from the start of one to the next. Height 0 means one row.
type CopySpec struct {
	Dst, Src           uint64
	DstPitch, SrcPitch uint64
	Width, Height      uint64
}

// overlap reports whether source and target, which span from and to bytes, share
// any. The rows of one may lie in the gaps of the other.
func (c CopySpec) overlap(to, from uint64) bool {
	if c.Dst >= c.Src+from || c.Src >= c.Dst+to {
		return false
	}
	if c.Height == 1 || c.DstPitch != c.SrcPitch {
		return true
	}
	distance := max(c.Dst, c.Src) - min(c.Dst, c.Src)
	distance %= c.DstPitch
	return distance < c.Width || c.DstPitch-distance < c.Width
}

// Copy enqueues a copy. Pinned and device sources are read when the stream
// reaches the copy; a pageable source of up to 64 KiB is read within the call.
// The result, if not nil, is the point that the caller must wait for before it
// returns: copies into pageable memory, larger ones from it, and all within host memory
// are not asynchronous. An abort drops these, too, and Failure then reports it.
//
// # Errors
//   - [ErrInvalidValue]: a range leaves its block, is not mapped or was freed,
//     the two overlap, or a pitch is less than the width.
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M3, M4, M5, M9, M11, M13. Source: CUDA driver API, cuMemcpyAsync.
func (s *Stream) Copy(t *Thread, c CopySpec) (driver.Point, error) {
	return s.copy(t, c, EnqueuedCopy)
}

func (s *Stream) copy(t *Thread, c CopySpec, call CopyCall) (driver.Point, error) {
	const op = "copy"
	if err := s.checkEnqueue(t, op); err != nil {
		return nil, err
	}
	if c.Height == 0 {
		c.Height, c.DstPitch, c.SrcPitch = 1, c.Width, c.Width
	}
	if c.Width == 0 {
		return nil, nil
	}
	if c.Height > 1 && (c.DstPitch < c.Width || c.SrcPitch < c.Width) {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"rows of %d bytes do not fit pitches of %d and %d", c.Width, c.DstPitch, c.SrcPitch)
	}
	to, fits := span(c.Dst, c.DstPitch, c.Width, c.Height)
	from, fit := span(c.Src, c.SrcPitch, c.Width, c.Height)
	if !fits || !fit {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"%d rows of %d bytes with pitches of %d and %d bytes exceed the address space", c.Height, c.Width, c.DstPitch, c.SrcPitch)
	}
	if c.overlap(to, from) {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"source %#x and target %#x overlap; copy through another block", c.Src, c.Dst)
	}
	rt := s.dev.rt
	var found [maxExtents]*Block
	ranges := [maxExtents]extent{{"source", c.Src, from}, {"target", c.Dst, to}}
	err := s.acquire(op, "a copy", ranges[:], found[:])
	if err != nil {
		return nil, err
	}
	blocks, src, dst := found[:], found[0], found[1]
	spec := driver.Copy{Dst: c.Dst, Src: c.Src, DstPitch: c.DstPitch, SrcPitch: c.SrcPitch,
		Width: c.Width, Height: c.Height}
	spec.To, spec.DstDevice = dst.location()
	spec.From, spec.SrcDevice = src.location()
	if c := s.capture.Load(); c != nil {
		return nil, c.addCopy(s, spec, blocks, call)
	}
	wait := call.waits(src, dst, from)
	if wait {
		err = s.checkCapturedElsewhere(op, "a copy that the host waits for")
	}
	if err == nil && dst == nil {
		err = checkAccess(op, "target", c.Dst, to, true)
	}
	switch {
	case err != nil || src != nil:
	case wait:
		err = checkAccess(op, "source", c.Src, from, false)
	default:
		err = s.stage(&spec, from)
	}
	if err != nil {
		return nil, s.using(blocks, func() error { return err })
	}
	var id uint32
	var order hostOrder
	if s.listened() {
		if wait {
			rt.CompareSources()
		}
		o := Operation{Kind: OpCopy, Thread: t,
			Reads: rows(c.Src, c.SrcPitch, c.Width, c.Height), Writes: rows(c.Dst, c.DstPitch, c.Width, c.Height)}
		if call == FillingCopy {
			o.Kind, o.Reads = OpFill, nil // what the program asked for; it has no source
		}
		order = call.orders(src, dst)
		if order == ordersEarlier {
			rt.notifyHost(Operation{Kind: OpSynchronizeStream, Stream: s, Thread: t})
		}
		// The source is read by the calling thread, or that waits until it was read.
		if spec.Release != 0 || order == ordersEarlier || order == ordersSource {
			rt.notifyHost(Operation{Kind: OpHostRead, Stream: s, Thread: t, Reads: o.Reads})
			o.Reads = nil
		}
		if src != nil && src.Kind == Pinned {
			o.ID = rt.listeners.number()
			spec.Before, o.afterNotify = rt.watchSource(o.ID, c, from, src)
		}
		id = s.announce(&o)
	}
	spec.Waited, spec.Tag = wait, id
	var done driver.Point
	err = s.using(blocks, func() (err error) {
		done, err = s.d.Copy(spec)
		return err
	})
	if err != nil && spec.Release != 0 {
		s.unstage(spec.Release)
	}
	if err != nil || !wait {
		return nil, s.settle(t, id, err)
	}
	if id != 0 {
		rt.listeners.endAnnounce(id, nil)
	}
	if done == nil {
		done = s.d.Point()
	}
	if order != ordersAll {
		return done, nil
	}
	return s.observe(t, done), nil
}

// Fill enqueues count elements of size bytes (1, 2 or 4), each set to value.
//
// # Errors
//   - [ErrInvalidValue]: another size, an address that is not a multiple of it,
//     or a range that is not in one block of device or pinned memory.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M8, M11. Source: CUDA driver API, cuMemsetD8Async, cuMemsetD16Async and
// cuMemsetD32Async.
func (s *Stream) Fill(t *Thread, dst uint64, value uint32, size uint8, count uint64) error {
	const op = "fill"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if size != 1 && size != 2 && size != 4 {
		return driver.Errorf(driver.InvalidValue, op, "elements have 1, 2 or 4 bytes, not %d", size)
	}
	if dst%uint64(size) != 0 {
		return driver.Errorf(driver.InvalidValue, op, "%#x is not a multiple of the elements' %d bytes", dst, size)
	}
	if count == 0 {
		return nil
	}
	if count > 1<<62/uint64(size) {
		return driver.Errorf(driver.InvalidValue, op, "%d elements exceed the address space", count)
	}
	n := count * uint64(size)
	blocks := []*Block{nil}
	if err := s.acquire(op, "a fill", []extent{{"target", dst, n}}, blocks); err != nil {
		return err
	}
	if blocks[0] == nil {
		return driver.Errorf(driver.InvalidValue, op, "%#x is pageable host memory; fill device or pinned memory", dst)
	}
	on, _ := blocks[0].location()
	spec := driver.Fill{Dst: dst, Count: count, Value: value, Size: size, On: on}
	if c := s.capture.Load(); c != nil {
		return c.addFill(s, spec, blocks[0])
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpFill, Thread: t, Writes: []Range{{dst, n}}})
	}
	spec.Tag = id
	return s.settle(t, id, s.using(blocks, func() error { return s.d.Fill(spec) }))
}

// stage copies the pageable source of a copy, size bytes, into a buffer that the
// backend frees when the copy is done.
func (s *Stream) stage(c *driver.Copy, size uint64) error {
	var buffer uint64
	if vendor := s.dev.vendor; vendor != nil {
		var err error
		if buffer, err = vendor.Stage(size); err != nil {
			return err
		}
		c.From = driver.Pinned
	} else {
		buffer = uint64(C.hs_stage_alloc(C.uint64_t(size)))
	}
	if !pages.Read(buffer, c.Src, size) {
		s.unstage(buffer)
		return accessError("copy", "source", c.Src, size, false)
	}
	c.Src, c.Release = buffer, buffer
	return nil
}

// unstage frees a buffer of stage if the copy was not enqueued.
func (s *Stream) unstage(buffer uint64) {
	if vendor := s.dev.vendor; vendor != nil {
		vendor.Unstage(buffer)
	} else {
		C.hs_stage_free(C.uint64_t(buffer))
	}
}

// size returns the size and the alignment of a value that a stream writes or waits for.
func (v *ValueAccess) size() uint64 {
	if v.Condition.IsNarrow() {
		return 4
	}
	return 8
}

// ValueAccess is what an operation writes to a value in memory, or waits for.
type ValueAccess struct {
	Addr, Value uint64
	// Condition is the comparison of the value in memory with Value that a wait
	// needs; unused by a write. It has driver.Narrow where the value has 32 bits.
	Condition driver.Condition
}

// WriteValue enqueues a write of 64 bits at an address that is a multiple of 8, in
// pinned memory or memory of the stream's device.
//
// # Errors
//   - [ErrInvalidValue]: the address is not such a one, or the backend cannot have
//     values there.
//   - [ErrWrongDevice]: the address is in memory of another device.
//   - [ErrNotSupported]: the device cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWriteValue64.
func (s *Stream) WriteValue(t *Thread, addr, value uint64) error {
	return s.value(t, OpWriteValue, ValueAccess{Addr: addr, Value: value}, s.d.WriteValue)
}

// WaitValue makes work enqueued on s after this call start only when the 64 bits at
// addr have met the condition. The condition is checked when s reaches the wait, and
// then after every change of the bits, by devices and by the host. The host does not
// block.
//
// # Errors: as for WriteValue, and [ErrInvalidValue] for a condition that does not exist.
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWaitValue64.
func (s *Stream) WaitValue(t *Thread, addr, value uint64, c driver.Condition) error {
	return s.value(t, OpWaitValue, ValueAccess{addr, value, c}, s.d.WaitValue)
}

// WriteValue32 is WriteValue of 32 bits, at an address that is a multiple of 4. Only the host device has it.
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWriteValue32.
func (s *Stream) WriteValue32(t *Thread, addr uint64, value uint32) error {
	return s.value(t, OpWriteValue, ValueAccess{addr, uint64(value), driver.Narrow}, s.d.WriteValue)
}

// WaitValue32 is WaitValue for 32 bits, as WriteValue32.
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWaitValue32.
func (s *Stream) WaitValue32(t *Thread, addr uint64, value uint32, c driver.Condition) error {
	return s.value(t, OpWaitValue, ValueAccess{addr, uint64(value), c | driver.Narrow}, s.d.WaitValue)
}

// value enqueues a write of a value or a wait for it.
func (s *Stream) value(t *Thread, kind OperationKind, v ValueAccess, enqueue func(driver.Value) error) error {
	op := kind.String()
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, "values in memory are not built yet for graphs; use events")
	}
	if v.Condition.IsNarrow() && s.dev.rt.sim == nil {
		return driver.Errorf(driver.NotSupported, op, "values of 32 bits are not built yet for this backend; use 64 bits")
	}
	if v.Condition&^driver.Narrow >= driver.Conditions {
		return driver.Errorf(driver.InvalidValue, op, "there is no condition %d", v.Condition)
	}
	if v.Addr%v.size() != 0 {
		return driver.Errorf(driver.InvalidValue, op, "%#x is not a multiple of the value's %d bytes", v.Addr, v.size())
	}
	blocks := []*Block{nil}
	if err := s.acquire(op, "an operation on a value", []extent{{"value", v.Addr, v.size()}}, blocks); err != nil {
		return err
	}
	b := blocks[0]
	var err error
	switch {
	case b == nil:
		err = driver.Errorf(driver.InvalidValue, op, "%#x is pageable host memory; use device or pinned memory", v.Addr)
	case b.dev != nil && b.dev != s.dev:
		err = driver.Errorf(driver.WrongDevice, op, "%#x is memory of device %d, and the stream is on device %d",
			v.Addr, b.dev.ordinal, s.dev.ordinal)
	}
	if err != nil {
		return s.using(blocks, func() error { return err })
	}
	on, _ := b.location()
	var id uint32
	if s.listened() {
		o := Operation{Kind: kind, Thread: t, Value: &v}
		if access := []Range{{v.Addr, v.size()}}; kind == OpWriteValue {
			o.Writes = access
		} else {
			o.Reads = access
		}
		id = s.announce(&o)
	}
	return s.settle(t, id, s.using(blocks, func() error {
		return enqueue(driver.Value{Addr: v.Addr, Value: v.Value, Condition: v.Condition, On: on, Tag: id})
	}))
}

// Bits of Access.Mode.
const (
	Reads = 1 << iota
	Writes
)

// Access is memory that a function reads, writes, or both: Rows pieces of Bytes bytes,
// Pitch bytes from the start of one to that of the next. 0 and 1 rows are one piece.
// The layout is that of halstream_range in halstream.h.
type Access struct {
	Start, Bytes, Rows, Pitch uint64
	Mode                      uint32
	_                         uint32
}

// NativeFunc describes a C function that can fail, with what listeners see of it.
type NativeFunc struct {
	// Name is shown in reports and errors; "" where it has none.
	Name string
	// Site is where the program made the call, 0 to find that out now.
	Site uint32
	// Accesses is read during the call only.
	Accesses []Access
	// Function is int f(void *argument, char *text, size_t room). It fails by returning
	// another number than 0, with the text that it leaves.
	Function, Argument uint64
	// Release is void f(void *argument). It is called exactly once: after the function,
	// or instead of it where the operation is dropped. 0 for none.
	Release uint64
	// LosesDevice says that the function stands for a kernel: with an error of it the
	// device is lost, as with an assertion in a kernel of CUDA. Else it is the stream's.
	LosesDevice bool
	// HandsIn says that Accesses are an upper bound, and that the function hands in which of them
	// it makes (package native). If it does not, it makes all of them.
	HandsIn bool
	// AwaitsOthers says that the function waits for what other processes do: Busy shows the
	// thread that runs it, as it does of a function that cannot fail.
	AwaitsOthers bool
}

// rangesOf returns what accesses read and write, as listeners see it.
func rangesOf(accesses []Access) (reads, writes []Range) {
	for i := range accesses {
		a := &accesses[i]
		if a.Bytes == 0 {
			continue
		}
		pieces := []Range{{a.Start, a.Bytes}}
		switch {
		case a.Rows <= 1 || a.Pitch == 0:
		case a.Pitch > a.Bytes:
			pieces = rows(a.Start, a.Pitch, a.Bytes, a.Rows)
		default: // the rows touch or overlap
			pieces[0].Size, _ = span(a.Start, a.Pitch, a.Bytes, a.Rows)
		}
		if a.Mode&Reads != 0 {
			reads = append(reads, pieces...)
		}
		if a.Mode&Writes != 0 {
			writes = append(writes, pieces...)
		}
	}
	return reads, writes
}

// nativeCall is a native function that was given to the backend. It is its driver.NativeCall.
type nativeCall struct {
	s                           *Stream
	name                        string
	site                        uint32
	losesDevice                 bool
	function, argument, release uint64
	// kernel is what runs instead of a function, nil for none.
	kernel  driver.PreparedLaunch
	handsIn bool
	// handed is what the latest run has handed in, nil where that is nothing. report, if not nil, gets it.
	handed *handedIn
	report func(*handedIn)
}

// handedIn is what a run of a native function accesses.
type handedIn struct {
	reads, writes []Range
	kernel        KernelReport
}

// KernelReport is what a run of a kernel tells besides its accesses.
type KernelReport struct {
	// Findings are the mistakes that did not end it.
	Findings []KernelFinding
	// Inputs are the bytes that it has read before it wrote them itself.
	Inputs []Range
}

// KernelFinding is a mistake of a kernel that did not end it.
type KernelFinding = driver.KernelFinding

// Title implements driver.NativeCall.
func (c *nativeCall) Title() string {
	if c.name == "" {
		return "a native function"
	}
	return c.name
}

// Run implements driver.NativeCall.
func (c *nativeCall) Run() (err *driver.Error) {
	dev := c.s.dev
	if dev.rt.lost.Load() && dev.loss() != nil {
		c.drop() // the device was lost after the call that enqueued the function had looked
		return nil
	}
	text, code, failed := c.call()
	if failed {
		if text == "" {
			text = "it failed, without a text"
		}
		c.s.failures.Add(1)
		if c.losesDevice {
			err = driver.Errorf(driver.DeviceLost, c.Title(), "%s: %s", c.Title(), text)
			err.Site, err.Code = c.site, code
			dev.rt.lost.Store(true) // before anybody sees that the operation has ended
		} else {
			err = driver.Errorf(driver.HostFunction, c.Title(), "%s: %s", c.Title(), text)
			dev.noteFailed(c.s)
		}
	}
	c.end()
	return err
}

// call calls the function, or runs the kernel, and keeps what it hands in.
func (c *nativeCall) call() (text string, code int, failed bool) {
	if c.kernel != nil {
		ran := c.kernel.Run(c.handsIn)
		c.handed = nil
		if c.handsIn {
			c.handed = &handedIn{rangesOfExtents(ran.Reads), rangesOfExtents(ran.Writes),
				KernelReport{ran.Findings, rangesOfExtents(ran.Inputs)}}
		}
		if ran.Fault == nil {
			return "", 0, false
		}
		return ran.Fault.Text, ran.Fault.Code, true
	}
	if !c.handsIn {
		text, failed = native.Call(c.function, c.argument)
		return text, 0, failed
	}
	text, failed, list, some := native.CallHandsIn(c.function, c.argument)
	if c.handed = nil; !some {
		return text, 0, failed
	}
	accesses := make([]Access, 0, len(list))
	for _, a := range list {
		one := Access{Start: a.Start, Bytes: a.Bytes, Rows: a.Rows, Pitch: a.Pitch, Mode: a.Mode}
		if one.check(c.Title()) == nil { // else it wraps around: no memory
			accesses = append(accesses, one)
		}
	}
	c.handed = &handedIn{}
	c.handed.reads, c.handed.writes = rangesOf(accesses)
	return text, 0, failed
}

// Drop implements driver.NativeCall. It is called with locks held, so the argument is
// released on another thread.
func (c *nativeCall) Drop() { go c.drop() }

// drop ends a function that does not run.
func (c *nativeCall) drop() {
	c.handed = &handedIn{}
	c.end()
}

// end is what follows a run.
func (c *nativeCall) end() {
	if c.report != nil {
		c.report(c.handed)
	}
	c.free()
}

func (c *nativeCall) free() {
	if c.release != 0 {
		native.Release(c.release, c.argument)
	}
}

// NativeFunc enqueues a call of a C function that can fail. Its error becomes that of
// the stream, unless the stream has one, or makes the device lost.
//
// # Errors
//   - [ErrInvalidValue]: there is no function, or a range wraps around.
//   - [ErrNotSupported]: the backend has no native functions, or no devices that a function can make lost.
//   - [ErrDeviceLost], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// After an error neither the function nor Release is called.
//
// Contract: C1, C2, C3, D7, M11, M12.
func (s *Stream) NativeFunc(t *Thread, f *NativeFunc) error {
	const op = "call native"
	if err := s.checkFollowed(t, op); err != nil {
		return err
	}
	if f.Function == 0 {
		return driver.Errorf(driver.InvalidValue, op, "the function's address is 0")
	}
	for i := range f.Accesses {
		if err := f.Accesses[i].check(op); err != nil {
			return err
		}
	}
	if _, ok := s.dev.d.(driver.RecoverableDevice); f.LosesDevice && !ok {
		return driver.Errorf(driver.NotSupported, op, "a function cannot make a device of the %s backend lost", s.dev.rt.Name())
	}
	call := &nativeCall{s: s, name: f.Name, site: f.Site, losesDevice: f.LosesDevice, function: f.Function,
		argument: f.Argument, release: f.Release, handsIn: f.HandsIn}
	if c := s.capture.Load(); c != nil {
		return c.addNativeFunc(s, f, call)
	}
	spec := driver.Native{Call: call, ShowsThread: f.AwaitsOthers}
	if s.listened() {
		reads, writes := rangesOf(f.Accesses)
		in := s.dev.rt.handsInTo(f.HandsIn)
		id := s.announce(&Operation{Kind: OpNative, Name: f.Name, Site: f.Site, Thread: t, Reads: reads, Writes: writes,
			HandsIn: in != nil})
		spec.Tag = id
		spec.Before, spec.After = s.dev.rt.newDeclaredWatch(id, reads, writes)
		if in != nil {
			call.report = s.dev.rt.handIn(in, id, &handedIn{reads: reads, writes: writes})
		}
	}
	var room [8]*Block
	blocks := s.beginAccesses(call, f.Accesses, room[:0])
	if len(blocks) == 0 {
		return s.settle(t, spec.Tag, s.d.Native(spec))
	}
	err := s.d.Native(spec)
	s.endAccesses(blocks, err)
	return s.settle(t, spec.Tag, err)
}

// check rejects what is no access.
func (a *Access) check(op string) error {
	if a.Mode == 0 || a.Mode > Reads|Writes {
		return driver.Errorf(driver.InvalidValue, op, "a range at %#x has access %d; give 1 to read, 2 to write, 3 for both",
			a.Start, a.Mode)
	}
	if a.Bytes == 0 {
		return nil
	}
	n, ok := a.Bytes, a.Start+a.Bytes >= a.Start
	if a.Rows > 1 {
		n, ok = span(a.Start, a.Pitch, a.Bytes, a.Rows)
	}
	if !ok {
		return driver.Errorf(driver.InvalidValue, op, "a range of %d bytes at %#x extends past the last address", n, a.Start)
	}
	return nil
}

// beginAccesses is beginUses for a native function. It leaves out stream-ordered
// memory that is freed in the order of its stream: who frees it orders all work on it
// before the free.
func (s *Stream) beginAccesses(call *nativeCall, accesses []Access, found []*Block) []*Block {
	if len(accesses) == 0 {
		return nil
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range accesses {
		if b := m.blocks.Find(accesses[i].Start); b != nil && !b.inOrder() {
			b.beginUse(s, call.Title())
			found = append(found, b)
		}
	}
	return found
}

// endAccesses ends beginAccesses, after an operation was enqueued or refused with err.
func (s *Stream) endAccesses(blocks []*Block, err error) {
	var seq uint64
	if err == nil {
		seq = s.d.Last()
		s.requestExact(blocks)
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range blocks {
		b.endUse(s, seq)
	}
}

// Launch enqueues a run of a function. reads and writes are the ranges it accesses;
// the memory of blocks in them is not reused before the run has ended.
//
// # Errors
//   - [ErrInvalidValue]: a dimension is 0, a block has more threads or shared memory
//     than the function can have, clusters do not divide the grid, or the arguments
//     are not as many and as large as the parameters (driver.Cells).
//   - [ErrWrongDevice]: f belongs to another device than s.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//   - The error of the device for a launch that cannot run.
//
// Contract: K1, K2, D4, M11, H3. Source: CUDA driver API, cuLaunchKernel.
func (s *Stream) Launch(t *Thread, f *Function, spec LaunchSpec, reads, writes []Range) error {
	l, err := s.checkLaunch(t, f, &spec)
	if err != nil {
		return err
	}
	if simulated, ok := f.d.(driver.SimulatedFunction); ok {
		return s.launchSimulated(t, f, simulated, &spec, reads, writes)
	}
	if c := s.capture.Load(); c != nil {
		return c.addLaunch(s, f, &spec, slices.Clone(reads), slices.Clone(writes), s.dev.rt.blocksOf(reads, writes))
	}
	m := f.module
	if !m.beginLaunch(s) {
		return closedError("launch", "module")
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpLaunch, Thread: t, Reads: reads, Writes: writes})
	}
	blocks := append(s.beginUses(aKernel, reads, writes), m.code)
	launch := spec.of(f)
	launch.Tag = id
	err = l.Launch(launch)
	s.endUses(blocks, err)
	return s.settle(t, id, err)
}

// launchSimulated is Launch on a simulated device: a native function runs the kernel, and
// hands in what it accesses. A fault of the kernel makes the device lost.
func (s *Stream) launchSimulated(t *Thread, f *Function, simulated driver.SimulatedFunction, spec *LaunchSpec,
	reads, writes []Range,
) error {
	rt, m := s.dev.rt, f.module
	prepared, err := simulated.Prepare(spec.of(f), rt.memory.extents())
	if err != nil {
		return err
	}
	name := cmp.Or(spec.Name, f.name)
	call := &nativeCall{s: s, name: name, site: spec.Site, losesDevice: true, kernel: prepared, handsIn: true}
	if c := s.capture.Load(); c != nil {
		return c.addSimulated(s, f, call, slices.Clone(reads), slices.Clone(writes))
	}
	if !m.beginLaunch(s) {
		return closedError("launch", "module")
	}
	work := driver.Native{Call: call}
	in := rt.handsInTo(true)
	call.handsIn = in != nil && s.listened()
	if s.listened() {
		id := s.announce(&Operation{Kind: OpLaunch, Name: name, Thread: t, Reads: reads, Writes: writes, HandsIn: in != nil})
		work.Tag = id
		if in != nil {
			call.report = rt.handIn(in, id, &handedIn{reads: reads, writes: writes})
		}
	}
	blocks := append(s.beginUses(aKernel, reads, writes), m.code)
	err = s.d.Native(work)
	s.endUses(blocks, err)
	return s.settle(t, work.Tag, err)
}

// rangesOfExtents returns extents as ranges.
func rangesOfExtents(extents []driver.Extent) []Range {
	ranges := make([]Range, len(extents))
	for i, e := range extents {
		ranges[i] = Range{Start: e.Start, Size: e.End - e.Start}
	}
	return ranges
}

// checkLaunch rejects a launch that cannot be, and returns the backend's stream, nil on a simulated device.
func (s *Stream) checkLaunch(t *Thread, f *Function, spec *LaunchSpec) (driver.VendorStream, error) {
	const op = "launch"
	if err := s.checkEnqueue(t, op); err != nil {
		return nil, err
	}
	if _, ok := s.dev.d.(driver.KernelDevice); !ok {
		return nil, driver.Errorf(driver.NotSupported, op, "the %s backend runs no kernels", s.dev.rt.Name())
	}
	l, _ := s.d.(driver.VendorStream)
	if m := f.module; m.dev != s.dev {
		return nil, driver.Errorf(driver.WrongDevice, op, "%s was loaded on device %d and the stream belongs to device %d; "+
			"load the module on the stream's device", f.name, m.dev.ordinal, s.dev.ordinal)
	}
	return l, spec.check(f)
}

// LaunchPacked is Launch for a caller that packs arrays with their sizes: modes has a letter for each cell of the arguments.
// It is '-' for a value. For an array, whose argument is its address and then its size, it says whether the kernel reads (r), writes
// (w) or does both (b); a capital letter says that the caller has looked where the memory is. LaunchPacked reports false,
// and nothing is enqueued, if other memory is not where s can use it: the caller knows better how to say so.
//
// # Errors: as for Launch.
//
// Contract: K1, K2, D4, M11, H3.
func (s *Stream) LaunchPacked(t *Thread, f *Function, spec LaunchSpec, modes string) (placed bool, err error) {
	l, err := s.checkLaunch(t, f, &spec)
	c := s.capture.Load()
	if err != nil || c != nil || l == nil || s.listened() {
		return s.launchSeen(t, f, &spec, modes, c, err)
	}
	var room [8]*Block
	blocks, placed, open := s.beginPacked(f.module, spec.Args, modes, room[:0])
	switch {
	case !placed:
		return false, nil
	case !open:
		return true, closedError("launch", "module")
	}
	err = l.Launch(spec.of(f))
	s.endUses(blocks, err)
	return true, s.settle(t, 0, err)
}

// launchSeen is LaunchPacked for a launch that a capture, or a listener, keeps or sees, or that has failed with an error
// already. Memory that is not where s can use it comes first.
func (s *Stream) launchSeen(t *Thread, f *Function, spec *LaunchSpec, modes string, c *Capture, err error) (bool, error) {
	var read, written int // how many arrays are, for lists that are no longer than they need to be: graphs keep them
	for i := range len(modes) {
		_, mode := packed(spec.Args, modes, i)
		read += count(mode == 'r' || mode == 'b')
		written += count(mode == 'w' || mode == 'b')
	}
	blocks, placed := s.dev.rt.blocksPacked(s, spec.Args, modes, make([]*Block, 0, read+written+1))
	if !placed || err != nil {
		return placed, err
	}
	ranges := make([]Range, read+written)
	reads, writes := ranges[:0:read], ranges[read:read]
	for i := range len(modes) {
		r, mode := packed(spec.Args, modes, i)
		if mode == 'r' || mode == 'b' {
			reads = append(reads, r)
		}
		if mode == 'w' || mode == 'b' {
			writes = append(writes, r)
		}
	}
	if _, simulated := f.d.(driver.SimulatedFunction); c != nil && !simulated {
		return true, c.addLaunch(s, f, spec, reads, writes, blocks)
	}
	return true, s.Launch(t, f, *spec, reads, writes)
}

// beginPacked begins a launch that s is about to enqueue: the uses of the blocks of its arguments, and of the module's
// code, for which beginUse was called then. Nothing has begun if memory is not placed, or the module not open.
func (s *Stream) beginPacked(m *Module, args []byte, modes string, list []*Block) (blocks []*Block, placed, open bool) {
	rt := s.dev.rt
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	if blocks, placed = rt.blocksPackedLocked(s, args, modes, list); !placed || m.closed.Load() {
		return nil, placed, false
	}
	blocks = append(blocks, m.code)
	for _, b := range blocks {
		b.beginUse(s, aKernel)
	}
	return blocks, true, true
}

// Report enqueues a function for the report queue s is subscribed to. With
// block, later work of s waits for its end, and so does the reuse of the memory of blocks
// that it declares to access.
//
// # Errors
//   - [ErrNotSubscribed]: s is not subscribed to q.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: A10, M11.
func (s *Stream) Report(t *Thread, q *Queue, token uint64, block bool, a Accesses) error {
	if err := s.checkEnqueue(t, "report"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, "report", "launch the graph, and enqueue the report behind it")
	}
	q.reported.Add(1) // before the check of the subscription, or Unused could miss it
	if s.queue.Load() != q {
		q.reported.Add(-1)
		return driver.Errorf(driver.NotSubscribed, "report", "no thread is subscribed to stream %d", s.index)
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpReport, Thread: t, Token: token, Reads: a.Reads, Writes: a.Writes})
	}
	sink := reportSink{s: s, q: q}
	if id != 0 && block { // later work changes memory while one that does not block runs
		sink.w = s.dev.rt.newWideWatch(id, a)
	}
	f := driver.HostFunc{Token: token, Sink: sink, Passing: !block, Report: true, Tag: id}
	blocks := s.beginUses("a report", a.Reads, a.Writes)
	err := s.using(blocks, func() error { return s.d.HostFunc(f) })
	if err != nil {
		q.reported.Add(-1)
	}
	return s.settle(t, id, err)
}

// AllocAsync returns size bytes of device memory that work enqueued on s from
// now on may use. Work on other streams must be ordered after s.
//
// # Errors: as for Device.Alloc, and [ErrClosed], [ErrWrongContext], [ErrNoContext].
//
// Contract: M7, M15, H3. Source: CUDA driver API, cuMemAllocAsync.
func (s *Stream) AllocAsync(t *Thread, size int64) (*Block, error) {
	return s.AllocAsyncWait(t, size, nil)
}

// AllocAsyncWait is AllocAsync that waits for freed memory as Device.AllocWait does.
//
// # Errors: as for AllocAsync.
//
// Contract: M16.
func (s *Stream) AllocAsyncWait(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	return s.allocInOrder(t, size, wait, allocation{})
}

func (s *Stream) allocInOrder(t *Thread, size int64, wait func(driver.Point) bool, rules allocation) (*Block, error) {
	const op = "allocate in stream order"
	if err := s.checkFollowed(t, op); err != nil {
		return nil, err
	}
	if c := s.capture.Load(); c != nil {
		return c.allocate(s, op, size, wait)
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	d := s.dev
	n := bestfit.RoundUp(uint64(size))
	class := rules.classOf(n)
	var c *bestfit.Chunk
	err := d.rt.allocWithRetry(d, op, uint64(size), wait, func() (err error) {
		c, err = d.pool.alloc(s, n, class)
		return err
	})
	if err != nil {
		return nil, err
	}
	b := &Block{Start: c.Start, Size: uint64(size), Kind: DeviceMemory, dev: d, owner: &pooled{chunk: c}, allocStream: s,
		cached: rules.cached}
	var id uint32
	if s.listened() {
		id = s.notify(Operation{Kind: OpAllocate, Thread: t, Writes: []Range{{b.Start, b.Size}},
			Cached: rules.cached, InOrder: rules.inOrder})
	}
	if last := s.d.Last(); !s.d.Reached(last) {
		// Pending work of s may still use this memory as a block that was freed before.
		b.users = []use{{fence: fence{s, last}, what: "work from before its allocation"}}
	}
	d.rt.addBlock(b)
	if d.rt.Deterministic() {
		// Always, also if the memory is new: the operations of a run must not depend on
		// earlier runs.
		return b, s.overwrite(b, id)
	}
	return b, nil
}

// FreeAsync frees memory of AllocAsync in the order of s. All work that uses it must
// be ordered before.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of a live stream-ordered block of
//     the stream's device.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M7, M15. Source: CUDA driver API, cuMemFreeAsync.
func (s *Stream) FreeAsync(t *Thread, addr uint64) error { return s.freeAsync(t, addr, nil) }

// FreeBlockAsync is FreeAsync of b. It does not free another block that has the
// address of b now. Memory of a graph stays its owner's, which frees what later launches allocate.
//
// # Errors: as for FreeAsync, and [ErrInvalidValue] if b was freed already.
//
// Contract: M2, M7.
func (s *Stream) FreeBlockAsync(t *Thread, b *Block) error { return s.freeAsync(t, 0, b) }

// freeAsync is FreeAsync of the block at addr, or of only if that is not nil.
func (s *Stream) freeAsync(t *Thread, addr uint64, only *Block) error {
	const op = "free in stream order"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.free(s, op, addr, only)
	}
	s.dev.rt.ReportTouched(t) // while the block is known
	if only != nil {
		addr = only.Start
	}
	rt := s.dev.rt
	rt.memory.mu.Lock()
	b, err := rt.liveBlockAt(op, addr, func(b *Block) bool { return (b.pooled() != nil || b.ofGraph() != nil) && b.dev == s.dev },
		"stream-ordered memory of the stream's device")
	if err == nil && b.ofGraph() != nil && (only == nil || only == b) {
		err = b.endLaunched(op)
		rt.memory.mu.Unlock()
		if err != nil {
			return err
		}
		s.freedOfGraph(t, b)
		return nil
	}
	if err == nil && only != nil && only != b {
		err = only.alreadyFreed(op)
	}
	if err == nil {
		rt.forgetBlock(b)
		b.cached = false // this free is one by the program: all work on the memory comes before it
	}
	rt.memory.mu.Unlock()
	if err != nil {
		return err
	}
	s.freeInOrder(t, b)
	return nil
}

// freeInOrder frees a block that was removed from the map, in the order of s.
func (s *Stream) freeInOrder(t *Thread, b *Block) {
	b.countFreed()
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpFree, Thread: t, Writes: []Range{{b.Start, b.Size}}, Cached: b.cached})
	}
	// Before the listeners are called: what they enqueue comes after the free.
	seq := s.d.Fence(id)
	if id != 0 {
		s.dev.rt.listeners.endAnnounce(id, nil)
	}
	s.dev.pool.free(s.dev, b.pooled().chunk, s, seq)
}

// AllocCached is AllocAsyncWait with the rules of a caching allocator: Release frees the
// block in the order of its stream, without waiting for uses on other streams, and no
// work has to be ordered before that. What the memory is given out for next must be
// ordered behind the work that still uses it.
//
// # Errors: as for AllocAsync.
//
// Contract: M7, M16, M23, C8. Source: the native allocator of torch.cuda.
func (s *Stream) AllocCached(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	b, err := s.allocInOrder(t, size, wait, allocation{cached: true, segments: true})
	if err == nil {
		b.ReleaseInOrder()
	}
	return b, err
}

// AllocReusable is AllocAsyncWait where the program is run as it is. Where it is checked,
// under a sanitizer and under a deterministic schedule, Release has the rules of AllocCached:
// it must not hide that work of another stream still uses the memory.
//
// # Errors: as for AllocAsync.
//
// Contract: M7, M22.
func (s *Stream) AllocReusable(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	if !s.dev.rt.StrictReuse() {
		return s.AllocAsyncWait(t, size, wait)
	}
	b, err := s.allocInOrder(t, size, wait, allocation{cached: true, inOrder: true})
	if err == nil {
		b.ReleaseInOrder()
	}
	return b, err
}

// NoteReuse notifies the listeners that a caching pool of the caller's own has given out a
// range for work of s. Its former user may still work on it, as with AllocCached.
//
// Contract: M22.
func (s *Stream) NoteReuse(t *Thread, r Range) {
	if s.listened() {
		s.notify(Operation{Kind: OpAllocate, Thread: t, Writes: []Range{r}, Cached: true})
	}
}

// ReleaseOn is Release of a stream-ordered block in the order of s instead of the
// stream that it was allocated on.
//
// # Errors
//   - [ErrInvalidValue]: s is on another device, or the block is not stream-ordered
//     or was freed already.
//   - [ErrInHostFunction], [ErrClosed], [ErrWrongContext], [ErrNoContext].
func (s *Stream) ReleaseOn(t *Thread, b *Block) error {
	const op = "free in stream order"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if b.pooled() == nil || b.dev != s.dev {
		return driver.Errorf(driver.InvalidValue, op, "the block is not stream-ordered memory of the stream's device")
	}
	if b.Freed() {
		return b.alreadyFreed(op)
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	b.allocStream = s
	m.mu.Unlock()
	return b.Release(t)
}

// overwrite enqueues on s that a new block is overwritten. id is the ID of the
// allocation that listeners were notified of.
func (s *Stream) overwrite(b *Block, id uint32) error {
	m := &s.dev.rt.memory
	m.mu.Lock()
	b.beginUse(s, "its allocation")
	m.mu.Unlock()
	return s.using([]*Block{b}, func() error {
		return s.d.Fill(driver.Fill{Dst: b.Start, Count: min(b.Size, maxOverwrite), Value: 0xff, Size: 1,
			On: driver.OnDevice, Tag: id})
	})
}

// freedOfGraph is freeInOrder for memory of a graph: its next launch allocates it again.
func (s *Stream) freedOfGraph(t *Thread, b *Block) {
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpFree, Thread: t, Writes: []Range{{b.Start, b.Size}}})
	}
	seq := s.d.Fence(id)
	if id != 0 {
		s.dev.rt.listeners.endAnnounce(id, nil)
	}
	m := &b.rt.memory
	m.mu.Lock()
	b.addUse(s, seq)
	unused := b.graphs == 0
	m.mu.Unlock()
	if unused {
		_ = b.Release(nil)
	}
}

// faulty tells a completer that the function, which is on s, has failed without an error of the stream.
func (s *Stream) faulty(c driver.Completer) {
	l, ok := c.(driver.LoopCompleter)
	if !ok {
		return
	}
	function, loops := l.Loops()
	if len(loops) == 0 {
		return
	}
	rt := s.dev.rt
	errs := make([]*Error, len(loops))
	for i, loop := range loops {
		errs[i] = driver.Errorf(driver.HostFunction, "launch graph", "the loop%s was ended, as the function%s has failed "+
			"in its body and nothing has changed its condition: it might never end; let the function catch its errors, "+
			"or enqueue it with call_checked to get them", rt.at(loop), rt.at(function))
	}
	l.Faulty(errs)
}

// using calls enqueue, which enqueues on s the one operation for which beginUse was
// called on blocks, and then endUse on each of them. Nil blocks are skipped. No lock
// is held during the call.
func (s *Stream) using(blocks []*Block, enqueue func() error) error {
	err := enqueue()
	s.endUses(blocks, err)
	return err
}

// endUses calls endUse on blocks after an operation was enqueued, or could not be because of err.
func (s *Stream) endUses(blocks []*Block, err error) {
	var seq uint64
	if err == nil {
		seq = s.d.Last()
		s.requestExact(blocks)
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	for _, b := range blocks {
		if b != nil {
			b.endUse(s, seq)
		}
	}
	m.mu.Unlock()
}

// requestExact asks the backend to track exactly when the operation enqueued last is
// done if one of the blocks is pinned: FreeHost fails while an operation uses such a
// block.
func (s *Stream) requestExact(blocks []*Block) {
	for _, b := range blocks {
		if b != nil && b.Kind == Pinned {
			if k, ok := s.d.(driver.VendorStream); ok {
				k.Keep()
			}
			return
		}
	}
}

// WaitMemory makes work enqueued on s after this call start only when the
// pending operations that use the block that contains addr are done, including those
// on streams that were closed meanwhile.
//
// # Errors: as for Wait.
//
// Contract: S6, M11, H3.
func (s *Stream) WaitMemory(t *Thread, addr uint64) error {
	const op = "wait for memory"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, "wait before the capture begins")
	}
	for _, o := range s.dev.rt.MemoryUsers(addr) {
		if o == s {
			continue
		}
		var id uint32
		if s.listened() {
			id = s.announce(&Operation{Kind: OpWaitStream, Thread: t, Other: o})
		}
		if err := s.settle(t, id, s.d.WaitStream(o.d, id)); err != nil {
			return err
		}
	}
	// Work that was done already is ordered before later work of s as well.
	s.dev.rt.notifyHost(Operation{Kind: OpWaitMemory, Stream: s, Thread: t, Reads: s.dev.rt.wholeBlock(addr)})
	return nil
}

// acquire stores in blocks the block that contains each range, nil for pageable
// memory, and marks those blocks as used on s by the operation that what names.
//
// An address in no block may be memory that another library of the process
// allocated: the backend's library is queried, with no lock held, and such memory
// counts as a block for this operation only.
func (s *Stream) acquire(op, what string, ranges []extent, blocks []*Block) error {
	rt := s.dev.rt
	m := &rt.memory
	var foreign [maxExtents]*Block
	for queried := rt.vendor == nil; ; queried = true {
		m.mu.Lock()
		missing := false
		var err error
		for i, r := range ranges {
			if blocks[i] = m.blocks.Find(r.addr); blocks[i] == nil {
				blocks[i] = foreign[i]
				missing = missing || foreign[i] == nil
			}
		}
		if missing && !queried {
			m.mu.Unlock()
			for i, r := range ranges {
				if blocks[i] == nil {
					foreign[i] = rt.foreignBlockAt(r.addr)
				}
			}
			continue
		}
		for i, r := range ranges {
			if err = rt.checkRange(op, r, blocks[i], s.capture.Load() != nil); err != nil {
				break
			}
		}
		if err == nil {
			for _, b := range blocks[:len(ranges)] {
				if b != nil && !b.isForeign() && s.capture.Load() == nil {
					b.beginUse(s, what)
				}
			}
		}
		m.mu.Unlock()
		return err
	}
}

// CanUse reports whether a range lies in one block of the runtime that is either
// pinned or on the stream's device.
//
// Contract: D4, M11.
func (s *Stream) CanUse(r Range) bool {
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blocks.Find(r.Start).usableBy(s, r)
}
