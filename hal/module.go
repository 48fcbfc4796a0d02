package hal

import (
	"slices"
	"sync/atomic"

	"halstream/hal/driver"
)

// Module is a loaded program of a device.
type Module struct {
	dev *Device
	d   driver.Module
	// code counts the pending launches as uses of a block, so that the module is
	// unloaded when none is pending any more.
	code   *Block
	closed atomic.Bool
	graphs int  // that keep it; guarded by the memory's lock, as the next one
	ended  bool // it was given to deferred
}

// Function is a function of a module, which streams of its device launch.
type Function struct {
	module *Module
	name   string
	d      driver.Function
}

// LoadModule loads a program: assembler text or a binary, in a format of the vendor's
// library. Text ends with NUL.
//
// # Errors
//   - [ErrNotSupported]: the backend runs no programs.
//   - [ErrInvalidValue]: the program has mistakes; the text contains the compiler's
//     messages.
//   - [ErrInHostFunction].
//
// Contract: K2, H3. Source: CUDA driver API, cuModuleLoadDataEx.
func (d *Device) LoadModule(t *Thread, image []byte) (*Module, error) {
	const op = "load module"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if d.vendor == nil {
		return nil, driver.Errorf(driver.NotSupported, op, "the %s backend runs no kernels of a module; "+
			"enqueue a native function, or use a backend that has kernels", d.rt.Name())
	}
	if len(image) == 0 {
		return nil, driver.Errorf(driver.InvalidValue, op, "the program is empty")
	}
	made, err := d.vendor.Load(image)
	if err != nil {
		return nil, err
	}
	d.used.Store(true)
	m := &Module{dev: d, d: made}
	m.code = &Block{Kind: DeviceMemory, dev: d, module: made}
	return m, nil
}

// Function returns a function of the module by its name in it.
//
// # Errors
//   - [ErrInvalidValue]: the module has none with this name.
//   - [ErrClosed].
//
// Contract: K2.
func (m *Module) Function(name string) (*Function, error) {
	if m.closed.Load() {
		return nil, closedError("find function", "module")
	}
	f, err := m.d.Function(name)
	if err != nil {
		return nil, err
	}
	return &Function{m, name, f}, nil
}

// Close ends the use of the module. Pending launches still run. Closing again does
// nothing.
//
// # Errors: [ErrInHostFunction].
//
// Contract: L1, L2.
func (m *Module) Close(t *Thread) error {
	if err := t.checkCaller("close module"); err != nil {
		return err
	}
	if m.closed.CompareAndSwap(false, true) {
		m.letGo(0)
	}
	return nil
}

// letGo ends the use by a number of graphs, and unloads the program when it is closed, no graph
// keeps it and no launch is pending.
func (m *Module) letGo(graphs int) {
	rt := m.dev.rt
	rt.memory.mu.Lock()
	m.graphs -= graphs
	unload := m.graphs == 0 && m.closed.Load() && !m.ended
	if unload {
		m.ended = true
		rt.memory.deferred.add(m.code)
	}
	rt.memory.mu.Unlock()
	if !unload {
		return
	}
	for range rt.refreshRounds() {
		rt.reap(maxReap)
	}
}

// beginKeep lets a graph use the program until letGo, also when it is closed meanwhile. It reports
// false if the module is closed.
func (m *Module) beginKeep() bool {
	memory := &m.dev.rt.memory
	memory.mu.Lock()
	defer memory.mu.Unlock()
	if m.closed.Load() {
		return false
	}
	m.graphs++
	return true
}

// Threads returns the greatest number of threads that a block may have.
func (f *Function) Threads() int { return f.d.Threads() }

// Shared returns the greatest size of dynamic shared memory that a block may have, in bytes.
func (f *Function) Shared() int { return f.d.Shared() }

// Parameters returns the size of each parameter in bytes, and false if the program does not
// say which ones the function has.
func (f *Function) Parameters() ([]int, bool) {
	sizes := f.d.Parameters()
	return slices.Clone(sizes), sizes != nil
}

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
	const op = "launch"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	l, ok := s.d.(driver.VendorStream)
	if !ok {
		return driver.Errorf(driver.NotSupported, op, "the %s backend runs no kernels", s.dev.rt.Name())
	}
	m := f.module
	if m.dev != s.dev {
		return driver.Errorf(driver.WrongDevice, op, "%s was loaded on device %d and the stream belongs to device %d; "+
			"load the module on the stream's device", f.name, m.dev.ordinal, s.dev.ordinal)
	}
	if err := spec.check(f); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addLaunch(s, f, &spec, reads, writes)
	}
	if !m.beginLaunch(s) {
		return closedError(op, "module")
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: "launch", Thread: t, Reads: reads, Writes: writes})
	}
	blocks := append(s.beginUses("a kernel", reads, writes), m.code)
	return s.settle(t, id, s.using(blocks, func() error {
		launch := spec.of(f)
		launch.Tag = id
		return l.Launch(launch)
	}))
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
	m.code.beginUse(s, "a kernel")
	return true
}
