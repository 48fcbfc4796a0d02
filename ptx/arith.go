package ptx

/*
#include "program.h"
*/
import "C"

import (
	"fmt"
	"strings"
)

// instructions has what decodes an instruction, by the name in front of its modifiers.
var instructions map[string]func(d *decoder, s *statement, o *opcode)

func init() {
	instructions = map[string]func(d *decoder, s *statement, o *opcode){
		"add": (*decoder).addSub, "sub": (*decoder).addSub, "addc": (*decoder).carryAdd, "subc": (*decoder).carryAdd,
		"mul": (*decoder).multiply, "mad": (*decoder).multiplyAdd, "fma": (*decoder).multiplyAdd, "madc": (*decoder).carryMad,
		"mul24": (*decoder).multiply24, "mad24": (*decoder).multiply24,
		"div": (*decoder).divide, "rem": (*decoder).divide, "min": (*decoder).minMax, "max": (*decoder).minMax,
		"abs": (*decoder).sign, "neg": (*decoder).sign, "sad": (*decoder).sumDifference,
		"rcp": (*decoder).function, "sqrt": (*decoder).function, "rsqrt": (*decoder).function, "ex2": (*decoder).function,
		"lg2": (*decoder).function, "sin": (*decoder).function, "cos": (*decoder).function, "tanh": (*decoder).function,
		"copysign": (*decoder).copySign, "testp": (*decoder).testProperty,
		"and": (*decoder).logic, "or": (*decoder).logic, "xor": (*decoder).logic, "not": (*decoder).logicNot, "cnot": (*decoder).logicNot,
		"lop3": (*decoder).lop3, "shl": (*decoder).shift, "shr": (*decoder).shift, "shf": (*decoder).funnel,
		"prmt": (*decoder).permute, "bfe": (*decoder).extract, "bfi": (*decoder).insert, "bfind": (*decoder).find,
		"brev": (*decoder).bitCount, "clz": (*decoder).bitCount, "popc": (*decoder).bitCount, "fns": (*decoder).findNth,
		"bmsk": (*decoder).bitMask, "szext": (*decoder).signExtend, "dp4a": (*decoder).dotProduct, "dp2a": (*decoder).dotProduct,
		"setp": (*decoder).setPredicate, "set": (*decoder).set, "selp": (*decoder).selectBy, "slct": (*decoder).selectSign,
		"mov": (*decoder).move, "cvt": (*decoder).convert,

		"ld": (*decoder).load, "ldu": (*decoder).load, "st": (*decoder).store, "atom": (*decoder).atomic, "red": (*decoder).atomic,
		"cp": (*decoder).copyAsync, "cvta": (*decoder).convertAddress, "isspacep": (*decoder).isSpace,
		"prefetch": (*decoder).nothing, "prefetchu": (*decoder).nothing, "applypriority": (*decoder).nothing, "discard": (*decoder).nothing,
		"createpolicy": (*decoder).createPolicy, "membar": (*decoder).fence, "fence": (*decoder).fence,

		"bra": (*decoder).branch, "brx": (*decoder).branchIndex, "call": (*decoder).call, "ret": (*decoder).end, "exit": (*decoder).end,
		"trap": (*decoder).trap, "brkpt": (*decoder).trap, "nanosleep": (*decoder).sleep, "pmevent": (*decoder).nothing,
		"bar": (*decoder).barrier, "barrier": (*decoder).barrier,

		"shfl": (*decoder).shuffle, "vote": (*decoder).vote, "match": (*decoder).match, "redux": (*decoder).redux,
		"activemask": (*decoder).activeMask, "elect": (*decoder).elect,
		"mma": (*decoder).matrixMultiply, "wmma": (*decoder).wmma, "ldmatrix": (*decoder).matrixTransfer, "stmatrix": (*decoder).matrixTransfer,
	}
}

// later has instructions of newer or of other hardware, with what they need.
var later = map[string]string{
	"wgmma": "sm_90", "mbarrier": "sm_90 (cp.async groups and bar.sync are there on sm_80)", "tcgen05": "sm_100", "tensormap": "sm_90",
	"multimem": "sm_90", "mapa": "clusters, which are sm_90", "getctarank": "clusters, which are sm_90", "griddepcontrol": "sm_90",
	"setmaxnreg": "sm_90", "clusterlaunchcontrol": "sm_100", "tex": "textures", "tld4": "textures", "txq": "textures", "istypep": "textures",
	"suld": "surfaces", "sust": "surfaces", "sured": "surfaces", "suq": "surfaces",
	"alloca": "a stack", "stacksave": "a stack", "stackrestore": "a stack",
}

// refuse fails for an instruction that is not there.
func (d *decoder) refuse() {
	if why, ok := later[d.o.name]; ok {
		d.fail("not supported: it needs %s; kernels run as on sm_80", why)
	}
	if len(d.o.name) > 3 && d.o.name[0] == 'v' {
		d.fail("not supported: video instructions")
	}
	d.fail("unknown instruction")
}

func (d *decoder) nothing(*statement, *opcode) { d.emit(C.Insn{kind: C.K_NOP}) }

func isFloat(typ string) bool { return strings.Contains(typ, "f") }

// element returns the type of one of a pair, and whether it is a pair.
func element(typ string) (string, bool) {
	if e, ok := strings.CutSuffix(typ, "x2"); ok {
		return e, true
	}
	return typ, false
}

// sized is the name of a loop by the bytes of a type.
func sized(name, typ string) string {
	switch registerSize(typ) {
	case 1:
		return name + "_1"
	case 2:
		return name + "_2"
	case 4:
		return name + "_4"
	case 8:
		return name + "_8"
	}
	return name + "_16"
}

// integer is the name of a loop by an integer type; bits count as unsigned.
func integer(name, typ string) string {
	if typ != "" && typ[0] == 'b' {
		typ = "u" + typ[1:]
	}
	return name + "_" + typ
}

func (d *decoder) sources(typ string) []int32 {
	out := make([]int32, 0, 4)
	for i := range d.s.args[1:] {
		out = append(out, d.source(&d.s.args[i+1], typ))
	}
	return out
}

// float appends a loop of floats of any width, with the instruction's modifiers.
func (d *decoder) float(loop, typ string, to int32, from ...int32) *C.Insn {
	e, pair := element(typ)
	var mods C.uint8_t
	switch e {
	case "f16", "bf16":
		mods = C.MOD_HALF
		if e == "bf16" {
			mods = C.MOD_BF16
		}
		if loop == "fma" {
			loop = "fma_half"
		} else {
			loop += "_f32"
		}
	case "f32", "f64":
		loop += "_" + e
		if d.o.round > 0 {
			mods = C.MOD_ROUND
		}
	default:
		d.unsupported()
	}
	if d.o.ftz {
		if e == "f64" && d.o.name != "rcp" && d.o.name != "rsqrt" {
			d.unsupported()
		}
		if e != "f64" {
			mods |= C.MOD_FTZ
		}
	}
	if d.o.sat {
		mods |= C.MOD_SAT
	}
	if d.o.has("relu") {
		mods |= C.MOD_RELU
	}
	in := d.alu(loop, to, from...)
	in.mods |= mods
	if mods&C.MOD_ROUND != 0 {
		in.round = C.uint8_t(d.o.round)
	}
	if pair {
		in.pair = 1
	}
	return in
}

func (d *decoder) single() string {
	if len(d.o.types) != 1 {
		d.unsupported()
	}
	return d.o.types[0]
}

func (d *decoder) addSub(s *statement, o *opcode) {
	if o.has("cc") {
		d.carryAdd(s, o)
		return
	}
	d.operandCount(3, 3)
	t := d.single()
	to, from := d.target(&s.args[0], t), d.sources(t)
	switch e, pair := element(t); {
	case isFloat(t):
		d.float(o.name, t, to, from...)
	case o.sat:
		d.alu(integer(o.name+"sat", t), to, from...)
	case pair:
		d.alu(sized(o.name, e), to, from...).pair = 1
	default:
		d.alu(sized(o.name, t), to, from...)
	}
}

// carryFlag is the register of the carry of extended precision; there is one for each function.
func (d *decoder) carryFlag() int32 {
	if d.carry < 0 {
		d.carry = d.temp(1)
	}
	return d.carry
}

func (d *decoder) carryAdd(s *statement, o *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	if isFloat(t) || typeSizes[t] < 4 {
		d.unsupported()
	}
	d.addCarry(d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], t), t, strings.HasPrefix(o.name, "sub"), strings.HasSuffix(o.name, "c"), o.has("cc"))
}

func (d *decoder) addCarry(to, a, b int32, t string, minus, in, out bool) {
	c := d.constant(1, 0)
	if in {
		c = d.carryFlag()
	}
	value, flag := "addcarry", "addflag"
	if minus {
		value, flag = "subborrow", "subflag"
	}
	next := int32(-1)
	if out {
		next = d.temp(1)
		d.alu(sized(flag, t), next, a, b, c)
	}
	d.alu(sized(value, t), to, a, b, c)
	if out {
		d.alu("mov_1", d.carryFlag(), next)
	}
}

func (d *decoder) carryMad(s *statement, o *opcode) {
	d.operandCount(4, 4)
	t := d.single()
	if typeSizes[t] < 4 {
		d.unsupported()
	}
	product := d.temp(typeSizes[t])
	a, b, c := d.source(&s.args[1], t), d.source(&s.args[2], t), d.source(&s.args[3], t)
	if o.has("hi") {
		d.alu(integer("mulhi", t), product, a, b)
	} else {
		d.alu(sized("mul", t), product, a, b)
	}
	d.addCarry(d.target(&s.args[0], t), product, c, t, false, o.name == "madc", o.has("cc"))
}

// wider has the type of the result of .wide.
var wider = map[string]string{"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}

func (d *decoder) multiply(s *statement, o *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	switch {
	case isFloat(t):
		d.float("mul", t, d.target(&s.args[0], t), d.sources(t)...)
	case o.has("wide"):
		if wider[t] == "" {
			d.unsupported()
		}
		d.alu(integer("mulwide", t), d.target(&s.args[0], wider[t]), d.sources(t)...)
	case o.has("hi"):
		d.alu(integer("mulhi", t), d.target(&s.args[0], t), d.sources(t)...)
	case o.has("lo"):
		d.alu(sized("mul", t), d.target(&s.args[0], t), d.sources(t)...)
	default:
		d.fail(".lo, .hi or .wide expected")
	}
}

func (d *decoder) multiplyAdd(s *statement, o *opcode) {
	if o.has("cc") {
		d.carryMad(s, o)
		return
	}
	d.operandCount(4, 4)
	t := d.single()
	switch {
	case isFloat(t):
		if o.has("oob") {
			d.unsupported()
		}
		d.float("fma", t, d.target(&s.args[0], t), d.sources(t)...)
	case o.name == "fma":
		d.unsupported()
	case o.has("wide"):
		w := wider[t]
		if w == "" {
			d.unsupported()
		}
		d.alu(integer("madwide", t), d.target(&s.args[0], w), d.source(&s.args[1], t), d.source(&s.args[2], t), d.source(&s.args[3], w))
	case o.has("hi") && o.sat:
		d.alu(integer("madhisat", t), d.target(&s.args[0], t), d.sources(t)...)
	case o.has("hi"):
		product := d.temp(typeSizes[t])
		from := d.sources(t)
		d.alu(integer("mulhi", t), product, from[0], from[1])
		d.alu(sized("add", t), d.target(&s.args[0], t), product, from[2])
	case o.has("lo"):
		d.alu(sized("mad", t), d.target(&s.args[0], t), d.sources(t)...)
	default:
		d.fail(".lo, .hi or .wide expected")
	}
}

func (d *decoder) multiply24(s *statement, o *opcode) {
	t := d.single()
	loop := "mul24"
	if o.has("hi") {
		loop = "mul24hi"
	} else if !o.has("lo") {
		d.fail(".lo or .hi expected")
	}
	if o.name == "mul24" {
		d.operandCount(3, 3)
		d.alu(integer(loop, t), d.target(&s.args[0], t), d.sources(t)...)
		return
	}
	d.operandCount(4, 4)
	from := d.sources(t)
	product := d.temp(4)
	d.alu(integer(loop, t), product, from[0], from[1])
	if o.sat {
		d.alu(integer("addsat", t), d.target(&s.args[0], t), product, from[2])
	} else {
		d.alu("add_4", d.target(&s.args[0], t), product, from[2])
	}
}

func (d *decoder) divide(s *statement, o *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	to, from := d.target(&s.args[0], t), d.sources(t)
	if isFloat(t) {
		if o.name == "rem" {
			d.unsupported()
		}
		d.float("div", t, to, from...)
		return
	}
	d.alu(integer(o.name, t), to, from...)
}

func (d *decoder) minMax(s *statement, o *opcode) {
	d.operandCount(3, 4)
	t := d.single()
	if len(s.args) == 4 {
		d.fail("not supported: three operands need sm_100; kernels run as on sm_80")
	}
	to, from := d.target(&s.args[0], t), d.sources(t)
	if !isFloat(t) {
		e, pair := element(t)
		in := d.alu(integer(o.name, e), to, from...)
		if pair {
			in.pair = 1
		}
		if o.has("relu") {
			if e != "s16" && e != "s32" {
				d.unsupported()
			}
			in := d.alu("relu_"+e, to, to)
			if pair {
				in.pair = 1
			}
		}
		return
	}
	loop := o.name
	if o.has("NaN") {
		loop += "nan"
		if t == "f64" {
			d.unsupported()
		}
	}
	if !o.has("xorsign") {
		d.float(loop, t, to, from...)
		return
	}
	if t != "f32" {
		d.unsupported()
	}
	a, b, m := d.temp(4), d.temp(4), d.temp(4)
	d.alu("abs_f32", a, from[0])
	d.alu("abs_f32", b, from[1])
	d.float(loop, t, m, a, b)
	d.alu("xorsign_f32", to, m, from[0], from[1])
}

func (d *decoder) sign(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	to, from := d.target(&s.args[0], t), d.source(&s.args[1], t)
	switch e, pair := element(t); {
	case e == "f16" || e == "bf16":
		in := d.alu(o.name+"_h16", to, from)
		if pair {
			in.pair = 1
		}
	case isFloat(t):
		in := d.alu(o.name+"_"+t, to, from)
		if o.ftz && t == "f32" {
			in.mods |= C.MOD_FTZ
		}
	case o.name == "abs":
		d.alu(integer("abs", t), to, from)
	default:
		d.alu(sized("neg", t), to, from)
	}
}

func (d *decoder) sumDifference(s *statement, _ *opcode) {
	d.operandCount(4, 4)
	t := d.single()
	d.alu(integer("sad", t), d.target(&s.args[0], t), d.sources(t)...)
}

func (d *decoder) function(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	e, _ := element(t)
	only32 := o.name != "rcp" && o.name != "sqrt" && o.name != "rsqrt"
	if !isFloat(t) || e != "f32" && only32 && !(o.name == "ex2" || o.name == "tanh") || e == "f64" && only32 {
		d.unsupported()
	}
	d.float(o.name, t, d.target(&s.args[0], t), d.source(&s.args[1], t))
}

func (d *decoder) copySign(s *statement, _ *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	d.alu("copysign_"+t, d.target(&s.args[0], t), d.sources(t)...)
}

func (d *decoder) testProperty(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	d.alu("testp_"+o.mods[0]+"_"+t, d.target(&s.args[0], "pred"), d.source(&s.args[1], t))
}

func (d *decoder) logic(s *statement, o *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	d.alu(sized(o.name, t), d.target(&s.args[0], t), d.sources(t)...)
}

func (d *decoder) logicNot(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	d.alu(sized(o.name, t), d.target(&s.args[0], t), d.source(&s.args[1], t))
}

func (d *decoder) number(o *operand) uint64 {
	if o.kind != operandInt {
		d.fail("a number expected, not %s", o.text())
	}
	return o.bits
}

func (d *decoder) lop3(s *statement, o *opcode) {
	t := "b32"
	op := o.one("or", "and", "xor")
	if op == "" {
		d.operandCount(5, 5)
		d.alu("lop3", d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], t), d.source(&s.args[3], t)).imm =
			C.int64_t(d.number(&s.args[4]) & 255)
		return
	}
	d.operandCount(6, 6)
	if s.args[0].second == nil {
		d.fail("two results expected")
	}
	value, some := d.temp(4), d.temp(1)
	d.alu("lop3", value, d.source(&s.args[1], t), d.source(&s.args[2], t), d.source(&s.args[3], t)).imm = C.int64_t(d.number(&s.args[4]) & 255)
	d.alu("nonzero_4", some, value)
	q := d.source(&s.args[5], "pred")
	d.alu(op+"_1", d.target(s.args[0].second, "pred"), some, q)
	if s.args[0].kind != operandSink {
		d.alu("mov_4", d.target(&s.args[0], t), value)
	}
}

func (d *decoder) shift(s *statement, o *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	to, a, b := d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], "u32")
	if o.name == "shl" {
		d.alu(sized("shl", t), to, a, b)
	} else {
		d.alu(integer("shr", t), to, a, b)
	}
}

func (d *decoder) funnel(s *statement, o *opcode) {
	d.operandCount(4, 4)
	if len(o.mods) != 3 {
		d.unsupported()
	}
	d.alu("shf_"+o.mods[0]+"_"+o.mods[1], d.target(&s.args[0], "b32"), d.sources("b32")...)
}

func (d *decoder) permute(s *statement, o *opcode) {
	d.operandCount(4, 4)
	loop := "prmt"
	if m := o.one("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"); m != "" {
		loop += "_" + m
	}
	d.alu(loop, d.target(&s.args[0], "b32"), d.sources("b32")...)
}

func (d *decoder) extract(s *statement, _ *opcode) {
	d.operandCount(4, 4)
	t := d.single()
	d.alu(integer("bfe", t), d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], "u32"), d.source(&s.args[3], "u32"))
}

func (d *decoder) insert(s *statement, _ *opcode) {
	d.operandCount(5, 5)
	t := d.single()
	d.alu(sized("bfi", t), d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], t), d.source(&s.args[3], "u32"), d.source(&s.args[4], "u32"))
}

func (d *decoder) find(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	in := d.alu(integer("bfind", t), d.target(&s.args[0], "u32"), d.source(&s.args[1], t))
	if o.has("shiftamt") {
		in.imm = 1
	}
}

func (d *decoder) bitCount(s *statement, o *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	result := "u32"
	if o.name == "brev" {
		result = t
	}
	d.alu(sized(o.name, t), d.target(&s.args[0], result), d.source(&s.args[1], t))
}

func (d *decoder) findNth(s *statement, _ *opcode) {
	d.operandCount(4, 4)
	d.alu("fns", d.target(&s.args[0], "b32"), d.sources("b32")...)
}

func (d *decoder) bitMask(s *statement, o *opcode) {
	d.operandCount(3, 3)
	d.alu("bmsk_"+o.mods[0], d.target(&s.args[0], "b32"), d.sources("b32")...)
}

func (d *decoder) signExtend(s *statement, o *opcode) {
	d.operandCount(3, 3)
	t := d.single()
	d.alu("szext_"+o.mods[0]+"_"+t, d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], "u32"))
}

func (d *decoder) dotProduct(s *statement, o *opcode) {
	d.operandCount(4, 4)
	if len(o.types) != 2 {
		d.unsupported()
	}
	loop := fmt.Sprintf("%s_%c%c", o.name, o.types[0][0], o.types[1][0])
	in := d.alu(loop, d.target(&s.args[0], "b32"), d.sources("b32")...)
	if o.has("hi") {
		in.imm = 16
	}
}

// ---- comparisons ----

// comparison has how a comparison of floats is made of the loops: name, swapped, inverted.
var comparisons = map[string]struct {
	loop            string
	swapped, invert bool
}{
	"eq": {"eq", false, false}, "ne": {"ltgt", false, false}, "lt": {"lt", false, false}, "le": {"le", false, false},
	"gt": {"lt", true, false}, "ge": {"le", true, false}, "equ": {"ltgt", false, true}, "neu": {"eq", false, true},
	"ltu": {"le", true, true}, "leu": {"lt", true, true}, "gtu": {"le", false, true}, "geu": {"lt", false, true},
	"num": {"num", false, false}, "nan": {"num", false, true},
}

// compare writes the predicate of a comparison; of a pair two bytes for each lane.
func (d *decoder) compare(op, t string, to, a, b int32) {
	e, pair := element(t)
	var in *C.Insn
	if isFloat(t) {
		c, ok := comparisons[op]
		if !ok {
			d.fail("unknown comparison %q", op)
		}
		if c.swapped {
			a, b = b, a
		}
		loop := c.loop + "_f32"
		if t == "f64" {
			loop = c.loop + "_f64"
		}
		in = d.alu(loop, to, a, b)
		switch e {
		case "f16":
			in.mods = C.MOD_HALF | C.MOD_KEEP
		case "bf16":
			in.mods = C.MOD_BF16 | C.MOD_KEEP
		case "f32":
			if d.o.ftz {
				in.mods = C.MOD_FTZ | C.MOD_KEEP
			}
		}
		if c.invert {
			in.imm = 1
		}
	} else {
		if op == "lo" || op == "ls" || op == "hi" || op == "hs" {
			op = map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}[op]
			t = "u" + t[1:]
		}
		switch op {
		case "eq", "ne":
			in = d.alu(sized("eq", t), to, a, b)
		case "lt", "ge":
			in = d.alu(integer("lt", t), to, a, b)
		case "gt", "le":
			in = d.alu(integer("lt", t), to, b, a)
		default:
			d.fail("unknown comparison %q", op)
		}
		if op == "ne" || op == "ge" || op == "le" {
			in.imm = 1
		}
	}
	if pair {
		in.pair = 1
	}
}

func (d *decoder) setPredicate(s *statement, o *opcode) {
	t := d.single()
	op := o.one("and", "or", "xor")
	if op == "" {
		d.operandCount(3, 3)
	} else {
		d.operandCount(4, 4)
	}
	a, b := d.source(&s.args[1], t), d.source(&s.args[2], t)
	first, second := &s.args[0], s.args[0].second
	if op == "" && second == nil {
		d.compare(o.mods[0], t, d.target(first, "pred"), a, b)
		return
	}
	p, q := d.temp(1), d.temp(1)
	if _, pair := element(t); pair {
		both := d.temp(2)
		d.compare(o.mods[0], t, both, a, b)
		d.alu("bit_2", p, both)
		d.alu("bit_2", q, both).imm = 8
	} else {
		d.compare(o.mods[0], t, p, a, b)
		d.alu("not_1", q, p)
	}
	if op != "" {
		c := d.source(&s.args[3], "pred")
		d.alu(op+"_1", p, p, c)
		d.alu(op+"_1", q, q, c)
	}
	d.alu("mov_1", d.target(first, "pred"), p)
	if second != nil {
		d.alu("mov_1", d.target(second, "pred"), q)
	}
}

func (d *decoder) set(s *statement, o *opcode) {
	if len(o.types) != 2 {
		d.unsupported()
	}
	dt, t := o.types[0], o.types[1]
	op := o.one("and", "or", "xor")
	d.operandCount(3, 4)
	e, pair := element(t)
	size := 1
	if pair && typeSizes[dt] == 4 && dt != "u32" && dt != "s32" {
		size = 2
	} else if pair {
		d.unsupported()
	}
	p := d.temp(size)
	d.compare(o.mods[0], t, p, d.source(&s.args[1], t), d.source(&s.args[2], t))
	if op != "" {
		d.operandCount(4, 4)
		if pair {
			d.unsupported()
		}
		d.alu(op+"_1", p, p, d.source(&s.args[3], "pred"))
	}
	de, _ := element(dt)
	_ = e
	ones := map[string]int64{"u32": -1, "s32": -1, "u16": -1, "s16": -1, "f32": 0x3f800000, "f16": 0x3c00, "bf16": 0x3f80}[de]
	if ones == 0 {
		d.unsupported()
	}
	loop := "mask_4"
	if typeSizes[de] == 2 {
		loop = "mask_2"
	}
	in := d.alu(loop, d.target(&s.args[0], dt), p)
	in.imm = C.int64_t(ones)
	if pair {
		in.pair = 1
	}
}

func (d *decoder) selectBy(s *statement, _ *opcode) {
	d.operandCount(4, 4)
	t := d.single()
	d.alu(sized("select", t), d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], t), d.source(&s.args[3], "pred"))
}

func (d *decoder) selectSign(s *statement, o *opcode) {
	d.operandCount(4, 4)
	if len(o.types) != 2 {
		d.unsupported()
	}
	t, by := o.types[0], o.types[1]
	c := d.source(&s.args[3], by)
	if o.ftz && by == "f32" {
		flushed := d.temp(4)
		d.alu("flush_f32", flushed, c)
		c = flushed
	}
	d.alu(sized("slct_"+by, t), d.target(&s.args[0], t), d.source(&s.args[1], t), d.source(&s.args[2], t), c)
}

// ---- moves ----

func (d *decoder) move(s *statement, _ *opcode) {
	d.operandCount(2, 2)
	t := d.single()
	to, from := &s.args[0], &s.args[1]
	switch {
	case to.kind == operandVector:
		d.unpack(to.elems, d.source(from, t), typeSizes[t])
	case from.kind == operandVector:
		d.pack(d.target(to, t), from.elems, typeSizes[t])
	default:
		n := d.target(to, t)
		d.alu(sized("mov", t), n, d.source(from, t))
	}
}

func (d *decoder) pack(to int32, parts []operand, size int) {
	each := size / max(1, len(parts))
	typ := fmt.Sprintf("b%d", 8*each)
	if each*len(parts) != size || registerSize(typ) == 0 {
		d.fail("a vector of %d bytes expected", size)
	}
	regs := make([]int32, len(parts))
	for i := range parts {
		regs[i] = d.source(&parts[i], typ)
	}
	d.alu(fmt.Sprintf("pack_%d_%d", each, size), to, regs...)
}

func (d *decoder) unpack(parts []operand, from int32, size int) {
	each := size / max(1, len(parts))
	typ := fmt.Sprintf("b%d", 8*each)
	if each*len(parts) != size || registerSize(typ) == 0 {
		d.fail("a vector of %d bytes expected", size)
	}
	for i := range parts { // the source must outlive the parts that are written before it is read again
		if parts[i].kind == operandVar && int32(parts[i].v.offset) == from && parts[i].v.space == spaceReg {
			keep := d.temp(size)
			d.alu(fmt.Sprintf("mov_%d", size), keep, from)
			from = keep
			break
		}
	}
	for i := range parts {
		if parts[i].kind != operandSink {
			d.alu(fmt.Sprintf("part_%d_%d", size, each), d.target(&parts[i], typ), from).imm = C.int64_t(8 * each * i)
		}
	}
}

// ---- conversions ----

// extend moves an integer of a type, which is in the low bits of a register, to another register: cut, or widened
// with its sign.
func (d *decoder) extend(to, from int32, typ string) {
	have, want := d.regs[from].size, d.regs[to].size
	size := min(typeSizes[typ], have)
	switch {
	case want > size:
		sign := "u"
		if typ[0] == 's' {
			sign = "s"
		}
		d.alu(fmt.Sprintf("ext_%d_%s%d_%d", have, sign, 8*size, want), to, from)
	case have == want:
		d.alu(fmt.Sprintf("mov_%d", have), to, from)
	default:
		d.alu(fmt.Sprintf("ext_%d_u%d_%d", have, 8*want, want), to, from)
	}
}

func (d *decoder) convert(s *statement, o *opcode) {
	if len(o.types) < 2 || len(o.types) > 2 {
		d.unsupported()
	}
	dt, st := o.types[0], o.types[1]
	switch {
	case strings.HasSuffix(dt, "x2") || strings.HasSuffix(st, "x2"):
		d.convertPair(s, o, dt, st)
		return
	case dt == "tf32":
		d.operandCount(2, 2)
		how := o.one("rna", "rn", "rz")
		if how == "" || st != "f32" {
			d.unsupported()
		}
		to := d.target(&s.args[0], "b32")
		d.alu("f32_tf32_"+how, to, d.source(&s.args[1], "f32"))
		if o.has("relu") {
			d.alu("relu_f32", to, to)
		}
		return
	}
	d.operandCount(2, 2)
	to, from := d.anyTarget(&s.args[0], dt), d.anySource(&s.args[1], st)
	if d.regs[to].size < typeSizes[dt] || d.regs[from].size < typeSizes[st] {
		d.fail("registers that hold .%s and .%s expected", dt, st)
	}
	switch {
	case !isFloat(dt) && !isFloat(st):
		d.convertIntegers(to, from, dt, st)
	case isFloat(dt) && !isFloat(st):
		d.convertToFloat(to, from, dt, st)
	case isFloat(st) && !isFloat(dt):
		d.convertFromFloat(to, from, dt, st)
	default:
		d.convertFloats(to, from, dt, st)
	}
}

// limits returns the least and the greatest value of an integer type.
func limits(typ string) (int64, int64) {
	n := 8 * typeSizes[typ]
	if typ[0] == 's' {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, 1<<min(n, 63) - 1
}

func (d *decoder) convertIntegers(to, from int32, dt, st string) {
	if d.o.sat {
		wide, bounded := d.temp(8), d.temp(8)
		d.extend(wide, from, st)
		lo, hi := limits(dt)
		switch {
		case st[0] == 's' && dt == "u64": // negative becomes zero
			d.alu("clamp_s64", bounded, wide, d.constant(8, 0)).imm = C.int64_t(hi)
		case st[0] == 's':
			d.alu("clamp_s64", bounded, wide, d.constant(8, uint64(lo))).imm = C.int64_t(hi)
		case dt == "u64":
			bounded = wide
		default:
			d.alu("limit_u64", bounded, wide).imm = C.int64_t(hi)
		}
		from, st = bounded, dt
		if st == "u64" || st == "s64" {
			d.extend(to, from, st)
			return
		}
	}
	size, want := typeSizes[dt], d.regs[to].size
	switch {
	case size == want || typeSizes[st] < size && st[0] == 'u': // nothing is cut, or nothing has to be widened again
		d.extend(to, from, st)
	case size <= typeSizes[st]: // cut, and widened as the target type says
		d.extend(to, from, dt)
	default: // widened to the target type, then to the register
		middle := d.temp(registerSize(dt))
		d.extend(middle, from, st)
		d.extend(to, middle, dt)
	}
}

func (d *decoder) convertToFloat(to, from int32, dt, st string) {
	if d.o.ftz || typeSizes[st] == 0 || st[0] == 'b' {
		d.unsupported()
	}
	size := max(4, typeSizes[st])
	wide := d.temp(size)
	d.extend(wide, from, st)
	loop := fmt.Sprintf("%c%d", st[0], 8*size)
	e := dt
	var result int32
	switch dt {
	case "f32", "f64":
		result = d.temp(typeSizes[dt])
		in := d.alu(loop+"_"+dt, result, wide)
		d.setRound(in)
	case "f16", "bf16": // rounded to odd first, so that it is rounded once
		if size == 4 {
			middle := d.temp(8)
			d.extend(middle, wide, fmt.Sprintf("%c32", st[0]))
			wide, loop = middle, fmt.Sprintf("%c64", st[0])
		}
		odd := d.temp(4)
		d.alu(loop+"_odd", odd, wide)
		result = d.temp(2)
		d.narrow(result, odd, e)
	default:
		d.unsupported()
	}
	if d.o.sat {
		d.saturate(result, dt)
	}
	d.finishFloat(to, result, dt)
}

func (d *decoder) setRound(in *C.Insn) {
	if d.o.round > 0 {
		in.mods |= C.MOD_ROUND
		in.round = C.uint8_t(d.o.round)
	}
}

// narrow rounds f32 to 16 bits as the instruction says.
func (d *decoder) narrow(to, from int32, typ string) {
	loop := "f32_" + typ
	if d.o.round > 0 {
		loop += "_" + []string{"", "rz", "rm", "rp"}[d.o.round]
	}
	d.alu(loop, to, from)
}

func (d *decoder) saturate(r int32, typ string) {
	switch typ {
	case "f32", "f64":
		d.alu("sat_"+typ, r, r)
	default:
		in := d.alu("sat_f32", r, r)
		in.mods = C.MOD_HALF
		if typ == "bf16" {
			in.mods = C.MOD_BF16
		}
	}
}

// finishFloat moves a float to its register, which may be larger.
func (d *decoder) finishFloat(to, from int32, typ string) {
	d.extend(to, from, fmt.Sprintf("u%d", 8*typeSizes[typ]))
}

// float32Of returns a 16-bit float as f32.
func (d *decoder) float32Of(from int32, typ string) int32 {
	wide := d.temp(4)
	d.alu(typ+"_f32", wide, from)
	return wide
}

func (d *decoder) convertFromFloat(to, from int32, dt, st string) {
	mode := d.o.one("rni", "rzi", "rmi", "rpi")
	loop := map[string]string{"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
	if loop == "" {
		d.fail("a rounding such as .rzi expected")
	}
	nan := C.int64_t(0) // what a NaN becomes
	if st == "f64" || typeSizes[dt] == 8 {
		nan = C.int64_t(uint64(1) << (8*typeSizes[dt] - 1))
	}
	if st == "f16" || st == "bf16" {
		from, st = d.float32Of(from, st), "f32"
	}
	if d.o.ftz && st == "f32" {
		flushed := d.temp(4)
		d.alu("flush_f32", flushed, from)
		from = flushed
	}
	whole := d.temp(typeSizes[st])
	d.alu(loop+"_"+st, whole, from)
	if st == "f32" && dt != "s32" && dt != "u32" {
		wide := d.temp(8)
		d.alu("f32_f64", wide, whole)
		whole, st = wide, "f64"
	}
	if typeSizes[dt] == 1 { // no register has eight bits
		narrow := d.temp(4)
		lo, hi := limits(dt)
		d.alu("f64_s32", narrow, whole).imm = nan
		wide := d.temp(8)
		d.extend(wide, narrow, "s32")
		d.alu("clamp_s64", wide, wide, d.constant(8, uint64(lo))).imm = C.int64_t(hi)
		d.extend(to, wide, dt)
		return
	}
	result := d.temp(typeSizes[dt])
	d.alu(st+"_"+dt, result, whole).imm = nan
	d.extend(to, result, dt)
}

func (d *decoder) convertFloats(to, from int32, dt, st string) {
	if d.o.ftz && st == "f32" {
		flushed := d.temp(4)
		d.alu("flush_f32", flushed, from)
		from = flushed
	}
	result := d.temp(typeSizes[dt])
	mode := d.o.one("rni", "rzi", "rmi", "rpi")
	switch {
	case mode != "" || dt == st: // to an integral value, or only .sat and .ftz
		loop := map[string]string{"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
		if dt != st {
			d.unsupported()
		}
		switch {
		case loop == "":
			d.alu(sized("mov", dt), result, from)
		case typeSizes[dt] == 2:
			in := d.alu(loop+"_f32", result, from)
			in.mods = C.MOD_HALF
			if dt == "bf16" {
				in.mods = C.MOD_BF16
			}
		default:
			d.alu(loop+"_"+dt, result, from)
		}
	case dt == "f64":
		if st != "f32" {
			from = d.float32Of(from, st)
		}
		d.alu("f32_f64", result, from)
	case dt == "f32" && st == "f64":
		d.setRound(d.alu("f64_f32", result, from))
	case dt == "f32":
		d.alu(st+"_f32", result, from)
	case st == "f64":
		odd := d.temp(4)
		d.alu("f64_odd", odd, from)
		d.narrow(result, odd, dt)
	case st == "f32":
		if d.o.has("rna") || d.o.has("rs") {
			d.unsupported()
		}
		d.narrow(result, from, dt)
	default: // between f16 and bf16
		d.narrow(result, d.float32Of(from, st), dt)
	}
	if d.o.ftz && dt == "f32" {
		d.alu("flush_f32", result, result)
	}
	if d.o.has("relu") {
		in := d.alu("relu_f32", result, result)
		switch dt {
		case "f16":
			in.mods = C.MOD_HALF
		case "bf16":
			in.mods = C.MOD_BF16
		}
	}
	if d.o.sat {
		d.saturate(result, dt)
	}
	d.finishFloat(to, result, dt)
}

// convertPair packs two floats, or converts a pair to or from eight bits.
func (d *decoder) convertPair(s *statement, o *opcode, dt, st string) {
	e, _ := element(dt)
	if o.has("rs") || o.has("scaled::n2::ue8m0") {
		d.unsupported()
	}
	relu := func(r int32) {
		if o.has("relu") {
			d.alu("relu_f32", r, r)
		}
	}
	eight := dt == "e4m3x2" || dt == "e5m2x2"
	switch {
	case st == "f32" && (dt == "f16x2" || dt == "bf16x2" || eight):
		d.operandCount(3, 3)
		if eight && !o.has("satfinite") {
			d.fail(".satfinite expected")
		}
		var half [2]int32
		for i := range 2 {
			half[i] = d.source(&s.args[1+i], "f32")
			if o.has("relu") {
				t := d.temp(4)
				d.alu("mov_4", t, half[i])
				relu(t)
				half[i] = t
			}
		}
		if eight {
			d.alu("f32_"+dt, d.target(&s.args[0], "b16"), half[0], half[1])
			return
		}
		hi, lo := d.temp(2), d.temp(2)
		d.narrow(hi, half[0], e)
		d.narrow(lo, half[1], e)
		if o.sat {
			d.saturate(hi, e)
			d.saturate(lo, e)
		}
		d.alu("pack_2_4", d.target(&s.args[0], "b32"), lo, hi)
	case st == "f16x2" && eight:
		d.operandCount(2, 2)
		from := d.source(&s.args[1], "b32")
		hi, lo := d.temp(2), d.temp(2)
		d.alu("part_4_2", lo, from)
		d.alu("part_4_2", hi, from).imm = 16
		h, l := d.float32Of(hi, "f16"), d.float32Of(lo, "f16")
		relu(h)
		relu(l)
		d.alu("f32_"+dt, d.target(&s.args[0], "b16"), h, l)
	case dt == "f16x2" && (st == "e4m3x2" || st == "e5m2x2"):
		d.operandCount(2, 2)
		to := d.target(&s.args[0], "b32")
		d.alu(st+"_f16x2", to, d.source(&s.args[1], "b16"))
		if o.has("relu") {
			in := d.alu("relu_f32", to, to)
			in.mods, in.pair = C.MOD_HALF, 1
		}
	default:
		d.unsupported()
	}
}
