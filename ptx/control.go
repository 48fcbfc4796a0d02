package ptx

/*
#include "program.h"
*/
import "C"

import "strings"

func (d *decoder) branch(s *statement, _ *opcode) {
	d.operandCount(1, 1)
	if s.args[0].kind != operandName {
		d.fail("a label expected, not %s", s.args[0].text())
	}
	d.jumps = append(d.jumps, jump{insn: len(d.p.code), label: s.args[0].name, line: s.line, table: -1})
	d.emit(C.Insn{kind: C.K_BRANCH})
}

func (d *decoder) branchIndex(s *statement, o *opcode) {
	d.operandCount(2, 2)
	if !o.has("idx") {
		d.unsupported()
	}
	labels := d.tables[s.args[1].name]
	if len(labels) == 0 {
		d.fail("%s is no list of targets", s.args[1].text())
	}
	index := d.source(&s.args[0], "u32")
	row := len(d.p.table)
	d.p.table = append(d.p.table, int32(len(labels)))
	for i, l := range labels {
		d.p.table = append(d.p.table, 0)
		d.jumps = append(d.jumps, jump{label: l, line: s.line, table: row + 1 + i})
	}
	d.emit(C.Insn{kind: C.K_BRANCH_INDEX, a: C.int32_t(index), x: C.int32_t(row)})
}

func (d *decoder) end(_ *statement, o *opcode) {
	d.operandCount(0, 0)
	if o.name == "exit" {
		d.emit(C.Insn{kind: C.K_EXIT})
	} else {
		d.emit(C.Insn{kind: C.K_RETURN})
	}
}

func (d *decoder) trap(_ *statement, o *opcode) {
	in := C.Insn{kind: C.K_TRAP}
	if o.name == "brkpt" {
		in.mode = 1
	}
	d.emit(in)
}

// sleep lets others run: to a block that waits for another one it is like a look at memory.
func (d *decoder) sleep(*statement, *opcode) {
	t := d.temp(4)
	d.emit(C.Insn{kind: C.K_CLOCK, d: C.int32_t(t), size_d: 4})
}

// argument loads what a call passes in a parameter into a register.
func (d *decoder) argument(o *operand, size int) int32 {
	if o.kind != operandVar || o.v.space != spaceParam {
		d.fail("a parameter expected, not %s", o.text())
	}
	to := d.temp(size)
	m := C.MemOperand{space: C.SPACE_LOCAL, size: C.uint8_t(size), vec: 1, base: -1, offset: C.int64_t(d.places[o.v]), reg_size: C.uint8_t(size)}
	m.regs[0] = C.int32_t(to)
	d.emit(C.Insn{kind: C.K_LOAD, x: d.addMemory(m)})
	return to
}

// result stores a register into what a call returns.
func (d *decoder) result(o *operand, from int32) {
	size := d.regs[from].size
	m := C.MemOperand{space: C.SPACE_LOCAL, size: C.uint8_t(size), vec: 1, base: -1, offset: C.int64_t(d.places[o.v]), reg_size: C.uint8_t(size)}
	m.regs[0] = C.int32_t(from)
	d.emit(C.Insn{kind: C.K_STORE, x: d.addMemory(m)})
}

// system decodes calls of functions that the driver has; it returns whether this is one.
func (d *decoder) system(name string, s *statement) bool {
	args := s.args[1:]
	count := map[string]int{"vprintf": 2, "__assertfail": 5, "malloc": 1, "free": 1}[name]
	if count == 0 {
		return false
	}
	if len(args) != count {
		d.fail("%d parameters expected, not %d", count, len(args))
	}
	switch name {
	case "vprintf":
		a, b, r := d.argument(&args[0], 8), d.argument(&args[1], 8), d.temp(4)
		d.emit(C.Insn{kind: C.K_PRINTF, a: C.int32_t(a), b: C.int32_t(b), d: C.int32_t(r)})
		if len(s.rets) == 1 {
			d.result(&s.rets[0], r)
		}
	case "__assertfail":
		in := C.Insn{kind: C.K_ASSERT}
		in.a, in.b = C.int32_t(d.argument(&args[0], 8)), C.int32_t(d.argument(&args[1], 8))
		in.c, in.e = C.int32_t(d.argument(&args[2], 4)), C.int32_t(d.argument(&args[3], 8))
		d.emit(in)
	case "malloc":
		a, r := d.argument(&args[0], 8), d.temp(8)
		d.emit(C.Insn{kind: C.K_ALLOC, a: C.int32_t(a), d: C.int32_t(r)})
		if len(s.rets) == 1 {
			d.result(&s.rets[0], r)
		}
	case "free":
		a := d.argument(&args[0], 8)
		d.emit(C.Insn{kind: C.K_FREE, a: C.int32_t(a)})
	}
	return true
}

func (d *decoder) call(s *statement, _ *opcode) {
	site := C.CallSite{_func: -1, reg: -1}
	callee := &s.args[0]
	name := callee.name
	var params, rets []*variable
	if callee.kind == operandName {
		f := d.m.functions[name]
		if f == nil || !f.hasBody {
			if d.system(name, s) {
				return
			}
			d.fail("the function %s is not defined", name)
		}
		if f.entry {
			d.fail("a kernel is called")
		}
		params, rets = f.params, f.rets
		site._func = C.int32_t(d.p.function(f))
		if len(params) != len(s.args)-1 || len(rets) != len(s.rets) {
			d.fail("%s has %d parameters and %d results", name, len(params), len(rets))
		}
	} else {
		site.reg = C.int32_t(d.source(callee, "b64"))
		for i := range s.args[1:] {
			params = append(params, s.args[1+i].v)
		}
		for i := range s.rets {
			rets = append(rets, s.rets[i].v)
		}
	}
	for _, list := range [][]operand{s.args[1:], s.rets} {
		for i := range list {
			if list[i].kind != operandVar || list[i].v.space != spaceParam {
				d.fail("a parameter expected, not %s", list[i].text())
			}
		}
	}
	in, end := layout(0, params)
	out, _ := layout(end, rets)
	site.first = C.int32_t(len(d.p.table))
	site.args, site.rets = C.int32_t(len(params)), C.int32_t(len(rets))
	for i, v := range params {
		d.p.table = append(d.p.table, int32(d.places[s.args[1+i].v]), int32(in[i]), int32(min(v.size, s.args[1+i].v.size)))
	}
	for i, v := range rets {
		d.p.table = append(d.p.table, int32(d.places[s.rets[i].v]), int32(out[i]), int32(min(v.size, s.rets[i].v.size)))
	}
	d.p.calls = append(d.p.calls, site)
	at := d.emit(C.Insn{kind: C.K_CALL, x: C.int32_t(len(d.p.calls) - 1)})
	if site._func < 0 {
		d.p.indirect = append(d.p.indirect, at)
	}
}

// barrier decodes bar and barrier: sync, arrive, reductions, and those of a warp.
func (d *decoder) barrier(s *statement, o *opcode) {
	args := s.args
	if o.has("warp") {
		d.operandCount(1, 1)
		d.emit(C.Insn{kind: C.K_WARP_SYNC, d: -1, x: -1, e: C.int32_t(d.source(&args[0], "b32"))})
		return
	}
	if o.has("cluster") {
		d.fail("not supported: clusters need sm_90; kernels run as on sm_80")
	}
	in := C.Insn{kind: C.K_BARRIER, b: -1, c: -1, d: -1}
	switch {
	case o.has("red"):
		d.operandCount(3, 4)
		op := o.one("popc", "and", "or")
		t := "pred"
		if op == "popc" {
			t = "u32"
		}
		in.mode = map[string]C.uint8_t{"popc": 2, "and": 3, "or": 4}[op]
		if in.mode == 0 {
			d.unsupported()
		}
		in.d = C.int32_t(d.target(&args[0], t))
		in.c = C.int32_t(d.source(&args[len(args)-1], "pred"))
		args = args[1 : len(args)-1]
	case o.has("arrive"):
		d.operandCount(2, 2)
		in.mode = 1
	default:
		d.operandCount(1, 2)
	}
	in.a = C.int32_t(d.source(&args[0], "u32"))
	if len(args) > 1 {
		in.b = C.int32_t(d.source(&args[1], "u32"))
	}
	d.emit(in)
}

// ---- warps ----

// warpOp appends an instruction of a warp: result, second result, sources, mask; -1 for what is not there.
func (d *decoder) warpOp(kind int, mode int, to, second, mask int32, from ...int32) *C.Insn {
	in := C.Insn{kind: C.uint8_t(kind), mode: C.uint8_t(mode), d: C.int32_t(to), x: C.int32_t(second), e: C.int32_t(mask)}
	if to >= 0 {
		in.size_d = C.uint8_t(d.regs[to].size)
	}
	d.setSources(&in, from)
	return &d.p.code[d.emit(in)]
}

func (d *decoder) secondTarget(o *operand, typ string) int32 {
	if o.second == nil || o.second.kind == operandSink {
		return -1
	}
	return d.target(o.second, typ)
}

// mask returns the register of the lanes that take part; -1 stands for all.
func (d *decoder) mask(o *operand) int32 {
	if o.kind == operandInt && uint32(o.bits) == ^uint32(0) {
		return -1
	}
	return d.source(o, "b32")
}

func (d *decoder) syncOnly() {
	if !d.o.has("sync") {
		d.fail("not supported: without .sync it ended with sm_70")
	}
}

func (d *decoder) shuffle(s *statement, o *opcode) {
	d.syncOnly()
	d.operandCount(5, 5)
	mode, ok := map[string]int{"up": 0, "down": 1, "bfly": 2, "idx": 3}[o.one("up", "down", "bfly", "idx")]
	if !ok {
		d.unsupported()
	}
	d.warpOp(C.K_SHUFFLE, mode, d.target(&s.args[0], "b32"), d.secondTarget(&s.args[0], "pred"), d.mask(&s.args[4]),
		d.source(&s.args[1], "b32"), d.source(&s.args[2], "b32"), d.source(&s.args[3], "b32"))
}

func (d *decoder) vote(s *statement, o *opcode) {
	d.syncOnly()
	d.operandCount(3, 3)
	mode := map[string]int{"all": 0, "any": 1, "uni": 2, "ballot": 3}[o.one("all", "any", "uni", "ballot")]
	t := "pred"
	if mode == 3 {
		t = "b32"
	}
	d.warpOp(C.K_VOTE, mode, d.target(&s.args[0], t), -1, d.mask(&s.args[2]), d.source(&s.args[1], "pred"))
}

func (d *decoder) match(s *statement, o *opcode) {
	d.syncOnly()
	d.operandCount(3, 3)
	mode := 0
	if o.has("all") {
		mode = 1
	}
	t := d.single()
	d.warpOp(C.K_MATCH, mode, d.target(&s.args[0], "b32"), d.secondTarget(&s.args[0], "pred"), d.mask(&s.args[2]), d.source(&s.args[1], t))
}

func (d *decoder) redux(s *statement, o *opcode) {
	d.syncOnly()
	d.operandCount(3, 3)
	t := d.single()
	op := o.one("add", "min", "max", "and", "or", "xor")
	mode, ok := map[string]int{
		"adds32": 0, "addu32": 0, "mins32": 1, "maxs32": 2, "minu32": 3, "maxu32": 4, "andb32": 5, "orb32": 6, "xorb32": 7,
	}[op+t]
	if !ok {
		d.unsupported()
	}
	d.warpOp(C.K_REDUX, mode, d.target(&s.args[0], t), -1, d.mask(&s.args[2]), d.source(&s.args[1], t))
}

func (d *decoder) elect(s *statement, _ *opcode) {
	d.syncOnly()
	d.operandCount(2, 2)
	to := int32(-1)
	if s.args[0].kind != operandSink {
		to = d.target(&s.args[0], "b32")
	}
	d.warpOp(C.K_ELECT, 0, to, d.secondTarget(&s.args[0], "pred"), d.mask(&s.args[1]))
}

func (d *decoder) activeMask(s *statement, _ *opcode) {
	d.operandCount(1, 1)
	d.emit(C.Insn{kind: C.K_ACTIVE_MASK, d: C.int32_t(d.target(&s.args[0], "b32")), size_d: 4})
}

// ---- matrices ----

// matrixKinds are the elements of matrices as warp.c numbers them.
var matrixKinds = map[string]int{"f16": 0, "bf16": 1, "tf32": 2, "f64": 3, "s8": 4, "u8": 5, "s4": 6, "u4": 7, "b1": 8, "f32": 9, "s32": 10}

var matrixBits = []int{16, 16, 32, 64, 8, 8, 4, 4, 1, 32, 32}

// shape reads m16n8k16.
func shape(mod string) (m, n, k int, ok bool) {
	at := func(c byte) int {
		i := strings.IndexByte(mod, c)
		if i < 0 {
			return 0
		}
		v := 0
		for _, r := range mod[i+1:] {
			if r < '0' || r > '9' {
				break
			}
			v = 10*v + int(r-'0')
		}
		return v
	}
	if mod == "" || mod[0] != 'm' {
		return 0, 0, 0, false
	}
	m, n, k = at('m'), at('n'), at('k')
	return m, n, k, m > 0 && n > 0 && k > 0
}

// shapes lists what sm_80 multiplies: shape and type of A and B, then the types of D.
var shapes = map[string]string{
	"m16n8k8.f16": "f16 f32", "m16n8k16.f16": "f16 f32", "m16n8k8.bf16": "f32", "m16n8k16.bf16": "f32", "m16n8k4.tf32": "f32", "m16n8k8.tf32": "f32",
	"m8n8k4.f64": "f64", "m8n8k16.i8": "s32", "m16n8k16.i8": "s32", "m16n8k32.i8": "s32", "m8n8k32.i4": "s32", "m16n8k32.i4": "s32",
	"m16n8k64.i4": "s32", "m8n8k128.b1": "s32", "m16n8k128.b1": "s32", "m16n8k256.b1": "s32",
}

// wmmaShapes is the same for wmma.
var wmmaShapes = map[string]string{
	"m16n16k16.f16": "f16 f32", "m8n32k16.f16": "f16 f32", "m32n8k16.f16": "f16 f32", "m16n16k16.bf16": "f32", "m8n32k16.bf16": "f32",
	"m32n8k16.bf16": "f32", "m16n16k8.tf32": "f32", "m8n8k4.f64": "f64", "m16n16k16.i8": "s32", "m8n32k16.i8": "s32", "m32n8k16.i8": "s32",
	"m8n8k32.i4": "s32", "m8n8k128.b1": "s32",
}

func family(typ string) string {
	switch typ {
	case "s8", "u8":
		return "i8"
	case "s4", "u4":
		return "i4"
	}
	return typ
}

// matrixTypes are the modifiers that are types of elements; b1, s4 and u4 are no types of registers.
func (o *opcode) matrixTypes() (out []string) {
	for _, m := range o.mods {
		if _, ok := matrixKinds[m]; ok {
			out = append(out, m)
		}
	}
	return out
}

func (o *opcode) shape() (mod string, m, n, k int) {
	for _, mod := range o.mods {
		if m, n, k, ok := shape(mod); ok {
			return mod, m, n, k
		}
	}
	return "", 0, 0, 0
}

func (d *decoder) matrixMultiply(s *statement, o *opcode) {
	if o.has("sp") || o.has("sp::ordered_metadata") {
		d.fail("not supported: sparse matrices")
	}
	mod, m, n, k := o.shape()
	types := o.matrixTypes()
	if len(types) != 4 || !o.has("row") || !o.has("col") {
		d.unsupported()
	}
	d.product(s, shapes, mod, m, n, k, types[1], types[2], types[3], types[0], 0)
}

// product appends a matrix product; the lists of registers are D, A, B and C.
func (d *decoder) product(s *statement, known map[string]string, mod string, m, n, k int, a, b, c, to string, wmma int64) {
	d.operandCount(4, 4)
	results := known[mod+"."+family(a)]
	if !strings.Contains(" "+results+" ", " "+to+" ") || !strings.Contains(" "+results+" ", " "+c+" ") || family(a) != family(b) {
		d.unsupported()
	}
	row := []int32{0, 0, 0, 0}
	size := 4
	if a == "f64" {
		size = 8
	}
	typ := map[int]string{4: "b32", 8: "b64"}[size]
	var counts [4]int
	for i := range 4 {
		list := []operand{s.args[i]}
		if s.args[i].kind == operandVector {
			list = s.args[i].elems
		}
		counts[i] = len(list)
		for k := range list {
			if i == 0 {
				row = append(row, d.target(&list[k], typ))
			} else {
				row = append(row, d.source(&list[k], typ))
			}
		}
	}
	bits := func(t string) int { return matrixBits[matrixKinds[t]] }
	registers := func(elements int, t string) int { return elements * bits(t) / (256 * size) } // of 32 lanes
	want := [4]int{registers(m*n, to), registers(m*k, a), registers(k*n, b), registers(m*n, c)}
	if wmma != 0 {
		want = wmmaRegisters(mod, a, to, c)
	}
	if counts != want {
		d.fail("vectors of %v registers expected, not of %v", want, counts)
	}
	row[0], row[1], row[2], row[3] = int32(counts[0]), int32(counts[1]+counts[2]+counts[3]), int32(counts[1]), int32(counts[2])
	in := C.Insn{
		kind: C.K_MMA, mode: C.uint8_t(matrixKinds[a]), round: C.uint8_t(matrixKinds[b]), pair: C.uint8_t(matrixKinds[c]), mods: C.uint8_t(matrixKinds[to]),
		size_d: C.uint8_t(size), a: -1, b: -1, d: -1, e: -1, x: C.int32_t(len(d.p.table)),
	}
	in.imm = C.int64_t(int64(m) | int64(k)<<8 | wmma<<40 | int64(n)<<32)
	if d.o.has("satfinite") {
		in.imm |= 1 << 24
	}
	if d.o.has("and") {
		in.imm |= 1 << 25
	}
	d.p.table = append(d.p.table, row...)
	d.emit(in)
}

// wmmaRegisters has the lengths of the vectors D, A, B and C of wmma.mma.
func wmmaRegisters(mod, a, to, c string) [4]int {
	sum := func(t string) int {
		if t == "f16" {
			return 4
		}
		return 8
	}
	switch family(a) {
	case "f16":
		return [4]int{sum(to), 8, 8, sum(c)}
	case "bf16":
		return map[string][4]int{"m16n16k16": {8, 4, 4, 8}, "m8n32k16": {8, 2, 8, 8}, "m32n8k16": {8, 8, 2, 8}}[mod]
	case "tf32":
		return [4]int{8, 4, 4, 8}
	case "i8":
		return map[string][4]int{"m16n16k16": {8, 2, 2, 8}, "m8n32k16": {8, 1, 4, 8}, "m32n8k16": {8, 4, 1, 8}}[mod]
	case "f64":
		return [4]int{2, 1, 1, 2}
	}
	return [4]int{2, 1, 1, 2}
}

func (d *decoder) wmma(s *statement, o *opcode) {
	mod, m, n, k := o.shape()
	types := o.matrixTypes()
	if len(types) == 0 || mod == "" {
		d.unsupported()
	}
	if o.mods[0] == "mma" {
		var a, b, c, to string
		switch {
		case len(types) == 2: // D and C of f16 products
			a, b, to, c = "f16", "f16", types[0], types[1]
		case len(types) == 4:
			to, a, b, c = types[0], types[1], types[2], types[3]
		default:
			d.unsupported()
		}
		d.product(s, wmmaShapes, mod, m, n, k, a, b, c, to, 1)
		return
	}
	t := types[0]
	part := o.one("a", "b", "c", "d")
	rows, cols := m, n
	switch part {
	case "a":
		cols = k
	case "b":
		rows = k
	}
	fits := false
	for known, results := range wmmaShapes {
		prefix, of, _ := strings.Cut(known, ".")
		if prefix != mod {
			continue
		}
		if part == "a" || part == "b" {
			fits = fits || of == family(t)
		} else {
			fits = fits || strings.Contains(" "+results+" ", " "+t+" ")
		}
	}
	if part == "" || !fits {
		d.unsupported()
	}
	store := o.mods[0] == "store"
	vector, address := &s.args[0], 1
	if store {
		vector, address = &s.args[1], 0
	}
	d.operandCount(2, 3)
	size, typ := 4, "b32"
	if t == "f64" {
		size, typ = 8, "b64"
	}
	row := []int32{0, 0, 0, 0}
	list := []operand{*vector}
	if vector.kind == operandVector {
		list = vector.elems
	}
	for i := range list {
		if store {
			row = append(row, d.source(&list[i], typ))
		} else {
			row = append(row, d.target(&list[i], typ))
		}
	}
	var want int
	switch w := wmmaRegisters(mod, t, t, t); part {
	case "a":
		want = w[1]
	case "b":
		want = w[2]
	default:
		want = w[3]
		if t == "s32" || t == "f32" {
			want = m * n / 32
		}
	}
	if len(list) != want {
		d.fail("a vector of %d registers expected, not of %d", want, len(list))
	}
	mem := d.memory(&s.args[address], d.space(), size, 1)
	kind := C.K_WMMA_LOAD
	row[0] = int32(len(list))
	if store {
		kind = C.K_WMMA_STORE
		row[0], row[1] = 0, int32(len(list))
	}
	d.matrixAddress(row, &mem)
	in := C.Insn{
		kind: C.uint8_t(kind), mode: C.uint8_t(matrixKinds[t]), size_d: C.uint8_t(size), a: mem.base, size_a: mem.base_size, b: -1, d: -1, e: -1,
		x: C.int32_t(len(d.p.table)), imm: C.int64_t(rows | cols<<8),
	}
	if o.has("col") {
		in.imm |= 1 << 16
	}
	if len(s.args) == 3 {
		in.b, in.size_b = C.int32_t(d.source(&s.args[2], "u32")), 4
	}
	d.p.table = append(d.p.table, row...)
	d.emit(in)
}

// matrixAddress puts the place of a matrix into its row of the table; a variable of shared memory becomes a base.
func (d *decoder) matrixAddress(row []int32, m *C.MemOperand) {
	if n := len(d.p.addresses); n > 0 && d.p.addresses[n-1].mem == len(d.p.mems) {
		v := d.p.addresses[n-1].v
		d.p.addresses = d.p.addresses[:n-1]
		m.base = C.int32_t(d.address(v, int64(m.offset), 4))
		m.base_size, m.offset = 4, 0
	}
	if int64(m.offset) != int64(int32(m.offset)) { // a variable of the module
		m.base = C.int32_t(d.constant(8, uint64(m.offset)))
		m.base_size, m.offset = 8, 0
	}
	row[2], row[3] = int32(m.offset), int32(m.space)
}

func (d *decoder) matrixTransfer(s *statement, o *opcode) {
	d.operandCount(2, 2)
	count := map[string]int{"x1": 1, "x2": 2, "x4": 4}[o.one("x1", "x2", "x4")]
	if count == 0 || !o.has("m8n8") || !o.has("b16") {
		d.unsupported()
	}
	store := o.name == "stmatrix"
	vector, address := &s.args[0], &s.args[1]
	if store {
		vector, address = address, vector
	}
	list := d.vectorOf(vector, count)
	row := []int32{0, 0, 0, 0}
	for i := range list {
		if store {
			row = append(row, d.source(&list[i], "b32"))
		} else {
			row = append(row, d.target(&list[i], "b32"))
		}
	}
	m := d.memory(address, d.space(), 16, 1)
	kind := C.K_LOAD_MATRIX
	row[0] = int32(count)
	if store {
		kind = C.K_STORE_MATRIX
		row[0], row[1] = 0, int32(count)
	}
	d.matrixAddress(row, &m)
	in := C.Insn{kind: C.uint8_t(kind), size_d: 4, a: m.base, size_a: m.base_size, b: -1, d: -1, e: -1, x: C.int32_t(len(d.p.table))}
	if o.has("trans") {
		in.mode = 1
	}
	d.p.table = append(d.p.table, row...)
	d.emit(in)
}
