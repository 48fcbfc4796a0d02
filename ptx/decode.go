package ptx

/*
#cgo CFLAGS: -std=c11 -O3 -fno-strict-aliasing -Wall -Wextra
#cgo LDFLAGS: -lm
#include "program.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// laneLoops has the number of every lane loop of lanes.def.
var laneLoops = func() map[string]C.uint16_t {
	loops := map[string]C.uint16_t{}
	for i := range int(C.ptx_lane_count()) {
		loops[C.GoString(C.ptx_lane_name(C.int(i)))] = C.uint16_t(i)
	}
	return loops
}()

// opcode is an instruction's name with its modifiers, taken apart once for all statements that have it.
type opcode struct {
	text     string
	name     string
	mods     []string
	types    []string // the modifiers that are types
	round    int      // of .rn, .rz, .rm and .rp; -1 without
	ftz, sat bool
	decode   func(d *decoder, s *statement, o *opcode)
}

// typ is the last type, which is that of the operands.
func (o *opcode) typ() string {
	if len(o.types) == 0 {
		return ""
	}
	return o.types[len(o.types)-1]
}

func (o *opcode) has(mod string) bool {
	for _, m := range o.mods {
		if m == mod {
			return true
		}
	}
	return false
}

// one returns which of the names is a modifier.
func (o *opcode) one(names ...string) string {
	for _, m := range o.mods {
		for _, n := range names {
			if m == n {
				return n
			}
		}
	}
	return ""
}

var roundings = map[string]int{"rn": C.ROUND_NEAREST, "rz": C.ROUND_ZERO, "rm": C.ROUND_DOWN, "rp": C.ROUND_UP}

var opcodes = struct {
	sync.Mutex
	known map[string]*opcode
}{known: map[string]*opcode{}}

// opcodeOf takes an opcode apart, or returns what was made of it before.
func opcodeOf(text string) *opcode {
	opcodes.Lock()
	defer opcodes.Unlock()
	if o := opcodes.known[text]; o != nil {
		return o
	}
	parts := strings.Split(text, ".")
	o := &opcode{text: text, name: parts[0], mods: parts[1:], round: -1}
	for _, m := range o.mods {
		if typeSizes[m] > 0 {
			o.types = append(o.types, m)
		}
		if r, ok := roundings[m]; ok {
			o.round = r
		}
		o.ftz = o.ftz || m == "ftz"
		o.sat = o.sat || m == "sat"
	}
	o.decode = instructions[o.name]
	if len(opcodes.known) > 4096 { // a text may make up any number of them
		clear(opcodes.known)
	}
	opcodes.known[text] = o
	return o
}

// register is a register of a function while it is decoded: of the text, a temporary one, or a constant.
type register struct {
	size  int
	fixed bool // filled when the frame is made, and never written
	fill  C.Fill
	base  *variable // of an address in shared memory: known when all variables are placed
	slot  int32
}

type constant struct {
	size int
	bits uint64
}

// sharedAddress is a place that gets the address of a variable in shared memory when all of them are placed.
type sharedAddress struct {
	v    *variable
	fill int // index in the fills, or -1
	mem  int // else index in the operands in memory
}

// program collects a kernel and the functions that it calls.
type program struct {
	m         *Module
	code      []C.Insn
	mems      []C.MemOperand
	calls     []C.CallSite
	funcs     []C.Func
	fills     []C.Fill
	table     []int32
	lines     []int32 // of the text, by instruction
	texts     []*opcode
	functions []*function
	number    map[*function]int
	shared    map[*variable]int
	addresses []sharedAddress
	indirect  []int // instructions that call by address
	reach     []Access
}

// decoder works on one function of a program.
type decoder struct {
	p       *program
	m       *Module
	f       *function
	isEntry bool
	regs    []register
	consts  map[constant]int32
	special map[string]int32
	places  map[*variable]int // offsets in local memory, or of the kernel's parameters
	local   int
	labels  map[string]int32
	tables  map[string][]string // of labels, for brx.idx
	jumps   []jump
	first   int // index of the function's first instruction
	carry   int32
	s       *statement
	o       *opcode
	guard   int32
	not     C.uint8_t
}

type jump struct {
	insn  int
	label string
	line  int
	table int // index in the table, or -1
}

func (d *decoder) fail(format string, args ...any) {
	panic(&SyntaxError{d.s.line, d.o.text + ": " + fmt.Sprintf(format, args...)})
}

func (d *decoder) unsupported() { d.fail("not supported") }

func alignUp(n, to int) int { return (n + to - 1) / to * to }

// layout places parameters one behind another.
func layout(at int, vars []*variable) (offsets []int, end int) {
	for _, v := range vars {
		at = alignUp(at, max(1, v.align))
		offsets = append(offsets, at)
		at += v.size
	}
	return offsets, at
}

// decodeKernel makes a program of a kernel.
func (m *Module) decodeKernel(f *function) (p *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			p, err = nil, e
		}
	}()
	p = &program{m: m, number: map[*function]int{}, shared: map[*variable]int{}, table: []int32{0}}
	p.function(f)
	for i := 0; i < len(p.functions); i++ {
		p.decode(p.functions[i], i == 0)
	}
	p.linkCalls()
	return p, nil
}

func (p *program) function(f *function) int {
	if n, ok := p.number[f]; ok {
		return n
	}
	p.number[f] = len(p.functions)
	p.functions = append(p.functions, f)
	p.funcs = append(p.funcs, C.Func{})
	return len(p.functions) - 1
}

// linkCalls gives calls by address the functions whose address is taken.
func (p *program) linkCalls() {
	if len(p.indirect) == 0 {
		return
	}
	known := p.m.addressTaken()
	for _, f := range known {
		p.function(f)
	}
	for i := range p.functions {
		if p.funcs[i].frame_bytes == 0 && p.funcs[i].entry == 0 && i > 0 {
			p.decode(p.functions[i], false)
		}
	}
	row := int32(len(p.table))
	p.table = append(p.table, int32(len(known)))
	for _, f := range known {
		p.table = append(p.table, int32(f.index), int32(p.number[f]))
	}
	for _, i := range p.indirect {
		p.code[i].imm = C.int64_t(row)
	}
}

// addressTaken returns the functions that something other than a direct call names.
func (m *Module) addressTaken() (out []*function) {
	taken := map[*function]bool{}
	add := func(name string) {
		if f := m.functions[name]; f != nil && !f.entry && f.hasBody && !taken[f] {
			taken[f] = true
			out = append(out, f)
		}
	}
	for _, v := range m.inOrder {
		for _, in := range v.init {
			if in.symbol != "" {
				add(in.symbol)
			}
		}
	}
	for _, f := range m.order {
		for i := range f.body {
			s := &f.body[i]
			if strings.HasPrefix(s.opcode, "mov") && len(s.args) == 2 && s.args[1].kind == operandName {
				add(s.args[1].name)
			}
		}
	}
	return out
}

// decode appends the code of one function.
func (p *program) decode(f *function, isEntry bool) {
	d := &decoder{
		p: p, m: p.m, f: f, isEntry: isEntry, first: len(p.code), carry: -1, guard: -1,
		consts: map[constant]int32{}, special: map[string]int32{}, places: map[*variable]int{}, labels: map[string]int32{},
		tables: make(map[string][]string, len(f.tables)),
	}
	for _, t := range f.tables {
		d.tables[t.name] = t.targets
	}
	d.regs = make([]register, f.registers, f.registers+64)
	p.code = slices.Grow(p.code, len(f.body)+len(f.body)/4)
	p.lines, p.texts = slices.Grow(p.lines, len(f.body)+len(f.body)/4), slices.Grow(p.texts, len(f.body)+len(f.body)/4)
	d.s, d.o = &statement{line: f.line}, &opcode{text: f.name}
	if !f.hasBody {
		d.fail("the function is declared but not defined")
	}
	offsets, end := layout(0, f.params)
	for i, v := range f.params {
		d.places[v] = offsets[i]
	}
	if !isEntry {
		offsets, end = layout(end, f.rets)
		for i, v := range f.rets {
			d.places[v] = offsets[i]
		}
		d.local = end
	}
	offsets, d.local = layout(d.local, f.locals)
	for i, v := range f.locals {
		d.places[v] = offsets[i]
	}
	for _, v := range f.shared {
		p.useShared(v)
	}
	d.local = alignUp(d.local, 16)
	if d.local > 512<<10 {
		d.fail("%d bytes of local memory; 524288 is the most", d.local)
	}
	for i := range f.body {
		s := &f.body[i]
		if s.label != "" {
			d.labels[s.label] = int32(len(p.code))
			continue
		}
		d.statement(s)
	}
	d.s = &statement{line: f.line, loc: -1}
	d.o, d.guard = &opcode{text: "ret"}, -1
	d.emit(C.Insn{kind: C.K_RETURN})
	for _, j := range d.jumps {
		at, ok := d.labels[j.label]
		if !ok {
			panic(&SyntaxError{j.line, fmt.Sprintf("label %q is not in function %s", j.label, f.name)})
		}
		if j.table >= 0 {
			p.table[j.table] = at
		} else {
			p.code[j.insn].x = C.int32_t(at)
		}
	}
	d.finish()
}

func (d *decoder) statement(s *statement) {
	d.s = s
	d.o = opcodeOf(s.opcode)
	if d.o.decode == nil {
		d.refuse()
	}
	d.guard, d.not = -1, 0
	if s.guard != nil {
		d.guard = int32(s.guard.offset)
		d.regs[d.guard].size = 1
		if s.guardNot {
			d.not = 1
		}
		if len(s.args) > 0 && (s.args[0].v == s.guard || s.args[0].second != nil && s.args[0].second.v == s.guard) {
			keep := d.temp(1) // the guard is written before the last part of the instruction
			guard := d.guard
			d.guard = -1
			d.alu("mov_1", keep, guard)
			d.guard = keep
		}
	}
	d.o.decode(d, s, d.o)
}

// ---- registers ----

func registerSize(typ string) int {
	n := typeSizes[typ]
	if n == 1 && typ != "pred" {
		return 2
	}
	return n
}

func (d *decoder) temp(size int) int32 {
	d.regs = append(d.regs, register{size: size})
	return int32(len(d.regs) - 1)
}

func (d *decoder) reg(v *variable) int32 {
	n := int32(v.offset)
	if d.regs[n].size == 0 {
		d.regs[n].size = registerSize(v.typ)
	}
	return n
}

func (d *decoder) constant(size int, bits uint64) int32 {
	if size < 8 {
		bits &= 1<<(8*size) - 1
	}
	key := constant{size, bits}
	if n, ok := d.consts[key]; ok {
		return n
	}
	n := d.temp(size)
	d.regs[n].fixed = true
	d.regs[n].fill = C.Fill{size: C.uint8_t(size), what: C.FILL_CONST, bits: C.uint64_t(bits)}
	d.consts[key] = n
	return n
}

var axes = map[string]int{".x": 0, ".y": 1, ".z": 2}

var specials = map[string]int{
	"%laneid": C.FILL_LANEID, "%warpid": C.FILL_WARPID, "%nwarpid": C.FILL_NWARPID, "%lanemask_eq": C.FILL_MASK_EQ,
	"%lanemask_lt": C.FILL_MASK_LT, "%lanemask_le": C.FILL_MASK_LE, "%lanemask_gt": C.FILL_MASK_GT, "%lanemask_ge": C.FILL_MASK_GE,
	"%dynamic_smem_size": C.FILL_DYNAMIC_SHARED, "%total_smem_size": C.FILL_TOTAL_SHARED, "%aggr_smem_size": C.FILL_TOTAL_SHARED,
	"%envreg1": C.FILL_COOP_HIGH, "%envreg2": C.FILL_COOP_LOW,
}

// fixedSpecials have one value; a cluster is a block.
var fixedSpecials = map[string]uint64{
	"WARP_SZ": 32, "%smid": 0, "%nsmid": 2, "%gridid": 0, "%cluster_ctarank": 0, "%cluster_nctarank": 1,
	"%clusterid.x": 0, "%clusterid.y": 0, "%clusterid.z": 0, "%cluster_ctaid.x": 0, "%cluster_ctaid.y": 0, "%cluster_ctaid.z": 0,
	"%cluster_nctaid.x": 1, "%cluster_nctaid.y": 1, "%cluster_nctaid.z": 1, "%is_explicit_cluster": 0, "%current_graph_exec": 0,
	"%reserved_smem_offset_begin": 0, "%reserved_smem_offset_end": 0, "%reserved_smem_offset_cap": 0,
}

// specialRegister returns a register with the value of a special one, in its own size.
func (d *decoder) specialRegister(name string) int32 {
	if n, ok := d.special[name]; ok {
		return n
	}
	fill := func(what int) int32 {
		n := d.temp(4)
		d.regs[n].fixed = true
		d.regs[n].fill = C.Fill{size: 4, what: C.uint8_t(what)}
		d.special[name] = n
		return n
	}
	if len(name) > 2 {
		base, axis := name[:len(name)-2], name[len(name)-2:]
		if k, ok := axes[axis]; ok {
			switch base {
			case "%tid":
				return fill(C.FILL_TID + k)
			case "%ntid":
				return fill(C.FILL_NTID + k)
			case "%ctaid":
				return fill(C.FILL_CTAID + k)
			case "%nctaid":
				return fill(C.FILL_NCTAID + k)
			case "%nclusterid":
				return fill(C.FILL_NCTAID + k)
			}
		}
	}
	if what, ok := specials[name]; ok {
		return fill(what)
	}
	if v, ok := fixedSpecials[name]; ok {
		return d.constant(4, v)
	}
	if strings.HasPrefix(name, "%envreg") || strings.HasPrefix(name, "%pm") {
		return d.constant(4, 0)
	}
	clock := func(size int, shift int) int32 {
		n := d.temp(size)
		d.emit(C.Insn{kind: C.K_CLOCK, d: C.int32_t(n), imm: C.int64_t(shift)})
		return n
	}
	switch name {
	case "%clock", "%globaltimer_lo":
		return clock(4, 0)
	case "%clock_hi", "%globaltimer_hi":
		return clock(4, 32)
	case "%clock64", "%globaltimer":
		return clock(8, 0)
	}
	d.fail("the register %s is not known", name)
	return -1
}

// source returns the register of an operand; typ says what a number means and how many bytes there must be.
func (d *decoder) source(o *operand, typ string) int32 {
	n := d.anySource(o, typ)
	if want := registerSize(typ); d.regs[n].size != want {
		if o.kind == operandSpecial {
			return d.resized(n, want)
		}
		d.fail("an operand of type .%s expected, not %s of %d bytes", typ, o.text(), d.regs[n].size)
	}
	return n
}

func (d *decoder) resized(n int32, size int) int32 {
	to := d.temp(size)
	d.extend(to, n, fmt.Sprintf("u%d", 8*d.regs[n].size))
	return to
}

func (o *operand) text() string {
	switch o.kind {
	case operandVar:
		return o.v.name
	case operandName, operandSpecial:
		return o.name
	case operandSink:
		return "_"
	case operandVector:
		return "a vector"
	case operandMemory:
		return "an address"
	}
	return "a number"
}

// anySource is source without the check of the size.
func (d *decoder) anySource(o *operand, typ string) int32 {
	var n int32
	switch o.kind {
	case operandVar:
		if o.v.space != spaceReg {
			return d.address(o.v, o.offset, registerSize(typ))
		}
		if o.v.owner != d.f {
			d.fail("%s belongs to another function", o.v.name)
		}
		n = d.reg(o.v)
	case operandInt, operandFloat32, operandFloat64, operandDecimal:
		bits := immediateBits(o, typ)
		if typ == "pred" {
			bits = min(bits, 1) // compilers write -1 for true
		}
		return d.constant(registerSize(typ), bits)
	case operandSpecial:
		n = d.specialRegister(o.name)
	case operandName:
		if f := d.m.functions[o.name]; f != nil {
			return d.constant(8, functionAddress(f))
		}
		if v := d.m.globals[o.name]; v != nil {
			return d.address(v, o.offset, registerSize(typ))
		}
		d.fail("the name %s is not known", o.name)
	default:
		d.fail("a register or a number expected, not %s", o.text())
	}
	if o.not {
		t := d.temp(1)
		d.alu("not_1", t, n)
		return t
	}
	if o.minus {
		d.fail("a register with a sign")
	}
	return n
}

const functionWindow = 7 << C.WINDOW_SHIFT

func functionAddress(f *function) uint64 { return functionWindow | uint64(f.index)*16 }

// address returns a register with the address of a variable in its space.
func (d *decoder) address(v *variable, add int64, size int) int32 {
	if size != 4 && size != 8 {
		d.fail("the address of %s does not fit", v.name)
	}
	switch {
	case v.space == spaceShared:
		key := fmt.Sprintf("%s+%d/%d", v.name, add, size)
		if n, ok := d.special[key]; ok {
			return n
		}
		n := d.temp(size)
		d.regs[n].fixed = true
		d.regs[n].base = v
		d.regs[n].fill = C.Fill{size: C.uint8_t(size), what: C.FILL_CONST, bits: C.uint64_t(add)}
		d.special[key] = n
		d.p.useShared(v)
		return n
	case v.space == spaceLocal || v.space == spaceParam && !(d.isEntry && d.isParameter(v)):
		n := d.temp(size)
		d.emit(C.Insn{kind: C.K_LOCAL_ADDRESS, d: C.int32_t(n), imm: C.int64_t(int64(d.places[v]) + add)})
		return n
	case v.space == spaceParam:
		return d.constant(size, uint64(int64(d.places[v])+add))
	}
	return d.constant(size, uint64(int64(v.offset)+add))
}

func (d *decoder) isParameter(v *variable) bool {
	return v.index < len(d.f.params) && d.f.params[v.index] == v
}

// useShared takes a variable of shared memory into the block's.
func (p *program) useShared(v *variable) {
	if _, ok := p.shared[v]; !ok {
		p.shared[v] = 0
	}
}

// target returns the register that an operand names as result.
func (d *decoder) target(o *operand, typ string) int32 {
	n := d.anyTarget(o, typ)
	if want := registerSize(typ); d.regs[n].size != want {
		d.fail("a register of type .%s expected, not %s of %d bytes", typ, o.text(), d.regs[n].size)
	}
	return n
}

func (d *decoder) anyTarget(o *operand, typ string) int32 {
	switch {
	case o.kind == operandSink:
		return d.temp(registerSize(typ))
	case o.kind == operandVar && o.v.space == spaceReg && o.v.owner == d.f:
		return d.reg(o.v)
	}
	d.fail("a register expected, not %s", o.text())
	return -1
}

// ---- instructions ----

func (d *decoder) emit(in C.Insn) int {
	in.guard, in.guard_not = C.int32_t(d.guard), d.not
	in.loc = C.int32_t(d.s.loc)
	d.p.code = append(d.p.code, in)
	d.p.lines = append(d.p.lines, int32(d.s.line))
	d.p.texts = append(d.p.texts, d.o)
	return len(d.p.code) - 1
}

// alu appends an instruction of a lane loop and returns it, for modifiers.
func (d *decoder) alu(loop string, to int32, from ...int32) *C.Insn {
	fn, ok := laneLoops[loop]
	if !ok {
		d.unsupported()
	}
	in := C.Insn{kind: C.K_ALU, fn: fn, d: C.int32_t(to), size_d: C.uint8_t(d.regs[to].size)}
	d.setSources(&in, from)
	return &d.p.code[d.emit(in)]
}

// setSources sets the registers that an instruction reads.
func (d *decoder) setSources(in *C.Insn, from []int32) {
	in.sources = C.uint8_t(len(from))
	for i, r := range from {
		size := C.uint8_t(d.regs[r].size)
		switch i {
		case 0:
			in.a, in.size_a = C.int32_t(r), size
		case 1:
			in.b, in.size_b = C.int32_t(r), size
		case 2:
			in.c, in.size_c = C.int32_t(r), size
		case 3:
			in.e, in.size_e = C.int32_t(r), size
		}
	}
}

// operandCount fails unless an instruction has so many operands.
func (d *decoder) operandCount(least, most int) {
	if n := len(d.s.args); n < least || n > most {
		if least == most {
			d.fail("%d operands expected, not %d", least, n)
		}
		d.fail("%d to %d operands expected, not %d", least, most, n)
	}
}
