package ptx

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// registerType is the type that a register for values of a type is declared with.
func registerType(typ string) string {
	switch {
	case typ == "pred":
		return "pred"
	case typeSizes[typ] == 1:
		return "b16"
	}
	return fmt.Sprintf("b%d", 8*typeSizes[typ])
}

// instructionText is a kernel in which every thread executes one instruction: its operands %a, %b, %c, %e come from four
// numbers of 64 bits of the thread, and its results %d and %q go to two.
func instructionText(instruction, result string, operands ...string) string {
	var b strings.Builder
	b.WriteString(head + ".entry k(.param .u64 in, .param .u64 out)\n{\n")
	fmt.Fprintf(&b, ".reg .pred %%q, %%t; .reg .b32 %%tid; .reg .b64 %%in, %%out, %%at, %%v;\n.reg .%s %%d;\n", registerType(result))
	b.WriteString("ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %tid, %tid.x; mov.pred %q, 0;\n")
	b.WriteString("mad.wide.u32 %in, %tid, 32, %in; mad.wide.u32 %out, %tid, 16, %out;\n")
	for i, o := range operands {
		name := string("abce"[i])
		fmt.Fprintf(&b, ".reg .%s %%%s;\n", registerType(o), name)
		if o == "pred" {
			fmt.Fprintf(&b, "ld.u64 %%v, [%%in+%d]; setp.ne.u64 %%%s, %%v, 0;\n", 8*i, name)
		} else {
			fmt.Fprintf(&b, "ld.%s %%%s, [%%in+%d];\n", registerType(o), name, 8*i)
		}
	}
	if result == "pred" {
		b.WriteString("mov.pred %d, 0;\n")
	} else {
		fmt.Fprintf(&b, "mov.%s %%d, 0;\n", registerType(result))
	}
	b.WriteString(instruction + ";\n")
	if result == "pred" {
		b.WriteString("selp.u64 %v, 1, 0, %d; st.u64 [%out], %v;\n")
	} else {
		fmt.Fprintf(&b, "st.%s [%%out], %%d;\n", registerType(result))
	}
	b.WriteString("selp.u64 %v, 1, 0, %q; st.u64 [%out+8], %v;\nret;\n}\n")
	return b.String()
}

// execute runs one instruction for each row of operands and returns the results.
func execute(t testing.TB, text string, rows [][]uint64) [][2]uint64 {
	t.Helper()
	in, out := make(buffer[uint64], 4*len(rows)), make(buffer[uint64], 2*len(rows))
	for i, r := range rows {
		copy(in[4*i:], r)
	}
	mustRun(t, text, "k", launchOf(1, len(rows), in, out))
	results := make([][2]uint64, len(rows))
	for i := range results {
		results[i] = [2]uint64{out[2*i], out[2*i+1]}
	}
	return results
}

func f32(f float64) uint64 { return uint64(math.Float32bits(float32(f))) }
func f64(f float64) uint64 { return math.Float64bits(f) }

// neg returns a negative number as bits.
func neg(v int64) uint64 { return uint64(-v) }

func s16(v int64) uint64 { return uint64(uint16(v)) }
func s32(v int64) uint64 { return uint64(uint32(v)) }

var (
	inf32, nan32, tiny32 = uint64(0x7f800000), uint64(0x7fc00000), uint64(0x00000001)
	one16, two16, half16 = uint64(0x3c00), uint64(0x4000), uint64(0x3800)
)

// TestInstructions compares instructions with values worked out from the PTX manual: the instruction, the type of its
// result and those of its operands, and rows of operands with the result, and a second one where there is one.
func TestInstructions(t *testing.T) {
	type row = []uint64
	for _, c := range []struct {
		instruction, types string
		rows               []row
	}{
		// integer arithmetic
		{"add.s16 %d, %a, %b", "s16 s16 s16", []row{{0x7fff, 1, 0x8000}}},
		{"add.u32 %d, %a, %b", "u32 u32 u32", []row{{0xffffffff, 2, 1}}},
		{"add.sat.s32 %d, %a, %b", "s32 s32 s32", []row{{0x7fffffff, 1, 0x7fffffff}, {0x80000000, s32(-1), 0x80000000}, {5, s32(-7), s32(-2)}}},
		{"sub.sat.s32 %d, %a, %b", "s32 s32 s32", []row{{0x80000000, 1, 0x80000000}, {0x7fffffff, s32(-1), 0x7fffffff}}},
		{"add.u64 %d, %a, %b", "u64 u64 u64", []row{{math.MaxUint64, 1, 0}}},
		{"sub.u16 %d, %a, %b", "u16 u16 u16", []row{{0, 1, 0xffff}}},
		{"sub.s64 %d, %a, 5", "s64 s64", []row{{3, neg(2)}}},
		{"mul.lo.u32 %d, %a, %b", "u32 u32 u32", []row{{0x10001, 0x10001, 0x20001}}},
		{"mul.lo.s64 %d, %a, %b", "s64 s64 s64", []row{{neg(3), 5, neg(15)}}},
		{"mul.hi.s16 %d, %a, %b", "s16 s16 s16", []row{{0x8000, 2, 0xffff}}},
		{"mul.hi.u16 %d, %a, %b", "u16 u16 u16", []row{{0x8000, 2, 1}}},
		{"mul.hi.s32 %d, %a, %b", "s32 s32 s32", []row{{s32(-1), 1, s32(-1)}}},
		{"mul.hi.u32 %d, %a, %b", "u32 u32 u32", []row{{0xffffffff, 0xffffffff, 0xfffffffe}}},
		{"mul.hi.s64 %d, %a, %b", "s64 s64 s64", []row{{neg(1), 1, neg(1)}, {1 << 62, 8, 2}}},
		{"mul.hi.u64 %d, %a, %b", "u64 u64 u64", []row{{math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1}}},
		{"mul.wide.s16 %d, %a, %b", "s32 s16 s16", []row{{0x8000, 0x8000, 0x40000000}, {s16(-3), 5, s32(-15)}}},
		{"mul.wide.u16 %d, %a, %b", "u32 u16 u16", []row{{0xffff, 0xffff, 0xfffe0001}}},
		{"mul.wide.s32 %d, %a, %b", "s64 s32 s32", []row{{s32(-4), 3, neg(12)}}},
		{"mul.wide.u32 %d, %a, %b", "u64 u32 u32", []row{{0xffffffff, 2, 0x1fffffffe}}},
		{"mad.lo.s32 %d, %a, %b, %c", "s32 s32 s32 s32", []row{{3, s32(-4), 5, s32(-7)}}},
		{"mad.hi.u32 %d, %a, %b, %c", "u32 u32 u32 u32", []row{{0x80000000, 4, 1, 3}}},
		{"mad.hi.sat.s32 %d, %a, %b, %c", "s32 s32 s32 s32", []row{{0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff}}},
		{"mad.wide.u16 %d, %a, %b, %c", "u32 u16 u16 u32", []row{{0xffff, 2, 3, 0x20001}}},
		{"mad.wide.s32 %d, %a, %b, %c", "s64 s32 s32 s64", []row{{s32(-1), 7, 3, neg(4)}}},
		{"mad.lo.u64 %d, %a, %b, %c", "u64 u64 u64 u64", []row{{1 << 40, 1 << 23, 9, 1<<63 + 9}}},
		{"mul24.lo.u32 %d, %a, %b", "u32 u32 u32", []row{{0xff000003, 5, 15}, {0xffffff, 0xffffff, 0xfe000001}}},
		{"mul24.hi.u32 %d, %a, %b", "u32 u32 u32", []row{{0xffffff, 0xffffff, 0xfffffe00}}},
		{"mul24.lo.s32 %d, %a, %b", "s32 s32 s32", []row{{0xffffff, 5, s32(-5)}}},
		{"mad24.lo.u32 %d, %a, %b, %c", "u32 u32 u32 u32", []row{{0x1000002, 3, 4, 10}}},
		{"mad24.hi.sat.s32 %d, %a, %b, %c", "s32 s32 s32 s32", []row{{0x7fffff, 0x7fffff, 0x7fffffff, 0x7fffffff}}},
		{"sad.s32 %d, %a, %b, %c", "u32 s32 s32 u32", []row{{s32(-3), 4, 10, 17}}},
		{"sad.u64 %d, %a, %b, %c", "u64 u64 u64 u64", []row{{3, 10, 1, 8}}},
		{"div.s32 %d, %a, %b", "s32 s32 s32", []row{{s32(-7), 2, s32(-3)}, {0x80000000, s32(-1), 0x80000000}}},
		{"div.u64 %d, %a, %b", "u64 u64 u64", []row{{math.MaxUint64, 3, math.MaxUint64 / 3}}},
		{"rem.s64 %d, %a, %b", "s64 s64 s64", []row{{neg(7), 3, neg(1)}, {1 << 63, neg(1), 0}}},
		{"rem.u16 %d, %a, %b", "u16 u16 u16", []row{{0xffff, 10, 5}}},
		{"abs.s16 %d, %a", "s16 s16", []row{{s16(-5), 5}, {0x8000, 0x8000}}},
		{"abs.s64 %d, %a", "s64 s64", []row{{neg(5), 5}}},
		{"neg.s32 %d, %a", "s32 s32", []row{{5, s32(-5)}}},
		{"min.s32 %d, %a, %b", "s32 s32 s32", []row{{s32(-1), 1, s32(-1)}}},
		{"min.u32 %d, %a, %b", "u32 u32 u32", []row{{s32(-1), 1, 1}}},
		{"max.s16 %d, %a, %b", "s16 s16 s16", []row{{s16(-1), 1, 1}}},
		{"max.u64 %d, %a, %b", "u64 u64 u64", []row{{neg(1), 1, neg(1)}}},
		{"add.cc.u32 %d, %a, %b; addc.u32 %d, %c, 0", "u32 u32 u32 u32", []row{{0xffffffff, 1, 7, 8}, {1, 1, 7, 7}}},
		{"sub.cc.u32 %d, %a, %b; subc.u32 %d, %c, 0", "u32 u32 u32 u32", []row{{0, 1, 7, 6}, {1, 1, 7, 7}}},
		{"add.cc.u64 %d, %a, %b; addc.cc.u64 %d, %a, %b; addc.u64 %d, 0, 0", "u64 u64 u64", []row{{math.MaxUint64, 1, 1}, {1, 1, 0}}},
		{"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0", "u32 u32 u32 u32", []row{{0xffffffff, 1, 1, 1}, {0x10000, 0x10000, 0, 1}}},
		{"dp4a.s32.s32 %d, %a, %b, %c", "s32 b32 b32 s32", []row{{0xff020304, 0x01010101, 10, 18}}},
		{"dp4a.u32.u32 %d, %a, %b, %c", "u32 b32 b32 u32", []row{{0xff020304, 0x01010101, 10, 274}}},
		{"dp4a.u32.s32 %d, %a, %b, %c", "s32 b32 b32 s32", []row{{0x000000ff, 0x000000ff, 0, s32(-255)}}},
		{"dp2a.lo.s32.u32 %d, %a, %b, %c", "s32 b32 b32 s32", []row{{0xffff0002, 0x0a0b0304, 1, s32(1 + 8 - 3)}}},
		{"dp2a.hi.u32.u32 %d, %a, %b, %c", "u32 b32 b32 u32", []row{{0x00010002, 0x0a0b0304, 1, 1 + 22 + 10}}},
		// logic and bits
		{"and.b16 %d, %a, %b", "b16 b16 b16", []row{{0xff0f, 0x0fff, 0x0f0f}}},
		{"or.b64 %d, %a, %b", "b64 b64 b64", []row{{1 << 40, 1, 1<<40 + 1}}},
		{"xor.b32 %d, %a, %b", "b32 b32 b32", []row{{0xff, 0x0f, 0xf0}}},
		{"and.pred %d, %a, %b", "pred pred pred", []row{{1, 1, 1}, {1, 0, 0}}},
		{"not.pred %d, %a", "pred pred", []row{{1, 0}, {0, 1}}},
		{"not.b64 %d, %a", "b64 b64", []row{{0, math.MaxUint64}}},
		{"cnot.b32 %d, %a", "b32 b32", []row{{0, 1}, {7, 0}}},
		{"lop3.b32 %d, %a, %b, %c, 0x96", "b32 b32 b32 b32", []row{{0xf0, 0xcc, 0xaa, 0xf0 ^ 0xcc ^ 0xaa}}},
		{"lop3.b32 %d, %a, %b, %c, 0xca", "b32 b32 b32 b32", []row{{0xf0, 0xcc, 0xaa, 0xca}}},
		{"lop3.or.b32 %d|%q, %a, %b, %c, 0x80, 0", "b32 b32 b32 b32", []row{{1, 1, 1, 1, 1}, {1, 2, 1, 0, 0}}},
		{"shl.b32 %d, %a, %b", "b32 b32 u32", []row{{1, 31, 1 << 31}, {1, 32, 0}, {1, 0xffffffff, 0}}},
		{"shl.b16 %d, %a, %b", "b16 b16 u32", []row{{3, 15, 0x8000}, {1, 16, 0}}},
		{"shr.s32 %d, %a, %b", "s32 s32 u32", []row{{s32(-8), 1, s32(-4)}, {s32(-8), 40, s32(-1)}}},
		{"shr.u64 %d, %a, %b", "u64 u64 u32", []row{{1 << 63, 63, 1}, {1 << 63, 64, 0}}},
		{"shf.l.wrap.b32 %d, %a, %b, %c", "b32 b32 b32 u32", []row{{0x80000000, 1, 1, 3}, {7, 9, 32, 9}}},
		{"shf.r.clamp.b32 %d, %a, %b, %c", "b32 b32 b32 u32", []row{{1, 2, 32, 2}, {1, 2, 99, 2}, {0, 1, 1, 0x80000000}}},
		{"shf.l.clamp.b32 %d, %a, %b, %c", "b32 b32 b32 u32", []row{{5, 2, 32, 5}}},
		{"shf.r.wrap.b32 %d, %a, %b, %c", "b32 b32 b32 u32", []row{{5, 2, 32, 5}}},
		{"popc.b64 %d, %a", "u32 b64", []row{{0xf00000000000000f, 8}}},
		{"clz.b32 %d, %a", "u32 b32", []row{{0, 32}, {1, 31}, {0x80000000, 0}}},
		{"clz.b64 %d, %a", "u32 b64", []row{{0, 64}, {1 << 32, 31}}},
		{"brev.b32 %d, %a", "b32 b32", []row{{1, 0x80000000}, {0x0000f00f, 0xf00f0000}}},
		{"brev.b64 %d, %a", "b64 b64", []row{{1, 1 << 63}}},
		{"bfind.u32 %d, %a", "u32 u32", []row{{0, 0xffffffff}, {0x80000000, 31}, {1, 0}}},
		{"bfind.s32 %d, %a", "u32 s32", []row{{s32(-1), 0xffffffff}, {s32(-2), 0}, {5, 2}}},
		{"bfind.shiftamt.u64 %d, %a", "u32 u64", []row{{1, 63}, {0, 0xffffffff}}},
		{"bfe.u32 %d, %a, %b, %c", "u32 u32 u32 u32", []row{{0xabcd1234, 8, 8, 0x12}, {0xffffffff, 28, 8, 0xf}, {1, 0, 0, 0}}},
		{"bfe.s32 %d, %a, %b, %c", "s32 s32 u32 u32", []row{{0x00000080, 0, 8, s32(-128)}, {0x80000000, 28, 8, s32(-8)}, {0x80000000, 40, 4, s32(-1)}}},
		{"bfe.s64 %d, %a, %b, %c", "s64 s64 u32 u32", []row{{0x8000, 8, 8, neg(128)}}},
		{"bfi.b32 %d, %a, %b, %c, %e", "b32 b32 b32 u32 u32", []row{{0xff, 0, 8, 4, 0xf00}, {0xff, 7, 40, 4, 7}}},
		{"bfi.b64 %d, %a, %b, %c, %e", "b64 b64 b64 u32 u32", []row{{math.MaxUint64, 0, 60, 64, 0xf << 60}}},
		{"bmsk.clamp.b32 %d, %a, %b", "b32 u32 u32", []row{{4, 4, 0xf0}, {28, 8, 0xf0000000}, {32, 1, 0}}},
		{"bmsk.wrap.b32 %d, %a, %b", "b32 u32 u32", []row{{36, 4, 0xf0}, {0, 32, 0}}},
		{"szext.wrap.s32 %d, %a, %b", "s32 s32 u32", []row{{0xff, 8, s32(-1)}, {0x7f, 8, 0x7f}}},
		{"szext.clamp.u32 %d, %a, %b", "u32 u32 u32", []row{{0x1ff, 8, 0xff}, {0x1ff, 40, 0x1ff}}},
		{"fns.b32 %d, %a, %b, %c", "b32 b32 b32 s32", []row{{0b10110, 0, 2, 2}, {0b10110, 4, s32(-2), 2}, {0b10110, 1, 0, 1}, {0, 0, 1, 0xffffffff}}},
		{"prmt.b32 %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0x77665544, 0x7531, 0x77553311}, {0x80, 0, 0x8888, 0xffffffff}}},
		{"prmt.b32.f4e %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0x77665544, 1, 0x44332211}}},
		{"prmt.b32.b4e %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0x77665544, 0, 0x55667700}}},
		{"prmt.b32.rc8 %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0, 2, 0x22222222}}},
		{"prmt.b32.ecl %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0, 2, 0x33222222}}},
		{"prmt.b32.ecr %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0, 1, 0x11111100}}},
		{"prmt.b32.rc16 %d, %a, %b, %c", "b32 b32 b32 b32", []row{{0x33221100, 0, 1, 0x33223322}}},
		// comparisons and choices
		{"setp.lt.s32 %d|%q, %a, %b", "pred s32 s32", []row{{s32(-1), 0, 1, 0}, {1, 0, 0, 1}}},
		{"setp.lo.u32 %d, %a, %b", "pred u32 u32", []row{{s32(-1), 0, 0}}},
		{"setp.hs.u64 %d, %a, %b", "pred u64 u64", []row{{5, 5, 1}}},
		{"setp.ne.b16 %d, %a, %b", "pred b16 b16", []row{{5, 5, 0}}},
		{"setp.gt.and.s32 %d|%q, %a, %b, %c", "pred s32 s32 pred", []row{{2, 1, 1, 1, 0}, {2, 1, 0, 0, 0}, {0, 1, 1, 0, 1}}},
		{"setp.le.xor.s64 %d, %a, %b, !%c", "pred s64 s64 pred", []row{{1, 1, 1, 1}, {1, 1, 0, 0}}},
		{"setp.lt.f32 %d, %a, %b", "pred f32 f32", []row{{f32(1), f32(2), 1}, {nan32, f32(2), 0}}},
		{"setp.ne.f32 %d, %a, %b", "pred f32 f32", []row{{f32(1), f32(2), 1}, {nan32, f32(2), 0}}},
		{"setp.equ.f32 %d, %a, %b", "pred f32 f32", []row{{f32(1), f32(2), 0}, {nan32, f32(2), 1}}},
		{"setp.neu.f64 %d, %a, %b", "pred f64 f64", []row{{f64(1), f64(1), 0}, {f64(math.NaN()), f64(2), 1}}},
		{"setp.geu.f32 %d, %a, %b", "pred f32 f32", []row{{f32(1), f32(2), 0}, {f32(2), f32(2), 1}, {nan32, f32(2), 1}}},
		{"setp.gtu.f64 %d, %a, %b", "pred f64 f64", []row{{f64(1), f64(2), 0}, {f64(3), f64(2), 1}}},
		{"setp.num.f32 %d, %a, %b", "pred f32 f32", []row{{f32(1), nan32, 0}, {f32(1), f32(1), 1}}},
		{"setp.nan.f32 %d, %a, %b", "pred f32 f32", []row{{f32(1), nan32, 1}, {f32(1), f32(1), 0}}},
		{"setp.eq.ftz.f32 %d, %a, %b", "pred f32 f32", []row{{tiny32, 0, 1}}},
		{"setp.lt.f16 %d, %a, %b", "pred f16 f16", []row{{one16, two16, 1}, {two16, one16, 0}}},
		{"setp.gt.bf16 %d, %a, %b", "pred b16 b16", []row{{0x3f80, 0x4000, 0}, {0x4000, 0x3f80, 1}}},
		{"setp.lt.f16x2 %d|%q, %a, %b", "pred b32 b32", []row{{one16 | two16<<16, two16 | one16<<16, 1, 0}}},
		{"set.lt.u32.s32 %d, %a, %b", "u32 s32 s32", []row{{1, 2, 0xffffffff}, {2, 1, 0}}},
		{"set.gt.f32.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(2), f32(1), f32(1)}}},
		{"set.lt.f16x2.f16x2 %d, %a, %b", "b32 b32 b32", []row{{one16 | two16<<16, two16 | one16<<16, one16}}},
		{"selp.b32 %d, %a, %b, %c", "b32 b32 b32 pred", []row{{1, 2, 1, 1}, {1, 2, 0, 2}}},
		{"slct.u64.s32 %d, %a, %b, %c", "u64 u64 u64 s32", []row{{1, 2, 0, 1}, {1, 2, s32(-1), 2}}},
		{"slct.b32.f32 %d, %a, %b, %c", "b32 b32 b32 f32", []row{{1, 2, f32(-0.5), 2}, {1, 2, 0x80000000, 1}, {1, 2, nan32, 2}}},
		{"slct.ftz.b32.f32 %d, %a, %b, %c", "b32 b32 b32 f32", []row{{1, 2, 0x80000001, 1}}},
		{"testp.subnormal.f32 %d, %a", "pred f32", []row{{tiny32, 1}, {0, 0}}},
		{"testp.normal.f64 %d, %a", "pred f64", []row{{f64(1), 1}, {0, 0}}},
		{"testp.infinite.f32 %d, %a", "pred f32", []row{{inf32, 1}, {nan32, 0}}},
		{"testp.finite.f32 %d, %a", "pred f32", []row{{inf32, 0}, {f32(1), 1}}},
		{"testp.notanumber.f64 %d, %a", "pred f64", []row{{f64(math.NaN()), 1}}},
		// floats
		{"add.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), f32(2), f32(3)}, {f32(1), 0x33800000, f32(1)}}},
		{"add.rp.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), 0x33800000, 0x3f800001}, {f32(1), tiny32, 0x3f800001}}},
		{"add.rz.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), 0xb3000000, 0x3f7fffff}}},
		{"add.rm.f64 %d, %a, %b", "f64 f64 f64", []row{{f64(1), f64(-1e-300), 0x3fefffffffffffff}}},
		{"add.ftz.f32 %d, %a, %b", "f32 f32 f32", []row{{tiny32, 0x80000000, 0}, {0x80000001, 0x80000000, 0x80000000}}},
		{"add.sat.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(0.75), f32(0.5), f32(1)}, {f32(-1), f32(0.5), 0}, {nan32, 0, 0}}},
		{"sub.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), f32(3), f32(-2)}}},
		{"mul.rn.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1.5), f32(3), f32(4.5)}}},
		{"mul.rm.f32 %d, %a, %b", "f32 f32 f32", []row{{0x3f800001, 0x3f800001, 0x3f800002}}},
		{"mul.rp.f32 %d, %a, %b", "f32 f32 f32", []row{{0x3f800001, 0x3f800001, 0x3f800003}}},
		{"fma.rn.f32 %d, %a, %b, %c", "f32 f32 f32 f32", []row{{0x3f800001, 0x3f800001, 0xbf800002, 0x28800000}}},
		{"fma.rn.f64 %d, %a, %b, %c", "f64 f64 f64 f64", []row{{f64(3), f64(4), f64(5), f64(17)}}},
		{"fma.rz.f32 %d, %a, %b, %c", "f32 f32 f32 f32", []row{{f32(1), f32(1), 0xb3000000, 0x3f7fffff}}},
		{"div.rn.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), f32(3), 0x3eaaaaab}}},
		{"div.rp.f64 %d, %a, %b", "f64 f64 f64", []row{{f64(1), f64(3), 0x3fd5555555555556}}},
		{"div.full.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), f32(4), f32(0.25)}}},
		{"sqrt.rn.f32 %d, %a", "f32 f32", []row{{f32(2), 0x3fb504f3}}},
		{"sqrt.rp.f64 %d, %a", "f64 f64", []row{{f64(4), f64(2)}}},
		{"rcp.rn.f32 %d, %a", "f32 f32", []row{{f32(4), f32(0.25)}}},
		{"rsqrt.approx.f32 %d, %a", "f32 f32", []row{{f32(4), f32(0.5)}, {0, inf32}}},
		{"ex2.approx.ftz.f32 %d, %a", "f32 f32", []row{{f32(3), f32(8)}, {f32(-200), 0}, {f32(200), inf32}, {f32(0.5), 0x3fb504f3}}},
		{"lg2.approx.f32 %d, %a", "f32 f32", []row{{f32(8), f32(3)}, {0, 0xff800000}, {inf32, inf32}}},
		{"sin.approx.f32 %d, %a", "f32 f32", []row{{0, 0}}},
		{"cos.approx.f32 %d, %a", "f32 f32", []row{{0, f32(1)}}},
		{"tanh.approx.f32 %d, %a", "f32 f32", []row{{inf32, f32(1)}}},
		{"abs.f32 %d, %a", "f32 f32", []row{{f32(-2), f32(2)}}},
		{"neg.f64 %d, %a", "f64 f64", []row{{f64(2), f64(-2)}}},
		{"min.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), nan32, f32(1)}, {0x80000000, 0, 0x80000000}, {0, 0x80000000, 0x80000000}}},
		{"max.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), f32(2), f32(2)}, {0x80000000, 0, 0}}},
		{"max.NaN.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(1), f32(2), f32(2)}}},
		{"min.xorsign.abs.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(-3), f32(2), f32(-2)}, {f32(-3), f32(-2), f32(2)}}},
		{"min.f64 %d, %a, %b", "f64 f64 f64", []row{{f64(1), f64(-2), f64(-2)}}},
		{"copysign.f32 %d, %a, %b", "f32 f32 f32", []row{{f32(-1), f32(5), f32(-5)}}},
		{"add.f16 %d, %a, %b", "f16 f16 f16", []row{{one16, half16, 0x3e00}}},
		{"add.rn.f16x2 %d, %a, %b", "b32 b32 b32", []row{{one16 | two16<<16, one16 | one16<<16, two16 | 0x4200<<16}}},
		{"fma.rn.f16 %d, %a, %b, %c", "f16 f16 f16 f16", []row{{0x3c01, 0x3c01, 0xbc02, 0x0010}}},
		{"fma.rn.relu.f16x2 %d, %a, %b, %c", "b32 b32 b32 b32", []row{{one16 | one16<<16, one16 | one16<<16, 0xc000 | one16<<16, two16 << 16}}},
		{"fma.rn.bf16 %d, %a, %b, %c", "b16 b16 b16 b16", []row{{0x3f80, 0x4000, 0x3f80, 0x4040}}},
		{"mul.sat.f16 %d, %a, %b", "f16 f16 f16", []row{{two16, two16, one16}}},
		{"max.f16 %d, %a, %b", "f16 f16 f16", []row{{one16, two16, two16}}},
		{"min.bf16x2 %d, %a, %b", "b32 b32 b32", []row{{0x3f804000, 0x40003f80, 0x3f803f80}}},
		{"abs.f16x2 %d, %a", "b32 b32", []row{{0xbc00bc00, 0x3c003c00}}},
		{"neg.bf16 %d, %a", "b16 b16", []row{{0x3f80, 0xbf80}}},
		{"ex2.approx.f16 %d, %a", "f16 f16", []row{{one16, two16}}},
		{"tanh.approx.bf16x2 %d, %a", "b32 b32", []row{{0, 0}}},
		// conversions
		{"cvt.s32.s8 %d, %a", "s32 b16", []row{{0xff, s32(-1)}}},
		{"cvt.u8.u32 %d, %a", "b16 u32", []row{{0x1ff, 0xff}}},
		{"cvt.s8.u32 %d, %a", "b16 u32", []row{{0x1ff, 0xffff}}},
		{"cvt.s64.s16 %d, %a", "s64 s16", []row{{s16(-2), neg(2)}}},
		{"cvt.u16.u64 %d, %a", "u16 u64", []row{{0x12345, 0x2345}}},
		{"cvt.s64.u32 %d, %a", "s64 u32", []row{{0xffffffff, 0xffffffff}}},
		{"cvt.sat.u8.s32 %d, %a", "b16 s32", []row{{s32(-5), 0}, {300, 255}}},
		{"cvt.sat.s32.u64 %d, %a", "s32 u64", []row{{math.MaxUint64, 0x7fffffff}}},
		{"cvt.sat.u64.s64 %d, %a", "u64 s64", []row{{neg(4), 0}, {9, 9}}},
		{"cvt.rn.f32.s32 %d, %a", "f32 s32", []row{{16777217, f32(16777216)}, {s32(-3), f32(-3)}}},
		{"cvt.rp.f32.u32 %d, %a", "f32 u32", []row{{16777217, f32(16777218)}}},
		{"cvt.rz.f32.u64 %d, %a", "f32 u64", []row{{math.MaxUint64, 0x5f7fffff}}},
		{"cvt.rn.f64.s64 %d, %a", "f64 s64", []row{{neg(3), f64(-3)}}},
		{"cvt.rn.f16.s32 %d, %a", "f16 s32", []row{{2049, 0x6800}, {70000, 0x7c00}}},
		{"cvt.rn.bf16.u64 %d, %a", "b16 u64", []row{{0x101<<40 | 1, 0x5781}}},
		{"cvt.rzi.s32.f32 %d, %a", "s32 f32", []row{{f32(-2.7), s32(-2)}, {nan32, 0}, {f32(3e9), 0x7fffffff}, {f32(-3e9), 0x80000000}}},
		{"cvt.rni.s32.f32 %d, %a", "s32 f32", []row{{f32(2.5), 2}, {f32(3.5), 4}}},
		{"cvt.rmi.s64.f64 %d, %a", "s64 f64", []row{{f64(-2.1), neg(3)}, {f64(math.NaN()), 1 << 63}}},
		{"cvt.rpi.u32.f32 %d, %a", "u32 f32", []row{{f32(2.1), 3}, {f32(-5), 0}, {f32(5e9), 0xffffffff}}},
		{"cvt.rzi.u64.f32 %d, %a", "u64 f32", []row{{f32(1e10), 10000000000}, {nan32, 1 << 63}}},
		{"cvt.rzi.s32.f64 %d, %a", "s32 f64", []row{{f64(math.NaN()), 0x80000000}, {f64(-7.9), s32(-7)}}},
		{"cvt.rzi.u8.f32 %d, %a", "b16 f32", []row{{f32(300), 255}, {f32(-1), 0}}},
		{"cvt.rni.s8.f32 %d, %a", "b16 f32", []row{{f32(-300), 0xff80}}},
		{"cvt.rzi.s16.f16 %d, %a", "s16 f16", []row{{0xc100, s16(-2)}}},
		{"cvt.f32.f16 %d, %a", "f32 f16", []row{{one16, f32(1)}, {0x0001, 0x33800000}, {0x7c00, inf32}}},
		{"cvt.rn.f16.f32 %d, %a", "f16 f32", []row{{f32(1), one16}, {f32(65519), 0x7bff}, {f32(65520), 0x7c00}, {0x33000000, 0}, {0x33000001, 1}, {nan32, 0x7fff}}},
		{"cvt.rz.f16.f32 %d, %a", "f16 f32", []row{{f32(65535), 0x7bff}, {0x3f801fff, one16}}},
		{"cvt.rp.f16.f32 %d, %a", "f16 f32", []row{{0x3f800001, 0x3c01}, {tiny32, 1}}},
		{"cvt.rm.f16.f32 %d, %a", "f16 f32", []row{{0x3f7fffff, 0x3bff}, {0x80000001, 0x8001}}},
		{"cvt.f32.bf16 %d, %a", "f32 b16", []row{{0x3f80, f32(1)}}},
		{"cvt.rn.bf16.f32 %d, %a", "b16 f32", []row{{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {nan32, 0x7fff}}},
		{"cvt.rz.bf16.f32 %d, %a", "b16 f32", []row{{0x3f80ffff, 0x3f80}}},
		{"cvt.rn.f32.f64 %d, %a", "f32 f64", []row{{f64(0.1), f32(0.1)}}},
		{"cvt.rm.f32.f64 %d, %a", "f32 f64", []row{{f64(0.1), 0x3dcccccc}}},
		{"cvt.rn.f16.f64 %d, %a", "f16 f64", []row{{f64(1 + 1.0/2048 + 1e-12), 0x3c01}}},
		{"cvt.f64.f32 %d, %a", "f64 f32", []row{{f32(1.5), f64(1.5)}}},
		{"cvt.ftz.f64.f32 %d, %a", "f64 f32", []row{{tiny32, 0}}},
		{"cvt.rni.f32.f32 %d, %a", "f32 f32", []row{{f32(2.5), f32(2)}}},
		{"cvt.rpi.f64.f64 %d, %a", "f64 f64", []row{{f64(2.1), f64(3)}}},
		{"cvt.rzi.bf16.bf16 %d, %a", "b16 b16", []row{{0x4030, 0x4000}}},
		{"cvt.sat.f32.f32 %d, %a", "f32 f32", []row{{f32(7), f32(1)}, {f32(-7), 0}}},
		{"cvt.rn.f16x2.f32 %d, %a, %b", "b32 f32 f32", []row{{f32(2), f32(1), two16<<16 | one16}}},
		{"cvt.rz.bf16x2.f32 %d, %a, %b", "b32 f32 f32", []row{{f32(2), 0x3f80ffff, 0x40003f80}}},
		{"cvt.rn.relu.f16x2.f32 %d, %a, %b", "b32 f32 f32", []row{{f32(-2), f32(1), one16}}},
		{"cvt.rn.relu.bf16.f32 %d, %a", "b16 f32", []row{{f32(-2), 0}}},
		{"cvt.rna.tf32.f32 %d, %a", "b32 f32", []row{{0x3f801000, 0x3f802000}, {0x3f800fff, 0x3f800000}}},
		{"cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b", "b16 f32 f32", []row{{f32(1), f32(448), 0x387e}, {f32(-1000), f32(0.001953125), 0xfe01}}},
		{"cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b", "b16 f32 f32", []row{{f32(1), f32(1e9), 0x3c7b}}},
		{"cvt.rn.satfinite.e4m3x2.f16x2 %d, %a", "b16 b32", []row{{two16<<16 | one16, 0x4038}}},
		{"cvt.rn.f16x2.e4m3x2 %d, %a", "b32 b16", []row{{0x3840, one16<<16 | two16}, {0x0181, 0x18009800}}},
		{"cvt.rn.f16x2.e5m2x2 %d, %a", "b32 b16", []row{{0x3c40, one16<<16 | two16}}},
		// moves
		{"mov.b32 %d, %a", "b32 b32", []row{{7, 7}}},
		{"mov.b32 %d, {%a, %b}", "b32 b16 b16", []row{{0x1111, 0x2222, 0x22221111}}},
		{"mov.b64 %d, {%a, %b}", "b64 b32 b32", []row{{1, 2, 2<<32 | 1}}},
		{"mov.b64 %d, {%a, %b, %c, %e}", "b64 b16 b16 b16 b16", []row{{1, 2, 3, 4, 4<<48 | 3<<32 | 2<<16 | 1}}},
		{".reg .b32 %x; mov.b64 {_, %x}, %a; mov.b32 %d, %x", "b32 b64", []row{{5<<32 | 6, 5}}},
		{".reg .b64 %lo, %hi; .reg .b128 %w; mov.b128 %w, {%a, %b}; mov.b128 {%lo, %hi}, %w; xor.b64 %d, %lo, %hi", "b64 b64 b64", []row{{6, 3, 5}}},
		{"mov.u32 %d, WARP_SZ", "u32", []row{{32}}},
		{"mov.u32 %d, %ntid.x", "u32", []row{{2}, {2}}},
		{"mov.f32 %d, 0f3F800000", "f32", []row{{f32(1)}}},
		{"mov.f64 %d, 1.5", "f64", []row{{f64(1.5)}}},
	} {
		t.Run(c.instruction, func(t *testing.T) {
			types := strings.Fields(c.types)
			rows := make([][]uint64, len(c.rows))
			for i, r := range c.rows {
				rows[i] = r[:len(types)-1]
			}
			for i, got := range execute(t, instructionText(c.instruction, types[0], types[1:]...), rows) {
				want := c.rows[i][len(types)-1:]
				require.Equal(t, fmt.Sprintf("%#x", want[0]), fmt.Sprintf("%#x", got[0]), "row %d", i)
				if len(want) > 1 {
					require.Equal(t, want[1], got[1], "second result of row %d", i)
				}
			}
		})
	}
}

// TestNaN checks results that are any NaN.
func TestNaN(t *testing.T) {
	for _, instruction := range []string{"max.NaN.f32 %d, %a, %b", "sqrt.rn.f32 %d, %b", "lg2.approx.f32 %d, %b", "add.f32 %d, %a, %b"} {
		got := execute(t, instructionText(instruction, "f32", "f32", "f32"), [][]uint64{{nan32, f32(-1)}})
		require.True(t, math.IsNaN(float64(math.Float32frombits(uint32(got[0][0])))), instruction)
	}
}

// TestInstructionSets runs a sample with every set of instructions of the processor.
func TestInstructionSets(t *testing.T) {
	best := InstructionSet()
	defer UseInstructionSet(best)
	var results [][][2]uint64
	for _, set := range []string{"base", "avx2", "avx512"} {
		if !UseInstructionSet(set) {
			continue
		}
		rows := make([][]uint64, 100)
		for i := range rows {
			rows[i] = []uint64{f32(float64(i) * 1.37), f32(3.1 - float64(i)), f32(float64(i%7) * 1e-3)}
		}
		text := instructionText("fma.rn.f32 %d, %a, %b, %c; ex2.approx.f32 %d, %d; mul.f32 %d, %d, %a; lg2.approx.f32 %d, %d", "f32", "f32", "f32", "f32")
		results = append(results, execute(t, text, rows))
	}
	for _, r := range results[1:] {
		for i := range r {
			a, b := math.Float32frombits(uint32(r[i][0])), math.Float32frombits(uint32(results[0][i][0]))
			require.True(t, a == b || a != a && b != b, "%v and %v", a, b)
		}
	}
}
