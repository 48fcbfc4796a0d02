package hal

import (
	"encoding/binary"
	"slices"

	"halstream/hal/driver"
)

// LaunchSpec is the configuration of a launch.
type LaunchSpec struct {
	// Grid is the number of blocks and Block the number of threads in each, for three
	// dimensions; each is at least 1.
	Grid, Block [3]uint32
	// Cluster is the number of blocks that run at the same time on neighbouring
	// processors, for three dimensions: each divides that of Grid. All 0 stand for none.
	Cluster [3]uint32
	// Shared is the size of the dynamic shared memory of a block in bytes.
	Shared uint32
	// Site is the place of the program that makes the call, as for [Stream.NopAt].
	Site uint32
	// Args are the arguments, each at the start of driver.Cell bytes. They are
	// taken within the call.
	Args []byte
	// Cooperative launches run all blocks at once or fail.
	Cooperative bool
}

// check rejects a configuration with which f cannot be launched.
func (spec *LaunchSpec) check(f *Function) error {
	const op = "launch"
	threads := uint64(1)
	for i := range 3 {
		if spec.Grid[i] == 0 || spec.Block[i] == 0 {
			return driver.Errorf(driver.InvalidValue, op,
				"the grid is %v and the block %v; each dimension is 1 or more", spec.Grid, spec.Block)
		}
		// The product is bounded at each step, since three factors of 32 bits could
		// overflow.
		threads = min(threads*uint64(spec.Block[i]), 1<<31)
	}
	if most := f.d.Threads(); threads > uint64(most) {
		return driver.Errorf(driver.InvalidValue, op, "blocks of %v have %d threads, and %s runs at most %d",
			spec.Block, threads, f.name, most)
	}
	if len(spec.Args)%driver.Cell != 0 {
		return driver.Errorf(driver.InvalidValue, op,
			"the arguments are %d bytes, and each takes %d", len(spec.Args), driver.Cell)
	}
	if sizes := f.d.Parameters(); sizes != nil && len(spec.Args)/driver.Cell != len(sizes) {
		return driver.Errorf(driver.InvalidValue, op, "%s takes %d arguments, not %d",
			f.name, len(sizes), len(spec.Args)/driver.Cell)
	}
	if most := f.d.Shared(); uint64(spec.Shared) > uint64(most) {
		return driver.Errorf(driver.InvalidValue, op, "%d bytes of dynamic shared memory are more than the %d "+
			"that a block of %s may have on device %d", spec.Shared, most, f.name, f.module.dev.ordinal)
	}
	return spec.checkCluster()
}

// of returns the launch of a function as backends take it.
func (spec *LaunchSpec) of(f *Function) driver.Launch {
	return driver.Launch{Function: f.d, Grid: spec.Grid, Block: spec.Block, Cluster: spec.Cluster,
		Shared: spec.Shared, Args: spec.Args, Cooperative: spec.Cooperative}
}

// checkCluster rejects clusters that do not fill the grid.
func (spec *LaunchSpec) checkCluster() error {
	if spec.Cluster == [3]uint32{} {
		return nil
	}
	for i, n := range spec.Cluster {
		if n == 0 || spec.Grid[i]%n != 0 {
			return driver.Errorf(driver.InvalidValue, "launch", "clusters of %v blocks do not divide a grid of %v: "+
				"each dimension of the grid is a multiple of the cluster's", spec.Cluster, spec.Grid)
		}
	}
	return nil
}

// Launch enqueues a run of a function. reads and writes are the ranges it accesses;
// the memory of blocks in them is not reused before the run has ended.
//
// # Errors
//   - [ErrInvalidValue]: a dimension is 0, a block has more threads or shared memory
//     than the function can have, clusters do not divide the grid, or the arguments
//     are not as many as the parameters, driver.Cell bytes each.
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

// aKernel is what uses of memory by a launch are called.
const aKernel = "a kernel"

// checkLaunch rejects a launch that cannot be, and returns the backend's stream.
func (s *Stream) checkLaunch(t *Thread, f *Function, spec *LaunchSpec) (driver.VendorStream, error) {
	const op = "launch"
	if err := s.checkEnqueue(t, op); err != nil {
		return nil, err
	}
	l, ok := s.d.(driver.VendorStream)
	if !ok {
		return nil, driver.Errorf(driver.NotSupported, op, "the %s backend runs no kernels", s.dev.rt.Name())
	}
	if m := f.module; m.dev != s.dev {
		return nil, driver.Errorf(driver.WrongDevice, op, "%s was loaded on device %d and the stream belongs to device %d; "+
			"load the module on the stream's device", f.name, m.dev.ordinal, s.dev.ordinal)
	}
	return l, spec.check(f)
}

// LaunchPacked is Launch for a caller that packs arrays with their sizes: modes has a letter for each argument. It is '-'
// for a value. For an array, whose argument is its address and then its size, it says whether the kernel reads (r), writes
// (w) or does both (b); a capital letter says that the caller has looked where the memory is. LaunchPacked reports false,
// and nothing is enqueued, if other memory is not where s can use it: the caller knows better how to say so.
//
// # Errors: as for Launch.
//
// Contract: K1, K2, D4, M11, H3.
func (s *Stream) LaunchPacked(t *Thread, f *Function, spec LaunchSpec, modes string) (placed bool, err error) {
	l, err := s.checkLaunch(t, f, &spec)
	c := s.capture.Load()
	if err != nil || c != nil || s.listened() {
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
	if c != nil {
		return true, c.addLaunch(s, f, spec, reads, writes, blocks)
	}
	return true, s.Launch(t, f, *spec, reads, writes)
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// packed returns the range that the argument of a number is, and the small letter for what the kernel does there: '-' for
// none.
func packed(args []byte, modes string, i int) (r Range, mode byte) {
	if modes[i] == '-' {
		return r, '-'
	}
	cell := args[i*driver.Cell:][:driver.Cell]
	r = Range{Start: binary.LittleEndian.Uint64(cell), Size: binary.LittleEndian.Uint64(cell[8:])}
	if r.Size == 0 {
		return r, '-'
	}
	return r, modes[i] | ('a' - 'A')
}

// blocksPacked appends the blocks that arguments begin in to a list. It reports false if one that the caller has not
// looked at is not where s can use it.
func (rt *Runtime) blocksPacked(s *Stream, args []byte, modes string, list []*Block) (found []*Block, placed bool) {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	return rt.blocksPackedLocked(s, args, modes, list)
}

// blocksPackedLocked is blocksPacked; the caller holds the memory's lock.
func (rt *Runtime) blocksPackedLocked(s *Stream, args []byte, modes string, list []*Block) (found []*Block, placed bool) {
	for i := range len(modes) {
		r, mode := packed(args, modes, i)
		if mode == '-' {
			continue
		}
		b := rt.memory.blocks.Find(r.Start)
		if modes[i] == mode && !b.usableBy(s, r) {
			return nil, false
		}
		if b != nil {
			list = append(list, b)
		}
	}
	return list, true
}

// usableBy reports whether a range that begins in b, nil for pageable memory, lies in it, and s can use it.
func (b *Block) usableBy(s *Stream, r Range) bool {
	return b != nil && b.Kind != Pageable && r.Size <= b.Size-(r.Start-b.Start) && (b.dev == nil || b.dev.ordinal == s.dev.ordinal)
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

// beginLaunch counts a launch that s is about to enqueue, and reports false if the
// module is closed.
func (m *Module) beginLaunch(s *Stream) bool {
	memory := &m.dev.rt.memory
	memory.mu.Lock()
	defer memory.mu.Unlock()
	if m.closed.Load() {
		return false
	}
	m.code.beginUse(s, aKernel)
	return true
}
