package cuda

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"halstream/hal/driver"
)

// modules are the loaded programs of a device.
type modules struct {
	mu   sync.Mutex
	list map[*module]struct{}
}

// module is a loaded program.
type module struct {
	dev *Device
	h   C.CUmodule
}

// logSize bounds the compiler's log, in bytes.
const logSize = 8 << 10

// Function implements driver.Module.
func (m *module) Function(name string) (driver.Function, error) {
	const doing = "find kernel"
	if err := m.dev.usable(doing); err != nil {
		return nil, err
	}
	var k C.hs_kernel
	ctx := m.dev.ctx()
	find := func() C.hs_status {
		c := C.CString(name)
		defer C.free(unsafe.Pointer(c))
		return C.hs_function(ctx, m.dev.dev, m.h, c, &k)
	}
	s, err := m.dev.callInterruptibly("cuFuncLoad", doing, find, nil)
	if err != nil {
		return nil, err
	}
	if err := m.dev.check(s, doing); err != nil {
		e := *err.(*driver.Error)
		e.Text = "kernel " + name + ": " + e.Text
		return nil, &e
	}
	f := &function{dev: m.dev, h: k.function, threads: int(k.threads), shared: int(k.shared)}
	if k.count >= 0 {
		f.sizes = make([]int, k.count)
		for i := range f.sizes {
			f.sizes[i] = int(k.sizes[i])
		}
	}
	return f, nil
}

// Global implements driver.Module.
func (m *module) Global(name string) (start, size uint64, err error) {
	const doing = "find variable"
	if err := m.dev.usable(doing); err != nil {
		return 0, 0, err
	}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	var address, bytes C.uint64_t
	if err := m.dev.check(C.hs_module_global(m.dev.ctx(), m.h, c, &address, &bytes), doing); err != nil {
		e := *err.(*driver.Error)
		e.Text = "variable " + name + ": " + e.Text
		return 0, 0, &e
	}
	return uint64(address), uint64(bytes), nil
}

// Close implements driver.Module.
func (m *module) Close() {
	ms := &m.dev.modules
	ms.mu.Lock()
	_, found := ms.list[m]
	delete(ms.list, m)
	ms.mu.Unlock()
	if found && m.dev.opened() {
		ctx := m.dev.ctx()
		m.dev.callToGiveBack("cuModuleUnload", giveBackLimit, func() {
			_ = m.dev.check(C.hs_module_unload(ctx, m.h), "unload module")
		})
	}
}

// unload unloads all programs.
func (p *modules) unload(d *Device) {
	p.mu.Lock()
	list := p.list
	p.list = nil
	p.mu.Unlock()
	for m := range list {
		C.hs_module_unload(d.ctx(), m.h) // at the end nothing can be done about a failure
	}
}

// function is a kernel.
type function struct {
	dev     *Device
	h       C.CUfunction
	threads int
	shared  int
	sizes   []int
}

// Threads implements driver.Function.
func (f *function) Threads() int { return f.threads }

// Shared implements driver.Function.
func (f *function) Shared() int { return f.shared }

// Parameters implements driver.Function.
func (f *function) Parameters() []int { return f.sizes }

// Attributes implements driver.Function.
func (f *function) Attributes() (driver.Attributes, error) {
	const doing = "attributes of a kernel"
	if err := f.dev.usable(doing); err != nil {
		return driver.Attributes{}, err
	}
	var of C.hs_attributes
	if err := f.dev.check(C.hs_function_attributes(f.dev.ctx(), f.h, &of), doing); err != nil {
		return driver.Attributes{}, err
	}
	return driver.Attributes{Shared: int(of.shared), Constant: int(of.constant), Local: int(of.local),
		Registers: int(of.registers), PTXVersion: int(of.ptx), BinaryVersion: int(of.binary)}, nil
}

// launchOf returns a launch as C takes it, but for its arguments.
func launchOf(l *driver.Launch) C.hs_launch {
	spec := C.hs_launch{
		function: l.Function.(*function).h,
		shared:   C.uint32_t(l.Shared),
		count:    C.int(len(l.Args) / driver.Cell),
	}
	for i := range 3 {
		spec.grid[i], spec.block[i] = C.uint32_t(l.Grid[i]), C.uint32_t(l.Block[i])
		spec.cluster[i] = C.uint32_t(l.Cluster[i])
	}
	if l.Cooperative {
		spec.cooperative = 1
	}
	return spec
}

// delayPTX is a kernel that spins for a number of nanoseconds.
const delayPTX = `.version 6.0
.target sm_50
.address_size 64

.visible .entry halstream_delay(.param .u64 ns)
{
	.reg .pred %p<2>;
	.reg .u64 %t<5>;
	ld.param.u64 %t1, [ns];
	mov.u64 %t2, %globaltimer;
look:
	mov.u64 %t3, %globaltimer;
	sub.u64 %t4, %t3, %t2;
	setp.lt.u64 %p1, %t4, %t1;
	@%p1 bra look;
	ret;
}
` + "\x00"

// delayOf is the launch of a delay.
func delayOf(f driver.Function, ns int64) driver.Launch {
	return oneThread(f, uint64(ns))
}

// oneThread is the launch of a function with one thread.
func oneThread(f driver.Function, values ...uint64) driver.Launch {
	args := make([]byte, driver.Cell*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint64(args[driver.Cell*i:], value)
	}
	one := [3]uint32{1, 1, 1}
	return driver.Launch{Function: f, Grid: one, Block: one, Args: args}
}
