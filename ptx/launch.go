package ptx

/*
#include <stdlib.h>
#include <string.h>
#include "program.h"

static void write_bytes(uint64_t to, const void *from, uint64_t n) { memcpy((void *)(uintptr_t)to, from, n); }
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"unsafe"
)

// moduleState is what a module has besides its text: memory of its variables, and the programs of its kernels.
type moduleState struct {
	mu      sync.Mutex
	memory  unsafe.Pointer
	size    int
	kernels map[string]*Kernel
}

// Range is the addresses [Start, End).
type Range struct{ Start, End uint64 }

// place gives the variables of a module memory and their first values.
func (m *Module) place() {
	m.state = &moduleState{kernels: map[string]*Kernel{}}
	size := 0
	for _, v := range m.inOrder {
		if v.space != spaceGlobal && v.space != spaceConst {
			continue
		}
		size = alignUp(size, max(16, v.align))
		v.offset = size
		size += v.size
		if size > maxVariable {
			panic(&SyntaxError{1, "the variables of the module are too large"})
		}
	}
	if size == 0 {
		return
	}
	memory := C.calloc(1, C.size_t(size+128))
	if memory == nil {
		panic(&SyntaxError{1, fmt.Sprintf("no memory for %d bytes of variables", size)})
	}
	m.state.memory, m.state.size = memory, size
	runtime.AddCleanup(m, func(p unsafe.Pointer) { C.free(p) }, memory)
	base := alignUp(int(uintptr(memory)), 64)
	for _, v := range m.inOrder {
		if v.space == spaceGlobal || v.space == spaceConst {
			v.offset += base
		}
	}
	for _, v := range m.inOrder {
		for _, in := range v.init {
			m.initialize(v, &in)
		}
	}
}

// initialize writes one value of a variable.
func (m *Module) initialize(v *variable, in *initial) {
	bits := in.bits
	if in.symbol != "" {
		if g := m.globals[in.symbol]; g != nil {
			bits = uint64(int64(g.offset) + in.add)
		} else if f := m.functions[in.symbol]; f != nil {
			bits = functionAddress(f)
		} else {
			panic(&SyntaxError{in.line, fmt.Sprintf("the name %s is not known", in.symbol)})
		}
		bits >>= in.shift
	}
	var bytes [16]byte
	binary.LittleEndian.PutUint64(bytes[:], bits)
	C.write_bytes(C.uint64_t(v.offset+in.offset), unsafe.Pointer(&bytes[0]), C.uint64_t(in.size))
}

// Target is the processor that the text was compiled for, for example "sm_80".
func (m *Module) Target() string { return m.target }

// Kernels returns the names of the kernels, in the order of the text.
func (m *Module) Kernels() (names []string) {
	for _, f := range m.order {
		if f.entry {
			names = append(names, f.name)
		}
	}
	return names
}

// Global returns the memory of a variable of the module; ok is false if there is none.
func (m *Module) Global(name string) (address uint64, size int, ok bool) {
	v := m.globals[name]
	if v == nil || v.space != spaceGlobal && v.space != spaceConst {
		return 0, 0, false
	}
	return uint64(v.offset), v.size, true
}

// ConstantBytes is the size of the variables in constant memory.
func (m *Module) ConstantBytes() (size int) {
	for _, v := range m.inOrder {
		if v.space == spaceConst {
			size += v.size
		}
	}
	return size
}

// Param is a parameter of a kernel, in the bytes that a launch takes.
type Param struct {
	Name                string
	Size, Align, Offset int
	Pointer             bool // declared as a pointer
}

// layout returns the parameters with their places.
func (f *function) layout() (out []Param) {
	offsets, _ := layout(0, f.params)
	for i, v := range f.params {
		out = append(out, Param{Name: v.name, Size: v.size, Align: max(1, v.align), Offset: offsets[i], Pointer: v.pointer})
	}
	return out
}

// Access says what a kernel does to the memory behind a parameter.
type Access uint8

// Bits of Access. AccessUnknown is set for a kernel that finds addresses in memory.
const (
	AccessRead Access = 1 << iota
	AccessWrite
	AccessUnknown
)

// Kernel is a kernel that can run. It may be launched by several threads at once.
type Kernel struct {
	m        *Module
	f        *function
	program  *C.Program
	params   []Param
	bytes    int // of all parameters
	shared   int
	local    int
	frame    int // bytes of the registers of a thread
	accesses []Access
	lines    []int32
	texts    []*opcode
	locs     []int32
	spare    struct {
		sync.Mutex
		runs []*Run
	}
}

// Kernel decodes a kernel, once.
//
// # Errors
//   - no such kernel
//   - [SyntaxError]: an instruction that is unknown, wrong, or not supported.
func (m *Module) Kernel(name string) (*Kernel, error) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	if k := m.state.kernels[name]; k != nil {
		return k, nil
	}
	f := m.functions[name]
	if f == nil || !f.entry {
		return nil, fmt.Errorf("ptx: there is no kernel %s", name)
	}
	p, err := m.decodeKernel(f)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	k := &Kernel{m: m, f: f, lines: p.lines, texts: p.texts}
	k.params = f.layout()
	for _, q := range k.params {
		k.bytes = q.Offset + q.Size
	}
	k.shared = p.placeShared()
	if k.shared > MaxShared {
		return nil, fmt.Errorf("ptx: kernel %s has %d bytes of shared memory; %d are the most", name, k.shared, MaxShared)
	}
	k.local, k.frame = int(p.funcs[0].local_bytes), int(p.funcs[0].frame_bytes)
	k.accesses = p.reach
	k.locs = make([]int32, len(p.code))
	for i := range p.code {
		k.locs[i] = int32(p.code[i].loc)
	}
	k.program = C.ptx_program_new(first(p.code), C.int32_t(len(p.code)), first(p.mems), C.int32_t(len(p.mems)), first(p.calls), C.int32_t(len(p.calls)),
		first(p.funcs), C.int32_t(len(p.funcs)), first(p.fills), C.int32_t(len(p.fills)), (*C.int32_t)(first(p.table)), C.int32_t(len(p.table)),
		C.int32_t(k.shared), C.int32_t(alignUp(k.bytes, 16)))
	if k.program == nil {
		return nil, errors.New("ptx: no memory for a kernel")
	}
	runtime.AddCleanup(k, func(p *C.Program) { C.ptx_program_free(p) }, k.program)
	m.state.kernels[name] = k
	return k, nil
}

func first[T any](s []T) *T {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}

// MaxShared is how much shared memory a block may have, in bytes.
const MaxShared = 163 << 10

// MaxThreads is how many threads a block may have.
const MaxThreads = C.MAX_LANES

// MaxGrid and MaxBlock are how many blocks a grid, and threads a block may have in each dimension.
var (
	MaxGrid  = [3]int{math.MaxInt32, 65535, 65535}
	MaxBlock = [3]int{MaxThreads, MaxThreads, 64}
)

// placeShared places the variables of shared memory; arrays without a length begin behind all others.
func (p *program) placeShared() int {
	vars := make([]*variable, 0, len(p.shared))
	for v := range p.shared {
		vars = append(vars, v)
	}
	order := map[*variable]int{}
	for i, v := range p.m.inOrder {
		order[v] = i
	}
	sort.Slice(vars, func(i, j int) bool { return order[vars[i]] < order[vars[j]] })
	size, most := 0, 16
	for _, v := range vars {
		if v.unsized {
			most = max(most, v.align)
			continue
		}
		size = alignUp(size, max(1, v.align))
		p.shared[v] = size
		size += v.size
	}
	for _, v := range vars {
		if v.unsized {
			size = alignUp(size, most)
			p.shared[v] = size
		}
	}
	for _, a := range p.addresses {
		if a.mem >= 0 {
			p.mems[a.mem].offset += C.int64_t(p.shared[a.v])
		} else {
			p.fills[a.fill].bits += C.uint64_t(p.shared[a.v])
		}
	}
	return size
}

// Name is the kernel's name.
func (k *Kernel) Name() string { return k.f.name }

// Params returns the parameters in their order.
func (k *Kernel) Params() []Param { return k.params }

// ParamBytes is how many bytes of parameters a launch takes.
func (k *Kernel) ParamBytes() int { return k.bytes }

// SharedBytes is the shared memory of a block that the text declares, without the dynamic part.
func (k *Kernel) SharedBytes() int { return k.shared }

// LocalBytes is the local memory of a thread.
func (k *Kernel) LocalBytes() int { return k.local }

// Registers is how many registers of 32 bits hold what is alive at once in a thread, 255 at most. What a GPU's compiler
// makes of the text takes another number.
func (k *Kernel) Registers() int { return min(255, (k.frame+3)/4) }

// Block is the size of a block that the text demands, or zeros.
func (k *Kernel) Block() [3]int { return k.f.reqBlock }

// MaxThreads is how many threads a block may have.
func (k *Kernel) MaxThreads() int {
	if b := k.f.reqBlock; b[0] > 0 {
		return b[0] * b[1] * b[2]
	}
	if b := k.f.maxBlock; b[0] > 0 {
		return min(MaxThreads, b[0]*b[1]*b[2])
	}
	return MaxThreads
}

// Accesses says what the kernel does to the memory behind each parameter, found by following the values of the
// parameters to the addresses of loads and stores, without running it.
func (k *Kernel) Accesses() []Access { return k.accesses }

// Flags of a launch.
type Flags uint32

const (
	// FlagRecord makes a report have the bytes of Launch.Memory that were read and written.
	FlagRecord Flags = C.FLAG_RECORD
	// FlagShared finds races and reads of uninitialised words in shared memory.
	FlagShared Flags = C.FLAG_SHARED
	// FlagSync finds barriers that threads of a block reach at different places.
	FlagSync Flags = C.FLAG_SYNC
	// FlagNoBounds leaves out the check of global addresses against Launch.Memory.
	FlagNoBounds Flags = C.FLAG_NO_BOUNDS
)

// Launch says how a kernel is to run.
type Launch struct {
	Grid, Block [3]int
	Shared      int    // bytes of dynamic shared memory
	Params      []byte // as Kernel.Params places them
	// Memory is what the kernel may access besides the variables of the module; nil for nothing.
	Memory *Memory
	Flags  Flags
	// Limit is how many instructions of all blocks may be executed, each for all threads of a block; 0 for no limit.
	Limit int64
}

// Memory is ranges of memory that kernels may access. It does not change, so that any number of launches share one.
type Memory struct {
	ranges unsafe.Pointer // of C
	count  int
}

// NewMemory returns ranges as launches take them.
//
// # Errors
//   - the ranges overlap or are not in the order of their addresses.
func NewMemory(ranges []Range) (*Memory, error) {
	for i, r := range ranges {
		if r.End < r.Start || i > 0 && r.Start < ranges[i-1].End {
			return nil, fmt.Errorf("ptx: the ranges of memory overlap or are out of order at %#x", r.Start)
		}
	}
	size := len(ranges) * int(unsafe.Sizeof(Range{}))
	m := &Memory{ranges: C.malloc(C.size_t(size + 1)), count: len(ranges)}
	if m.ranges == nil {
		return nil, errors.New("ptx: no memory for a list of memory")
	}
	copy(unsafe.Slice((*Range)(m.ranges), len(ranges)), ranges)
	runtime.AddCleanup(m, func(p unsafe.Pointer) { C.free(p) }, m.ranges)
	return m, nil
}

// Run is one launch. Any number of threads may work on it at once.
type Run struct {
	k      *Kernel
	launch *C.Launch
	memory *Memory // of the launch, which does not own it
}

// Start prepares a launch. Nothing is executed before [Run.Work].
//
// # Errors
//   - wrong sizes of grid, block, shared memory or parameters.
func (k *Kernel) Start(l Launch) (*Run, error) {
	if err := k.Check(&l); err != nil {
		return nil, err
	}
	memory := l.Memory
	if memory == nil {
		memory = &Memory{}
	}
	var module C.Range
	if s := k.m.state; s.size > 0 {
		module.start = C.uint64_t(alignUp(int(uintptr(s.memory)), 64))
		module.end = module.start + C.uint64_t(alignUp(s.size, 16))
	}
	limit := l.Limit
	if limit <= 0 {
		limit = math.MaxInt64
	}
	var grid, block [3]C.int32_t
	for i := range 3 {
		grid[i], block[i] = C.int32_t(l.Grid[i]), C.int32_t(l.Block[i])
	}
	params := make([]byte, alignUp(k.bytes, 16)+16)
	copy(params, l.Params)
	launch := C.ptx_launch_new(k.program, &grid[0], &block[0], C.int32_t(l.Shared), C.uint32_t(l.Flags), C.int64_t(limit), unsafe.Pointer(&params[0]),
		(*C.Range)(memory.ranges), C.int32_t(memory.count), module)
	if launch == nil {
		return nil, errors.New("ptx: no memory for a launch")
	}
	return &Run{k: k, launch: launch, memory: memory}, nil
}

// Check returns the error with which [Kernel.Start] refuses a launch.
func (k *Kernel) Check(l *Launch) error {
	threads := 1
	for i := range 3 {
		if l.Grid[i] < 1 || l.Grid[i] > MaxGrid[i] {
			return fmt.Errorf("ptx: kernel %s: a grid of %v blocks; the numbers must be 1 to %v", k.f.name, l.Grid, MaxGrid)
		}
		if l.Block[i] < 1 || l.Block[i] > MaxBlock[i] {
			return fmt.Errorf("ptx: kernel %s: a block of %v threads; the numbers must be 1 to %v", k.f.name, l.Block, MaxBlock)
		}
		threads *= l.Block[i]
	}
	if most := k.MaxThreads(); threads > most {
		return fmt.Errorf("ptx: kernel %s: a block of %d threads; %d are the most", k.f.name, threads, most)
	}
	if b := k.f.reqBlock; b[0] > 0 && b != l.Block {
		return fmt.Errorf("ptx: kernel %s: a block of %v threads; the kernel was compiled for %v", k.f.name, l.Block, b)
	}
	if l.Shared < 0 || l.Shared+k.shared > MaxShared {
		return fmt.Errorf("ptx: kernel %s: %d bytes of shared memory and %d of the kernel's own; %d are the most", k.f.name, l.Shared, k.shared, MaxShared)
	}
	if len(l.Params) != k.bytes {
		return fmt.Errorf("ptx: kernel %s: %d bytes of parameters; it takes %d", k.f.name, len(l.Params), k.bytes)
	}
	return nil
}

// Work runs blocks that no other thread has taken until none is left, or one of them fails. It blocks until then.
func (r *Run) Work() { r.WorkSome(math.MaxInt64) }

// WorkSome is Work for at most so many blocks. It returns how many ended.
func (r *Run) WorkSome(blocks int64) int64 {
	n := int64(C.ptx_work(r.launch, C.int64_t(blocks)))
	runtime.KeepAlive(r)
	return n
}

// Stop makes every Work of the run return soon. The run then fails with [ErrStopped].
func (r *Run) Stop() { C.ptx_stop(r.launch) }

// Again makes the run ready to be executed once more, with the same parameters and memory.
func (r *Run) Again() { C.ptx_launch_reset(r.launch) }

// Close frees what the run holds; no Work may be going on.
func (r *Run) Close() {
	C.ptx_launch_free(r.launch)
	r.launch, r.memory = nil, nil
}

// Report is what a launch did.
type Report struct {
	// Output is the text that the kernel printed.
	Output string
	// Findings are what the checks of FlagShared and FlagSync found, each place once.
	Findings []*Fault
	// Reads and Writes are the bytes of Launch.Memory that were accessed, as merged intervals in order (FlagRecord).
	Reads, Writes []Range
	// Inputs are those of Reads that the launch had not written itself before, as far as that is certain.
	Inputs []Range
	// Instructions counts what was executed for a block at a time, LaneInstructions what its threads executed.
	Instructions, LaneInstructions int64
}

// Report returns what the run did so far, and its error: a [Fault] or [ErrStopped].
func (r *Run) Report() (*Report, error) {
	l := r.launch
	out := &Report{Instructions: int64(l.executed), LaneInstructions: int64(l.lane_count)}
	if l.output_size > 0 {
		out.Output = C.GoStringN(l.output, C.int(l.output_size))
	}
	for i := range int(l.finding_count) {
		out.Findings = append(out.Findings, r.fault(&l.findings[i]))
	}
	if l.flags&C.FLAG_RECORD != 0 {
		out.Reads, out.Writes, out.Inputs = r.intervals(0), r.intervals(1), r.intervals(2)
	}
	runtime.KeepAlive(r)
	switch l.fault.kind {
	case C.FAULT_NONE:
		return out, nil
	case C.FAULT_STOPPED:
		return out, ErrStopped
	}
	return out, r.fault(&l.fault)
}

func (r *Run) intervals(which int) []Range {
	n := C.ptx_intervals(r.launch, C.int(which), nil, 0)
	if n == 0 {
		return nil
	}
	out := make([]Range, n)
	C.ptx_intervals(r.launch, C.int(which), (*C.Range)(unsafe.Pointer(&out[0])), n)
	kept := out[:0] // ranges of memory may follow each other without a gap
	for _, o := range out {
		if n := len(kept); n > 0 && kept[n-1].End == o.Start {
			kept[n-1].End = o.End
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// Run executes a launch on the calling thread.
func (k *Kernel) Run(l Launch) (*Report, error) {
	r, err := k.Start(l)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.Work()
	return r.Report()
}

// InstructionSet is which instructions of the processor the executor uses: "avx512", "avx2" or "base".
func InstructionSet() string { return C.GoString(C.ptx_isa()) }

// UseInstructionSet chooses one of them, for tests; it returns false if the processor does not have it.
func UseInstructionSet(name string) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.ptx_use(s) != 0
}
