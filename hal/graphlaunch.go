package hal

import (
	"slices"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// Launch enqueues a run of all nodes as one operation on s. Where s captures, the graph
// becomes a node of that capture.
//
// # Errors
//   - [ErrInvalidValue]: memory that a node works on was freed, or what the graph allocates
//     is allocated since an earlier launch; nothing runs then.
//   - [ErrWrongDevice]: s belongs to another Runtime.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: G8, G10, G12. Source: CUDA driver API, cuGraphLaunch.
func (x *GraphExec) Launch(t *Thread, s *Stream) error {
	const op = "launch graph"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if s.dev.rt != x.rt {
		return otherRuntimeError(op, "the executable")
	}
	for {
		v, err := x.use(op)
		if err != nil {
			return err
		}
		if err = x.launch(t, s, v); err != driver.ErrUpdated { //nolint:errorlint // an error of the driver as it is
			return err
		}
	}
}

// launch is Launch with a use of v, which it takes over.
func (x *GraphExec) launch(t *Thread, s *Stream, v *version) error {
	if c := s.capture.Load(); c != nil {
		defer v.keep.release()
		if v.memory.any() {
			return c.refuse(s, "launch graph", "a graph that allocates or frees memory cannot be a node of another one; launch it by itself")
		}
		_, err := c.addChild(s, v.graph)
		return err
	}
	if v.memory.any() {
		if err := s.checkCapturedElsewhere("launch graph", "a graph that allocates or frees memory"); err != nil {
			v.keep.release()
			return err
		}
	}
	before, err := v.begin(s, x.autoFree)
	if err != nil {
		v.keep.release()
		return err
	}
	l := v.plain.Load()
	if s.listened() {
		l = &launched{Stream: s, x: x, v: v}
		l.announceLaunch(t, x)
	} else if l == nil || l.Stream != s {
		l = &launched{Stream: s, x: x, v: v}
		v.plain.Store(l)
	}
	err = x.d.Launch(s.d, l)
	s.endUses(v.blocks, err)
	if err != nil {
		v.undoMemory(s.dev.rt, before)
	} else {
		for _, e := range v.events {
			if l.tag == 0 { // with listeners it counts where the launch gets its place among the others
				e.version.Add(1)
			}
			e.captured.Store(nil)
			e.recordedOn.Store(s)
		}
	}
	return s.settle(t, l.tag, err)
}

// begin marks the memory of all nodes as used on s. It fails if a part of it was freed, or if
// what the graph allocates is still allocated. before is for undoMemory.
func (v *version) begin(s *Stream, autoFree bool) (before []bool, err error) {
	m := &s.dev.rt.memory
	m.mu.Lock()
	freed := v.freedBlock(m)
	if freed < 0 {
		err = v.checkMemory(autoFree)
	}
	if freed < 0 && err == nil {
		before = v.beginMemory()
		for _, b := range v.blocks {
			b.beginUse(s, "a graph")
		}
	}
	m.mu.Unlock()
	if freed < 0 {
		return before, err
	}
	return nil, v.freedError("launch graph", freed)
}

// checkFreed fails if memory that a node works on was freed.
func (v *version) checkFreed(rt *Runtime, op string) error {
	rt.memory.mu.Lock()
	freed := v.freedBlock(&rt.memory)
	rt.memory.mu.Unlock()
	if freed < 0 {
		return nil
	}
	return v.freedError(op, freed)
}

// freedBlock returns which one of the blocks was freed, -1 for none. The caller holds the memory's lock.
func (v *version) freedBlock(m *memoryState) int {
	return slices.IndexFunc(v.blocks, func(b *Block) bool {
		return b.freed || m.blocks.Find(b.Start) != b && b.module == nil
	})
}

func (v *version) freedError(op string, block int) error {
	b, n := v.blocks[block], v.blockOf[block]
	return driver.Errorf(driver.InvalidValue, op, "the %d bytes at %#x that %s works on were freed; "+
		"keep memory until the last launch, or capture again", b.Size, b.Start, n.title())
}

// launched is a launch, or all launches of a version on a stream that no listener gets. It is their
// driver.GraphLaunch: functions go to the queue of its stream.
type launched struct {
	*Stream
	x   *GraphExec
	v   *version
	tag uint32
	// runs are the nodes while there are listeners, nil otherwise.
	runs []driver.NodeRun
}

// Begin implements driver.GraphLaunch.
func (l *launched) Begin() { l.v.running.Store(l.Stream) }

// End implements driver.GraphLaunch.
func (l *launched) End() { l.v.keep.release() }

// Current implements driver.GraphLaunch.
func (l *launched) Current() bool { return l.x.now.Load() == l.v }

// Tag implements driver.GraphLaunch.
func (l *launched) Tag() driver.Tag { return l.tag }

// Drop implements driver.Sink: the graph keeps the function for its next launch.
func (l *launched) Drop(uint64) *park.Parker { return nil }

// graphCall is a native function of a graph. It is its driver.NativeCall.
type graphCall struct {
	nativeCall
	v *version
}

// Run implements driver.NativeCall.
func (c *graphCall) Run() *driver.Error {
	run := c.nativeCall
	run.s, run.release = c.v.running.Load(), 0
	return run.Run()
}

// Drop implements driver.NativeCall: the graph keeps the argument.
func (c *graphCall) Drop() {}
