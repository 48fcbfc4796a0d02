package ptx

/*
#include "program.h"
*/
import "C"

import (
	"strings"
)

var spaceMods = map[string]int{
	"global": C.SPACE_GLOBAL, "shared": C.SPACE_SHARED, "shared::cta": C.SPACE_SHARED, "local": C.SPACE_LOCAL, "const": C.SPACE_CONST,
	"param": C.SPACE_PARAM, "param::entry": C.SPACE_PARAM, "param::func": C.SPACE_PARAM, "generic": C.SPACE_GENERIC,
}

// space returns the state space that an instruction names, generic without one.
func (d *decoder) space() C.uint8_t {
	for _, m := range d.o.mods {
		if s, ok := spaceMods[m]; ok {
			if s == C.SPACE_PARAM && !d.isEntry {
				return C.SPACE_LOCAL // parameters of functions lie in their frames
			}
			return C.uint8_t(s)
		}
		if m == "shared::cluster" {
			d.fail("not supported: clusters need sm_90; kernels run as on sm_80")
		}
	}
	return C.SPACE_GENERIC
}

// memory makes an operand in memory of `[base+offset]`.
func (d *decoder) memory(o *operand, space C.uint8_t, size, vec int) C.MemOperand {
	m := C.MemOperand{space: space, size: C.uint8_t(size), vec: C.uint8_t(vec), base: -1, offset: C.int64_t(o.offset)}
	if o.kind != operandMemory || len(o.elems) != 1 {
		d.fail("an address such as [%%rd1+8] expected, not %s", o.text())
	}
	b := &o.elems[0]
	for i := range m.regs {
		m.regs[i] = -1
	}
	v := b.v
	if b.kind == operandName {
		if v = d.m.globals[b.name]; v == nil {
			d.fail("the name %s is not known", b.name)
		}
	}
	switch {
	case b.kind == operandInt:
		m.offset += C.int64_t(b.bits)
	case v == nil:
		d.fail("an address expected, not %s", b.text())
	case v.space == spaceReg:
		m.base = C.int32_t(d.reg(v))
		m.base_size = C.uint8_t(d.regs[m.base].size)
		if m.base_size != 4 && m.base_size != 8 {
			d.fail("an address in a register of %d bytes", m.base_size)
		}
	case v.space == spaceShared:
		m.space = C.SPACE_SHARED
		d.p.useShared(v)
		d.p.addresses = append(d.p.addresses, sharedAddress{v: v, fill: -1, mem: len(d.p.mems)})
	case v.space == spaceLocal || v.space == spaceParam && !(d.isEntry && d.isParameter(v)):
		m.space = C.SPACE_LOCAL
		m.offset += C.int64_t(d.places[v])
		if end := int64(m.offset) + int64(size*vec); int64(m.offset) < 0 || end > int64(d.local) {
			d.fail("%d bytes behind the begin of %s, which has %d", o.offset, v.name, v.size)
		}
	case v.space == spaceParam:
		m.space = C.SPACE_PARAM
		m.offset += C.int64_t(d.places[v])
		if o.offset < 0 || int(o.offset)+size*vec > alignUp(v.size, 16) {
			d.fail("%d bytes behind the begin of %s, which has %d", o.offset, v.name, v.size)
		}
	default:
		m.space = C.SPACE_GLOBAL
		m.offset += C.int64_t(v.offset)
	}
	return m
}

func (d *decoder) addMemory(m C.MemOperand) C.int32_t {
	d.p.mems = append(d.p.mems, m)
	return C.int32_t(len(d.p.mems) - 1)
}

func (d *decoder) vectorSize() int {
	switch d.o.one("v2", "v4", "v8") {
	case "v2":
		return 2
	case "v4":
		return 4
	case "v8":
		d.fail("not supported: .v8 needs sm_100; kernels run as on sm_80")
	}
	return 1
}

// ordering sets what volatile, relaxed and acquiring or releasing accesses need.
func (d *decoder) ordering(m *C.MemOperand) {
	switch d.o.one("volatile", "relaxed", "acquire", "release", "mmio") {
	case "volatile", "relaxed", "mmio":
		m.synchronizes = 1
	case "acquire", "release":
		m.synchronizes, m.fence = 1, 1
	}
}

func (d *decoder) vectorOf(o *operand, vec int) []operand {
	if vec == 1 {
		if o.kind == operandVector && len(o.elems) == 1 {
			return o.elems
		}
		return []operand{*o}
	}
	if o.kind != operandVector || len(o.elems) != vec {
		d.fail("a vector of %d registers expected", vec)
	}
	return o.elems
}

func (d *decoder) load(s *statement, o *opcode) {
	d.operandCount(2, 3) // the third is a cache policy
	if o.has("async") || o.has("unified") && o.name != "ldu" {
		d.unsupported()
	}
	t, vec := d.single(), d.vectorSize()
	m := d.memory(&s.args[1], d.space(), typeSizes[t], vec)
	d.ordering(&m)
	if vec == 1 && o.one("relaxed", "acquire") != "" {
		m.whole_word = wholeWord(t)
	}
	if t[0] == 's' {
		m.is_signed = 1
	}
	// narrow types may be loaded into larger registers
	for i, e := range d.vectorOf(&s.args[0], vec) {
		if e.kind == operandSink {
			continue
		}
		r := d.anyTarget(&e, t)
		size := d.regs[r].size
		if size < typeSizes[t] || size == 1 || m.reg_size != 0 && int(m.reg_size) != size {
			d.fail("a register that holds .%s expected, not %s of %d bytes", t, e.text(), size)
		}
		m.reg_size = C.uint8_t(size)
		m.regs[i] = C.int32_t(r)
	}
	if m.reg_size == 0 {
		m.reg_size = C.uint8_t(registerSize(t))
	}
	in := C.Insn{kind: C.K_LOAD, x: d.addMemory(m)}
	d.emit(in)
}

func (d *decoder) store(s *statement, o *opcode) {
	d.operandCount(2, 3)
	if o.has("async") || o.has("bulk") {
		d.fail("not supported: it needs sm_90; kernels run as on sm_80")
	}
	t, vec := d.single(), d.vectorSize()
	m := d.memory(&s.args[0], d.space(), typeSizes[t], vec)
	if m.space == C.SPACE_PARAM || m.space == C.SPACE_CONST {
		d.fail("a store to parameters of a kernel or to constants")
	}
	d.ordering(&m)
	for i, e := range d.vectorOf(&s.args[1], vec) {
		r := d.anySource(&e, t)
		if d.regs[r].size == 1 || d.regs[r].size < typeSizes[t] {
			d.fail("a register that holds .%s expected, not %s of %d bytes", t, e.text(), d.regs[r].size)
		}
		if m.reg_size != 0 && int(m.reg_size) != d.regs[r].size { // a vector of registers of several sizes
			same := d.temp(int(m.reg_size))
			d.extend(same, r, "u"+t[1:])
			r = same
		}
		m.reg_size = C.uint8_t(d.regs[r].size)
		m.regs[i] = C.int32_t(r)
	}
	d.emit(C.Insn{kind: C.K_STORE, x: d.addMemory(m)})
}

var atomicOps = map[string]int{"add": 0, "min": 1, "max": 2, "and": 3, "or": 4, "xor": 5, "exch": 6, "cas": 7, "inc": 8, "dec": 9}
var atomicTypes = map[string]int{
	"u32": 0, "b32": 0, "s32": 1, "u64": 2, "b64": 2, "s64": 3, "f32": 4, "f64": 5, "f16": 6, "bf16": 7, "f16x2": 8, "bf16x2": 9, "b16": 10, "b128": 11,
}

// wholeWord is 1 for the words of which compilers exchange a part where a device has no atomic operation on the part: they
// read one by an atomic load, and write it by compare and swap.
func wholeWord(t string) C.uint8_t {
	if t == "b32" {
		return 1
	}
	return 0
}

// atomicAllowed has the types of each operation on sm_80 (and b128, which is newer).
var atomicAllowed = map[string]string{
	"add": "u32 s32 u64 s64 f32 f64 f16 bf16 f16x2 bf16x2", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "and": "b32 b64", "or": "b32 b64",
	"xor": "b32 b64", "exch": "b32 b64 b128 u32 u64 f32", "cas": "b16 b32 b64 b128 u32 u64", "inc": "u32", "dec": "u32",
}

func (d *decoder) atomic(s *statement, o *opcode) {
	if o.has("async") || d.o.one("v2", "v4", "v8") != "" {
		d.fail("not supported: it needs sm_90; kernels run as on sm_80")
	}
	name := o.one("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
	t := d.single()
	allowed := false
	for _, a := range strings.Fields(atomicAllowed[name]) {
		allowed = allowed || a == t
	}
	if !allowed || o.name == "red" && (name == "exch" || name == "cas") {
		d.unsupported()
	}
	args := s.args
	to := int32(-1)
	if o.name == "atom" {
		d.operandCount(3, 5)
		if args[0].kind != operandSink {
			to = d.target(&args[0], t)
		}
		args = args[1:]
	} else {
		d.operandCount(2, 3)
	}
	m := d.memory(&args[0], d.space(), typeSizes[t], 1)
	if m.space == C.SPACE_PARAM || m.space == C.SPACE_CONST || m.space == C.SPACE_LOCAL {
		d.unsupported()
	}
	m.reg_size = m.size
	m.regs[0] = C.int32_t(d.source(&args[1], t))
	if name == "cas" {
		if len(args) < 3 {
			d.fail("the value to compare with expected")
		}
		m.regs[1] = m.regs[0]
		m.regs[0] = C.int32_t(d.source(&args[2], t))
		m.whole_word = wholeWord(t)
	}
	in := C.Insn{kind: C.K_ATOMIC, mode: C.uint8_t(atomicOps[name]), pair: C.uint8_t(atomicTypes[t]), d: C.int32_t(to), size_d: C.uint8_t(typeSizes[t])}
	in.x = d.addMemory(m)
	d.emit(in)
}

func (d *decoder) copyAsync(s *statement, o *opcode) {
	if !o.has("async") || o.has("bulk") || o.has("mbarrier") {
		d.fail("not supported: it needs sm_90; kernels run as on sm_80")
	}
	if o.has("commit_group") || o.has("wait_group") || o.has("wait_all") {
		d.emit(C.Insn{kind: C.K_NOP})
		return
	}
	d.operandCount(3, 5)
	n := d.number(&s.args[2])
	if n != 4 && n != 8 && n != 16 || o.has("cg") && n != 16 {
		d.fail("a copy of %d bytes", n)
	}
	to := d.memory(&s.args[0], C.SPACE_SHARED, int(n), 1)
	args := s.args[3:]
	if len(args) > 0 && (args[0].kind == operandVar && args[0].v.typ == "pred") { // ignore-src
		to.regs[1] = C.int32_t(d.source(&args[0], "pred"))
	} else if len(args) > 0 && (args[0].kind == operandInt || args[0].kind == operandVar && typeSizes[args[0].v.typ] == 4) {
		to.regs[0] = C.int32_t(d.source(&args[0], "u32"))
	}
	x := d.addMemory(to)
	d.addMemory(d.memory(&s.args[1], C.SPACE_GLOBAL, int(n), 1))
	d.emit(C.Insn{kind: C.K_COPY_ASYNC, x: x})
}

// convertAddress adds the window of a space, or takes it away.
func (d *decoder) convertAddress(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	space := d.space()
	to := d.target(&s.args[0], t)
	from := d.source(&s.args[1], t)
	if s.args[1].kind == operandVar && s.args[1].v.space == spaceParam && !(d.isEntry && d.isParameter(s.args[1].v)) {
		space = C.SPACE_LOCAL
	}
	window := uint64(0)
	if space == C.SPACE_SHARED || space == C.SPACE_LOCAL || space == C.SPACE_PARAM {
		window = uint64(space) << C.WINDOW_SHIFT
	}
	switch {
	case window == 0 || typeSizes[t] != 8:
		d.alu(sized("mov", t), to, from)
	case o.has("to"):
		d.alu("and_8", to, from, d.constant(8, 1<<C.WINDOW_SHIFT-1))
	default:
		d.alu("or_8", to, from, d.constant(8, window))
	}
}

func (d *decoder) isSpace(s *statement, o *opcode) {
	d.operandCount(2, 2)
	space := d.space()
	from := d.anySource(&s.args[1], "u64")
	d.emit(C.Insn{kind: C.K_IS_SPACE, mode: space, d: C.int32_t(d.target(&s.args[0], "pred")), size_d: 1, a: C.int32_t(from), size_a: C.uint8_t(d.regs[from].size)})
}

func (d *decoder) createPolicy(s *statement, _ *opcode) {
	d.alu("mov_8", d.target(&s.args[0], "b64"), d.constant(8, 0))
}

func (d *decoder) fence(_ *statement, o *opcode) {
	if o.has("proxy") || o.has("cluster") {
		d.fail("not supported: it needs sm_90; kernels run as on sm_80")
	}
	d.emit(C.Insn{kind: C.K_FENCE})
}
