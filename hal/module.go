package hal

import (
	"encoding/binary"
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
	// The memory's lock guards what follows.
	variables map[string]*Block // that were asked for
	graphs    int               // that keep it
	ended     bool              // it was given to deferred
}

// Function is a function of a module, which streams of its device launch.
type Function struct {
	module *Module
	name   string
	d      driver.Function
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

// Global returns the memory of a variable of the module by its name in it: device memory until the module is closed.
//
// # Errors
//   - [ErrInvalidValue]: the module has none with this name.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: K4, H3. Source: CUDA driver API, cuModuleGetGlobal.
func (m *Module) Global(t *Thread, name string) (Range, error) {
	const op = "find variable"
	if err := t.checkCaller(op); err != nil {
		return Range{}, err
	}
	if m.closed.Load() {
		return Range{}, closedError(op, "module")
	}
	start, size, err := m.d.Global(name)
	if err != nil {
		return Range{}, err
	}
	r, rt := Range{Start: start, Size: size}, m.dev.rt
	rt.memory.mu.Lock()
	closed, made := m.closed.Load(), m.variables[name] == nil && size > 0
	if made && !closed {
		if m.variables == nil {
			m.variables = map[string]*Block{}
		}
		b := &Block{Start: start, Size: size, Kind: DeviceMemory, rt: rt, dev: m.dev, owner: variable{}}
		m.variables[name] = b
		rt.memory.blocks.Insert(start, size, b)
		rt.memory.listed = nil
	}
	rt.memory.mu.Unlock()
	switch {
	case closed:
		return Range{}, closedError(op, "module")
	case made:
		rt.notifyHost(Operation{Kind: OpNewMemory, Stream: m.dev.legacy, Thread: t, Writes: []Range{r}})
	}
	return r, nil
}

// forgetVariables ends the use of the module's variables as memory. The program stays loaded for pending work on them.
func (m *Module) forgetVariables() {
	rt := m.dev.rt
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for _, b := range m.variables {
		for _, u := range b.users {
			if u.calls > 0 { // a call is about to enqueue an operation: the next one
				u.seq = max(u.seq, u.stream.d.Last()+1)
			}
			m.code.addUse(u.stream, u.seq)
		}
		rt.forgetBlock(b)
	}
	m.variables = nil
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
		m.forgetVariables()
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

// Attributes returns what the device's library knows of the function.
func (f *Function) Attributes() (driver.Attributes, error) { return f.d.Attributes() }

// Simulated reports whether the processor executes the function, for a simulated device.
func (f *Function) Simulated() bool {
	_, ok := f.d.(driver.SimulatedFunction)
	return ok
}

// Accesses returns a letter for each parameter of a function that the processor executes: r, w or b where it
// reads or writes the memory behind the value or does both, - where it does nothing. For others it is "".
func (f *Function) Accesses() string {
	if d, ok := f.d.(driver.SimulatedFunction); ok {
		return d.Accesses()
	}
	return ""
}

// Places returns where each parameter of a function that the processor executes lies in the bytes of all of them; nil for
// others.
func (f *Function) Places() []int {
	if d, ok := f.d.(driver.SimulatedFunction); ok {
		return d.Places()
	}
	return nil
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
	// Args are the arguments one after the other, each at the start of its cells (driver.Cells). They are
	// taken within the call.
	Args []byte
	// Cooperative launches run all blocks at once or fail.
	Cooperative bool
	// Name is what reports call the launch; "" for the function's name.
	Name string
	// Site is where the program launches, for the error with which a simulated device is lost; 0: not known.
	Site uint32
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
	if err := spec.checkArgs(f); err != nil {
		return err
	}
	if most := f.d.Shared(); uint64(spec.Shared) > uint64(most) {
		return driver.Errorf(driver.InvalidValue, op, "%d bytes of dynamic shared memory are more than the %d "+
			"that a block of %s may have on device %d", spec.Shared, most, f.name, f.module.dev.ordinal)
	}
	return spec.checkCluster()
}

// checkArgs rejects arguments that are not as many, or as large, as the parameters of f.
func (spec *LaunchSpec) checkArgs(f *Function) error {
	const op = "launch"
	if len(spec.Args)%driver.Cell != 0 {
		return driver.Errorf(driver.InvalidValue, op, "the arguments are %d bytes, which is no multiple of %d",
			len(spec.Args), driver.Cell)
	}
	sizes := f.d.Parameters()
	if sizes == nil {
		return nil
	}
	given, cells, large := len(spec.Args)/driver.Cell, 0, -1
	for i, size := range sizes {
		cells += driver.Cells(size)
		if size > driver.Cell {
			large = i
		}
	}
	switch {
	case large >= 0 && !f.Simulated():
		return driver.Errorf(driver.NotSupported, op, "parameter %d of %s has %d bytes, and a launch on this device passes %d at most; "+
			"give the kernel a pointer to it", large+1, f.name, sizes[large], driver.Cell)
	case given == cells:
		return nil
	case large < 0:
		return driver.Errorf(driver.InvalidValue, op, "%s takes %d arguments, not %d", f.name, len(sizes), given)
	}
	return driver.Errorf(driver.InvalidValue, op, "%s takes arguments of %v bytes, %d in all with each at a multiple of %d, not %d",
		f.name, sizes, cells*driver.Cell, driver.Cell, len(spec.Args))
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

// aKernel is what uses of memory by a launch are called.
const aKernel = "a kernel"

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// packed returns the range that a cell of arguments is, and the small letter for what the kernel does there: '-' for
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
