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
