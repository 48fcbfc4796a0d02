package ptx

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The second evaluator: random programs are made together with functions in Go that do the same for one thread at a
// time. It shares nothing with the executor.

// thread is one thread of the evaluator: registers by kind.
type thread struct {
	r [6]uint32  // %r
	d [4]uint64  // %d
	f [4]float32 // %f
	g [3]float64 // %g
	h [3]uint16  // %h, f16
	p [3]bool    // %p
}

// action is a statement: its text, and what it does to a thread.
type action struct {
	text string
	run  func(t *thread)
}

// collective is a statement that all threads of a block execute together.
type collective struct {
	text string
	run  func(all []*thread)
}

type generator struct {
	*rand.Rand
	labels int
}

func (g *generator) pick(n int) int { return g.IntN(n) }

func (g *generator) number32() uint32 {
	switch g.pick(4) {
	case 0:
		return uint32(g.pick(40))
	case 1:
		return -uint32(g.pick(40))
	case 2:
		return []uint32{0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000, 0xff, 0x3f800000, 0x00800000, 1}[g.pick(8)]
	}
	return g.Uint32()
}

// signed and unsigned arithmetic of 32 bits, by the text behind the destination.
var binary32 = []struct {
	name string
	f    func(a, b uint32) uint32
}{
	{"add.u32", func(a, b uint32) uint32 { return a + b }},
	{"sub.s32", func(a, b uint32) uint32 { return a - b }},
	{"mul.lo.u32", func(a, b uint32) uint32 { return a * b }},
	{"mul.hi.u32", func(a, b uint32) uint32 { hi, _ := bits.Mul32(a, b); return hi }},
	{"mul.hi.s32", func(a, b uint32) uint32 { return uint32(int64(int32(a)) * int64(int32(b)) >> 32) }},
	{"mul24.lo.u32", func(a, b uint32) uint32 { return (a & 0xffffff) * (b & 0xffffff) }},
	{"add.sat.s32", func(a, b uint32) uint32 { return clamp32(int64(int32(a)) + int64(int32(b))) }},
	{"sub.sat.s32", func(a, b uint32) uint32 { return clamp32(int64(int32(a)) - int64(int32(b))) }},
	{"min.s32", func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) }},
	{"max.s32", func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }},
	{"min.u32", func(a, b uint32) uint32 { return min(a, b) }},
	{"max.u32", func(a, b uint32) uint32 { return max(a, b) }},
	{"and.b32", func(a, b uint32) uint32 { return a & b }},
	{"or.b32", func(a, b uint32) uint32 { return a | b }},
	{"xor.b32", func(a, b uint32) uint32 { return a ^ b }},
	{"shl.b32", func(a, b uint32) uint32 { return a << b }},
	{"shr.u32", func(a, b uint32) uint32 { return a >> b }},
	{"shr.s32", func(a, b uint32) uint32 { return uint32(int32(a) >> b) }},
	{"bmsk.clamp.b32", func(a, b uint32) uint32 {
		var v uint32
		for i := range uint64(32) {
			if i >= uint64(a) && i < uint64(a)+uint64(b) {
				v |= 1 << i
			}
		}
		return v
	}},
}

var unary32 = []struct {
	name string
	f    func(a uint32) uint32
}{
	{"not.b32", func(a uint32) uint32 { return ^a }},
	{"neg.s32", func(a uint32) uint32 { return -a }},
	{"abs.s32", func(a uint32) uint32 {
		if int32(a) < 0 {
			return -a
		}
		return a
	}},
	{"popc.b32", func(a uint32) uint32 { return uint32(bits.OnesCount32(a)) }},
	{"clz.b32", func(a uint32) uint32 { return uint32(bits.LeadingZeros32(a)) }},
	{"brev.b32", bits.Reverse32},
	{"bfind.u32", func(a uint32) uint32 { return uint32(bits.Len32(a) - 1) }},
	{"cnot.b32", func(a uint32) uint32 {
		if a == 0 {
			return 1
		}
		return 0
	}},
	{"cvt.s32.s8", func(a uint32) uint32 { return uint32(int32(int8(a))) }},
	{"cvt.u32.u16", func(a uint32) uint32 { return uint32(uint16(a)) }},
	{"cvt.sat.s16.s32", func(a uint32) uint32 { return uint32(max(min(int32(a), 32767), -32768)) }},
}

var ternary32 = []struct {
	name string
	f    func(a, b, c uint32) uint32
}{
	{"mad.lo.s32", func(a, b, c uint32) uint32 { return a*b + c }},
	{"mad.hi.u32", func(a, b, c uint32) uint32 { hi, _ := bits.Mul32(a, b); return hi + c }},
	{"shf.l.wrap.b32", func(a, b, c uint32) uint32 { return uint32((uint64(b)<<32 | uint64(a)) << (c % 32) >> 32) }},
	{"shf.r.clamp.b32", func(a, b, c uint32) uint32 { return uint32((uint64(b)<<32 | uint64(a)) >> min(c, 32)) }},
	{"sad.s32", func(a, b, c uint32) uint32 {
		if int32(a) < int32(b) {
			return c + b - a
		}
		return c + a - b
	}},
	{"prmt.b32", func(a, b, c uint32) uint32 {
		bytes := [8]byte{}
		for i := range 4 {
			bytes[i], bytes[i+4] = byte(a>>(8*i)), byte(b>>(8*i))
		}
		var v uint32
		for i := range 4 {
			s := c >> (4 * i) & 15
			x := bytes[s&7]
			if s&8 != 0 {
				x = byte(int8(x) >> 7)
			}
			v |= uint32(x) << (8 * i)
		}
		return v
	}},
	{"bfe.u32", func(a, b, c uint32) uint32 { return uint32(extract(uint64(a), b, c, 32, false)) }},
	{"bfe.s32", func(a, b, c uint32) uint32 { return uint32(extract(uint64(a), b, c, 32, true)) }},
	{"dp4a.s32.u32", func(a, b, c uint32) uint32 {
		for i := range 4 {
			c += uint32(int32(int8(a>>(8*i))) * int32(uint8(b>>(8*i))))
		}
		return c
	}},
}

func clamp32(v int64) uint32 { return uint32(max(min(v, math.MaxInt32), math.MinInt32)) }

// extract follows the pseudocode of bfe bit by bit.
func extract(a uint64, b, c uint32, width uint32, signed bool) uint64 {
	pos, n := b&255, c&255
	var sign uint64
	if signed && n > 0 {
		sign = a >> min(pos+n-1, width-1) & 1
	}
	var d uint64
	for i := range width {
		bit := sign
		if i < n && pos+i < width {
			bit = a >> (pos + i) & 1
		}
		d |= bit << i
	}
	return d
}

var binary64 = []struct {
	name string
	f    func(a, b uint64) uint64
}{
	{"add.s64", func(a, b uint64) uint64 { return a + b }},
	{"sub.u64", func(a, b uint64) uint64 { return a - b }},
	{"mul.lo.u64", func(a, b uint64) uint64 { return a * b }},
	{"mul.hi.u64", func(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }},
	{"mul.hi.s64", func(a, b uint64) uint64 {
		v := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
		return uint64(v.Rsh(v, 64).Int64())
	}},
	{"xor.b64", func(a, b uint64) uint64 { return a ^ b }},
	{"min.s64", func(a, b uint64) uint64 { return uint64(min(int64(a), int64(b))) }},
	{"max.u64", func(a, b uint64) uint64 { return max(a, b) }},
}

// rounded rounds an exact number to f32 in a mode, and flushes it.
func rounded(v *big.Float, mode string, zero float32) float32 {
	if v.Sign() == 0 {
		return zero
	}
	f, acc := v.Float32()
	switch {
	case mode == "rz" && (acc == big.Above && f > 0 || acc == big.Below && f < 0):
		return math.Nextafter32(f, 0)
	case mode == "rm" && acc == big.Above:
		return math.Nextafter32(f, float32(math.Inf(-1)))
	case mode == "rp" && acc == big.Below:
		return math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

func exact(f float32) *big.Float {
	return new(big.Float).SetPrec(2000).SetFloat64(float64(f))
}

func finite(fs ...float32) bool {
	for _, f := range fs {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return false
		}
	}
	return true
}

func flushed(f float32) float32 {
	if math.Abs(float64(f)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(f)))
	}
	return f
}

// fmaFloat is a*b+c with one rounding, in a mode.
func fmaFloat(a, b, c float32, mode string) float32 {
	if !finite(a, b, c) {
		return float32(math.FMA(float64(a), float64(b), float64(c)))
	}
	p := new(big.Float).SetPrec(2000).Mul(exact(a), exact(b))
	s := new(big.Float).SetPrec(2000).Add(p, exact(c))
	zero := float32(float64(a)*float64(b) + float64(c)) // of zeros, the product of f32 is exact in f64
	if p.Sign() != 0 && s.Sign() == 0 {
		zero = 0 // x - x
		if mode == "rm" {
			zero = float32(math.Copysign(0, -1))
		}
	} else if mode == "rm" && zero == 0 && math.Signbit(float64(a)*float64(b)) != math.Signbit(float64(c)) {
		zero = float32(math.Copysign(0, -1))
	}
	return rounded(s, mode, zero)
}

func saturated(f float32) float32 {
	if !(f > 0) {
		return 0
	}
	return min(f, 1)
}

// halves are the positive finite values of f16 in order.
var halves = func() (v [0x7c00]float64) {
	for i := range v {
		e, m := i>>10, i&1023
		if e == 0 {
			v[i] = math.Ldexp(float64(m), -24)
		} else {
			v[i] = math.Ldexp(float64(1024+m), e-25)
		}
	}
	return
}()

func fromHalf(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	switch m := h & 0x7fff; {
	case m < 0x7c00:
		return math.Copysign(halves[m], sign)
	case m == 0x7c00:
		return math.Inf(int(sign))
	}
	return math.NaN()
}

func toHalf(f float64) uint16 {
	var sign uint16
	if math.Signbit(f) {
		sign = 0x8000
	}
	a := math.Abs(f)
	switch {
	case f != f:
		return 0x7fff
	case a >= 65520:
		return sign | 0x7c00
	}
	lo, hi := 0, len(halves)-1
	for lo < hi { // the last one that is not above
		mid := (lo + hi + 1) / 2
		if halves[mid] <= a {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo+1 < len(halves) {
		below, above := a-halves[lo], halves[lo+1]-a
		if above < below || above == below && lo&1 == 1 {
			lo++
		}
	}
	return sign | uint16(lo)
}

func toInteger(f float64, lo, hi float64, nan uint64) uint64 {
	switch {
	case f != f:
		return nan
	case f <= lo:
		return uint64(int64(lo))
	case f >= hi:
		if hi == 0x1p64 {
			return math.MaxUint64
		}
		return uint64(hi) - 1
	case f < 0:
		return uint64(int64(f))
	}
	return uint64(f)
}

var comparisonsOf = []struct {
	name      string
	f         func(a, b float64) bool
	unordered bool
}{
	{"eq", func(a, b float64) bool { return a == b }, false}, {"lt", func(a, b float64) bool { return a < b }, false},
	{"ge", func(a, b float64) bool { return a >= b }, false}, {"neu", func(a, b float64) bool { return a != b }, true},
	{"gtu", func(a, b float64) bool { return a > b }, true}, {"leu", func(a, b float64) bool { return a <= b }, true},
	{"equ", func(a, b float64) bool { return a == b }, true},
}

// simple makes a statement without control flow.
func (g *generator) simple() action {
	a, b, c, d := g.pick(6), g.pick(6), g.pick(6), g.pick(6)
	switch g.pick(15) {
	case 0, 1:
		o := binary32[g.pick(len(binary32))]
		if g.pick(3) == 0 {
			n := g.number32()
			return action{fmt.Sprintf("%s %%r%d, %%r%d, %d;", o.name, d, a, n), func(t *thread) { t.r[d] = o.f(t.r[a], n) }}
		}
		return action{fmt.Sprintf("%s %%r%d, %%r%d, %%r%d;", o.name, d, a, b), func(t *thread) { t.r[d] = o.f(t.r[a], t.r[b]) }}
	case 2:
		o := unary32[g.pick(len(unary32))]
		return action{fmt.Sprintf("%s %%r%d, %%r%d;", o.name, d, a), func(t *thread) { t.r[d] = o.f(t.r[a]) }}
	case 3:
		o := ternary32[g.pick(len(ternary32))]
		return action{fmt.Sprintf("%s %%r%d, %%r%d, %%r%d, %%r%d;", o.name, d, a, b, c), func(t *thread) { t.r[d] = o.f(t.r[a], t.r[b], t.r[c]) }}
	case 4:
		lut := g.pick(256)
		return action{fmt.Sprintf("lop3.b32 %%r%d, %%r%d, %%r%d, %%r%d, %d;", d, a, b, c, lut), func(t *thread) {
			var v uint32
			for i := range 32 {
				k := t.r[a]>>i&1<<2 | t.r[b]>>i&1<<1 | t.r[c]>>i&1
				v |= uint32(lut) >> k & 1 << i
			}
			t.r[d] = v
		}}
	case 5:
		e := g.pick(4)
		a4, b4 := g.pick(4), g.pick(4)
		switch g.pick(5) {
		case 0:
			return action{fmt.Sprintf("mad.wide.s32 %%d%d, %%r%d, %%r%d, %%d%d;", e, a, b, a4), func(t *thread) {
				t.d[e] = uint64(int64(int32(t.r[a]))*int64(int32(t.r[b]))) + t.d[a4]
			}}
		case 1:
			return action{fmt.Sprintf("mov.b64 %%d%d, {%%r%d, %%r%d};", e, a, b), func(t *thread) { t.d[e] = uint64(t.r[b])<<32 | uint64(t.r[a]) }}
		case 2:
			return action{fmt.Sprintf("mov.b64 {%%r%d, _}, %%d%d;", d, a4), func(t *thread) { t.r[d] = uint32(t.d[a4]) }}
		case 3:
			return action{fmt.Sprintf("shr.s64 %%d%d, %%d%d, %%r%d;", e, a4, b), func(t *thread) { t.d[e] = uint64(int64(t.d[a4]) >> t.r[b]) }}
		}
		o := binary64[g.pick(len(binary64))]
		return action{fmt.Sprintf("%s %%d%d, %%d%d, %%d%d;", o.name, e, a4, b4), func(t *thread) { t.d[e] = o.f(t.d[a4], t.d[b4]) }}
	case 6: // carries
		return action{fmt.Sprintf("sub.cc.u32 %%r%d, %%r%d, %%r%d; subc.u32 %%r%d, %%r%d, %%r%d;", d, a, b, (d+1)%6, c, a), func(t *thread) {
			v, borrow := bits.Sub32(t.r[a], t.r[b], 0)
			t.r[d] = v
			t.r[(d+1)%6], _ = bits.Sub32(t.r[c], t.r[a], borrow)
		}}
	case 7, 8:
		x, y, z, w := g.pick(4), g.pick(4), g.pick(4), g.pick(4)
		mode := []string{"rn", "rz", "rm", "rp"}[g.pick(4)]
		ftz, sat := g.pick(4) == 0, g.pick(6) == 0
		mods := ""
		if ftz {
			mods += ".ftz"
		}
		if sat {
			mods += ".sat"
		}
		in := func(f float32) float32 {
			if ftz {
				return flushed(f)
			}
			return f
		}
		out := func(f float32) float32 {
			if sat {
				f = saturated(f)
			}
			return in(f)
		}
		switch g.pick(3) {
		case 0:
			return action{fmt.Sprintf("fma.%s%s.f32 %%f%d, %%f%d, %%f%d, %%f%d;", mode, mods, w, x, y, z), func(t *thread) {
				t.f[w] = out(fmaFloat(in(t.f[x]), in(t.f[y]), in(t.f[z]), mode))
			}}
		case 1:
			return action{fmt.Sprintf("add.%s%s.f32 %%f%d, %%f%d, %%f%d;", mode, mods, w, x, y), func(t *thread) {
				t.f[w] = out(fmaFloat(in(t.f[x]), 1, in(t.f[y]), mode))
			}}
		}
		return action{fmt.Sprintf("mul.%s%s.f32 %%f%d, %%f%d, %%f%d;", mode, mods, w, x, y), func(t *thread) {
			a, b := in(t.f[x]), in(t.f[y])
			p := float32(float64(a) * float64(b))
			if finite(a, b) {
				p = rounded(new(big.Float).SetPrec(2000).Mul(exact(a), exact(b)), mode, p)
			}
			t.f[w] = out(p)
		}}
	case 9:
		x, y, w := g.pick(4), g.pick(4), g.pick(4)
		switch g.pick(6) {
		case 0:
			return action{fmt.Sprintf("div.rn.f32 %%f%d, %%f%d, %%f%d;", w, x, y), func(t *thread) { t.f[w] = t.f[x] / t.f[y] }}
		case 1:
			return action{fmt.Sprintf("sqrt.rn.f32 %%f%d, %%f%d;", w, x), func(t *thread) { t.f[w] = float32(math.Sqrt(float64(t.f[x]))) }}
		case 2:
			return action{fmt.Sprintf("max.f32 %%f%d, %%f%d, %%f%d;", w, x, y), func(t *thread) {
				a, b := t.f[x], t.f[y]
				switch {
				case a != a:
					t.f[w] = b
				case b != b:
					t.f[w] = a
				default:
					t.f[w] = float32(math.Max(float64(a), float64(b)))
				}
			}}
		case 3:
			return action{fmt.Sprintf("cvt.rn.f32.s32 %%f%d, %%r%d;", w, a), func(t *thread) { t.f[w] = float32(int32(t.r[a])) }}
		case 4:
			return action{fmt.Sprintf("cvt.rzi.u32.f32 %%r%d, %%f%d;", d, x), func(t *thread) {
				t.r[d] = uint32(toInteger(math.Trunc(float64(t.f[x])), 0, 0x1p32, 0))
			}}
		}
		return action{fmt.Sprintf("mov.b32 %%f%d, %%r%d;", w, a), func(t *thread) { t.f[w] = math.Float32frombits(t.r[a]) }}
	case 10:
		x, y, z := g.pick(3), g.pick(3), g.pick(3)
		switch g.pick(5) {
		case 0:
			return action{fmt.Sprintf("fma.rn.f64 %%g%d, %%g%d, %%g%d, %%g%d;", z, x, y, z), func(t *thread) { t.g[z] = math.FMA(t.g[x], t.g[y], t.g[z]) }}
		case 1:
			return action{fmt.Sprintf("cvt.f64.f32 %%g%d, %%f%d;", z, a%4), func(t *thread) { t.g[z] = float64(t.f[a%4]) }}
		case 2:
			return action{fmt.Sprintf("cvt.rn.f32.f64 %%f%d, %%g%d;", a%4, z), func(t *thread) { t.f[a%4] = float32(t.g[z]) }}
		case 3:
			return action{fmt.Sprintf("cvt.rni.s64.f64 %%d%d, %%g%d;", a%4, z), func(t *thread) {
				t.d[a%4] = toInteger(math.RoundToEven(t.g[z]), -0x1p63, 0x1p63, 1<<63)
			}}
		}
		return action{fmt.Sprintf("sub.f64 %%g%d, %%g%d, %%g%d;", z, x, y), func(t *thread) { t.g[z] = t.g[x] - t.g[y] }}
	case 11:
		x, y, z := g.pick(3), g.pick(3), g.pick(3)
		switch g.pick(5) {
		case 0:
			return action{fmt.Sprintf("fma.rn.f16 %%h%d, %%h%d, %%h%d, %%h%d;", z, x, y, z), func(t *thread) {
				a, b, c := fromHalf(t.h[x]), fromHalf(t.h[y]), fromHalf(t.h[z])
				t.h[z] = toHalf(a*b + c) // a tie of f16 is exact in f64
			}}
		case 1:
			return action{fmt.Sprintf("cvt.rn.f16.f32 %%h%d, %%f%d;", z, a%4), func(t *thread) { t.h[z] = toHalf(float64(t.f[a%4])) }}
		case 2:
			return action{fmt.Sprintf("cvt.f32.f16 %%f%d, %%h%d;", a%4, z), func(t *thread) { t.f[a%4] = float32(fromHalf(t.h[z])) }}
		case 3:
			return action{fmt.Sprintf("cvt.rn.f16.u32 %%h%d, %%r%d;", z, a), func(t *thread) { t.h[z] = toHalf(float64(t.r[a])) }}
		}
		return action{fmt.Sprintf("mul.f16 %%h%d, %%h%d, %%h%d;", z, x, y), func(t *thread) { t.h[z] = toHalf(fromHalf(t.h[x]) * fromHalf(t.h[y])) }}
	case 12:
		p, q := g.pick(3), g.pick(3)
		o := comparisonsOf[g.pick(len(comparisonsOf))]
		x, y := g.pick(4), g.pick(4)
		return action{fmt.Sprintf("setp.%s.xor.f32 %%p%d, %%f%d, %%f%d, !%%p%d;", o.name, p, x, y, q), func(t *thread) {
			a, b := float64(t.f[x]), float64(t.f[y])
			v := o.f(a, b)
			if a != a || b != b {
				v = o.unordered
			}
			t.p[p] = v != !t.p[q]
		}}
	case 13:
		p := g.pick(3)
		return action{fmt.Sprintf("setp.lt.s32 %%p%d|%%p%d, %%r%d, %%r%d;", p, (p+1)%3, a, b), func(t *thread) {
			v := int32(t.r[a]) < int32(t.r[b])
			t.p[p], t.p[(p+1)%3] = v, !v
		}}
	}
	p := g.pick(3)
	return action{fmt.Sprintf("selp.b32 %%r%d, %%r%d, %%r%d, %%p%d;", d, a, b, p), func(t *thread) {
		if t.p[p] {
			t.r[d] = t.r[a]
		} else {
			t.r[d] = t.r[b]
		}
	}}
}

// statement makes a statement that each thread executes on its own, with guards, branches and loops.
func (g *generator) statement(depth int) action {
	if depth < 3 {
		switch g.pick(8) {
		case 0: // a branch
			p, not := g.pick(3), g.pick(2) == 0
			then, other := g.list(depth+1), g.list(depth+1)
			l := g.labels + 1
			g.labels += 2
			sign := ""
			if not {
				sign = "!"
			}
			text := fmt.Sprintf("@%s%%p%d bra L%d;\n%sbra L%d;\nL%d:\n%sL%d:", sign, p, l, other.text, l+1, l, then.text, l+1)
			return action{text, func(t *thread) {
				if t.p[p] != not {
					then.run(t)
				} else {
					other.run(t)
				}
			}}
		case 1: // a loop that each thread runs a number of times of its own
			a := g.pick(6)
			body := g.list(depth + 1)
			g.labels++
			l := g.labels
			text := fmt.Sprintf("{ .reg .b32 %%n; .reg .pred %%c; and.b32 %%n, %%r%d, 3;\nL%d:\n%ssub.u32 %%n, %%n, 1;\nsetp.ge.s32 %%c, %%n, 0;\n@%%c bra L%d; }", a, l, body.text, l)
			return action{text, func(t *thread) {
				n := int32(t.r[a] & 3)
				for {
					body.run(t)
					if n--; n < 0 {
						return
					}
				}
			}}
		case 2: // a function
			a, d := g.pick(6), g.pick(6)
			text := fmt.Sprintf("{ .param .b32 x; .param .b32 y; st.param.b32 [x], %%r%d; call (y), collatz, (x); ld.param.b32 %%r%d, [y]; }", a, d)
			return action{text, func(t *thread) { t.r[d] = collatz(t.r[a]) }}
		}
	}
	s := g.simple()
	if g.pick(4) == 0 && strings.Count(s.text, ";") == 1 {
		p := g.pick(3)
		return action{fmt.Sprintf("@%%p%d %s", p, s.text), func(t *thread) {
			if t.p[p] {
				s.run(t)
			}
		}}
	}
	return s
}

// collatz is what the function of the random programs computes, by recursion.
func collatz(v uint32) uint32 {
	v &= 15
	if v < 2 {
		return v
	}
	if v%2 == 0 {
		return collatz(v/2) + 1
	}
	return collatz(3*v+1)*2 + v
}

const collatzText = `
.func (.param .b32 out) collatz(.param .b32 in)
{
	.reg .b32 %v, %w, %x; .reg .pred %p, %q;
	.param .b32 a; .param .b32 b;
	ld.param.b32 %v, [in];
	and.b32 %v, %v, 15;
	setp.lt.u32 %p, %v, 2;
	@%p bra SMALL;
	and.b32 %w, %v, 1;
	setp.eq.u32 %q, %w, 0;
	@%q bra EVEN;
	mad.lo.u32 %x, %v, 3, 1;
	st.param.b32 [a], %x;
	call (b), collatz, (a);
	ld.param.b32 %x, [b];
	mad.lo.u32 %v, %x, 2, %v;
	bra SMALL;
EVEN:
	shr.u32 %x, %v, 1;
	st.param.b32 [a], %x;
	call (b), collatz, (a);
	ld.param.b32 %x, [b];
	add.u32 %v, %x, 1;
SMALL:
	st.param.b32 [out], %v;
	ret;
}
`

func (g *generator) list(depth int) action {
	var text strings.Builder
	var actions []action
	for range 1 + g.pick(4) {
		a := g.statement(depth)
		text.WriteString(a.text + "\n")
		actions = append(actions, a)
	}
	return action{text.String(), func(t *thread) {
		for _, a := range actions {
			a.run(t)
		}
	}}
}

// together makes a statement of all threads.
func (g *generator) together() collective {
	a, d := g.pick(6), g.pick(6)
	switch g.pick(6) {
	case 0:
		by := g.pick(32)
		return collective{fmt.Sprintf("shfl.sync.bfly.b32 %%r%d|%%p0, %%r%d, %d, 31, -1;", d, a, by), func(all []*thread) {
			before := valuesOf(all, a)
			for i, t := range all {
				t.r[d], t.p[0] = before[i^by], true
			}
		}}
	case 1:
		by := g.pick(32)
		return collective{fmt.Sprintf("shfl.sync.down.b32 %%r%d|%%p1, %%r%d, %d, 0x181f, -1;", d, a, by), func(all []*thread) {
			before := valuesOf(all, a) // in segments of 8: the clamp is 7 | 0x18
			for i, t := range all {
				ok := i%8+by <= 7
				t.p[1], t.r[d] = ok, before[i]
				if ok {
					t.r[d] = before[i+by]
				}
			}
		}}
	case 2:
		p := g.pick(3)
		return collective{fmt.Sprintf("vote.sync.ballot.b32 %%r%d, %%p%d, -1;", d, p), func(all []*thread) {
			for w := 0; w < len(all); w += 32 {
				var v uint32
				for i := range 32 {
					if all[w+i].p[p] {
						v |= 1 << i
					}
				}
				for i := range 32 {
					all[w+i].r[d] = v
				}
			}
		}}
	case 3:
		return collective{fmt.Sprintf("redux.sync.max.s32 %%r%d, %%r%d, -1;", d, a), func(all []*thread) {
			for w := 0; w < len(all); w += 32 {
				v := int32(math.MinInt32)
				for i := range 32 {
					v = max(v, int32(all[w+i].r[a]))
				}
				for i := range 32 {
					all[w+i].r[d] = uint32(v)
				}
			}
		}}
	case 4: // through shared memory
		by := g.pick(64)
		text := fmt.Sprintf("st.shared.b32 [%%mine], %%r%d; bar.sync 0; xor.b32 %%other, %%mine, %d; ld.shared.b32 %%r%d, [%%other]; bar.sync 0;", a, 4*by, d)
		return collective{text, func(all []*thread) {
			before := valuesOf(all, a)
			for i, t := range all {
				t.r[d] = before[i^by]
			}
		}}
	}
	p := g.pick(3)
	return collective{fmt.Sprintf("bar.red.popc.u32 %%r%d, 0, %%p%d;", d, p), func(all []*thread) {
		var v uint32
		for _, t := range all {
			if t.p[p] {
				v++
			}
		}
		for _, t := range all {
			t.r[d] = v
		}
	}}
}

func valuesOf(all []*thread, r int) []uint32 {
	out := make([]uint32, len(all))
	for i, t := range all {
		out[i] = t.r[r]
	}
	return out
}

const evaluatedThreads = 64

// compareRandom makes a random program and compares both executions of it.
func compareRandom(t testing.TB, r *rand.Rand) {
	g := &generator{Rand: r}
	var body strings.Builder
	var parts []collective
	for range 1 + g.pick(6) {
		var c collective
		if g.pick(3) == 0 {
			c = g.together()
		} else {
			l := g.list(0)
			c = collective{l.text, func(all []*thread) {
				for _, t := range all {
					l.run(t)
				}
			}}
		}
		body.WriteString(c.text + "\n")
		parts = append(parts, c)
	}
	const words = 32
	text := head + collatzText + `
.entry k(.param .u64 memory)
{
	.reg .b32 %r<6>; .reg .b64 %d<4>; .reg .b32 %f<4>; .reg .b64 %g<3>; .reg .b16 %h<3>; .reg .pred %p<3>;
	.reg .b32 %tid, %mine, %other; .reg .b64 %at;
	.shared .align 4 .b8 room[256];
	ld.param.u64 %at, [memory];
	mov.u32 %tid, %tid.x;
	mov.u32 %mine, room;
	mad.lo.u32 %mine, %tid, 4, %mine;
	mad.wide.u32 %at, %tid, 128, %at;
`
	save := ""
	for i := range 6 {
		text += fmt.Sprintf("ld.b32 %%r%d, [%%at+%d];\n", i, 4*i)
		save += fmt.Sprintf("st.b32 [%%at+%d], %%r%d;\n", 4*i, i)
	}
	for i := range 4 {
		text += fmt.Sprintf("ld.b64 %%d%d, [%%at+%d];\nld.b32 %%f%d, [%%at+%d];\n", i, 24+8*i, i, 56+4*i)
		save += fmt.Sprintf("st.b64 [%%at+%d], %%d%d;\nst.b32 [%%at+%d], %%f%d;\n", 24+8*i, i, 56+4*i, i)
	}
	for i := range 3 {
		text += fmt.Sprintf("ld.b64 %%g%d, [%%at+%d];\nld.b16 %%h%d, [%%at+%d];\nsetp.lt.u32 %%p%d, %%r%d, 0x40000000;\n", i, 72+8*i, i, 96+2*i, i, i)
		save += fmt.Sprintf("st.b64 [%%at+%d], %%g%d;\nst.b16 [%%at+%d], %%h%d;\nselp.b32 %%other, 1, 0, %%p%d;\nst.b32 [%%at+%d], %%other;\n", 72+8*i, i, 96+2*i, i, i, 104+4*i)
	}
	text += body.String() + save + "ret;\n}\n"
	memory := make(buffer[uint32], words*evaluatedThreads)
	all := make([]*thread, evaluatedThreads)
	for i := range all {
		th := &thread{}
		at := memory[words*i:]
		for k := range th.r {
			th.r[k] = g.number32()
			at[k] = th.r[k]
		}
		for k := range th.d {
			th.d[k] = uint64(g.number32())<<32 | uint64(g.number32())
			at[6+2*k], at[7+2*k] = uint32(th.d[k]), uint32(th.d[k]>>32)
			th.f[k] = float32(g.NormFloat64() * math.Pow(2, float64(g.pick(20)-10)))
			if g.pick(8) == 0 {
				th.f[k] = math.Float32frombits(g.number32())
			}
			at[14+k] = math.Float32bits(th.f[k])
		}
		for k := range th.g {
			th.g[k] = g.NormFloat64() * 1e5
			bits := math.Float64bits(th.g[k])
			at[18+2*k], at[19+2*k] = uint32(bits), uint32(bits>>32)
			th.h[k] = toHalf(g.NormFloat64())
			th.p[k] = th.r[k] < 0x40000000
		}
		at[24] = uint32(th.h[0]) | uint32(th.h[1])<<16
		at[25] = uint32(th.h[2])
		all[i] = th
	}
	for _, c := range parts {
		c.run(all)
	}
	l := launchOf(1, evaluatedThreads, memory)
	l.Flags = FlagShared
	m, err := Parse(text)
	require.NoError(t, err, text)
	k, err := m.Kernel("k")
	require.NoError(t, err, text)
	report, err := k.Run(l)
	require.NoError(t, err, text)
	require.Empty(t, report.Findings, text)
	for i, th := range all {
		at := memory[words*i:]
		same := func(name string, want, got uint64, isNaN bool) {
			if want != got && !isNaN {
				t.Fatalf("thread %d: %s is %#x, not %#x, in\n%s", i, name, got, want, body.String())
			}
		}
		for k := range th.r {
			same(fmt.Sprintf("%%r%d", k), uint64(th.r[k]), uint64(at[k]), false)
		}
		for k := range th.d {
			same(fmt.Sprintf("%%d%d", k), th.d[k], uint64(at[6+2*k])|uint64(at[7+2*k])<<32, false)
			got := math.Float32frombits(at[14+k])
			same(fmt.Sprintf("%%f%d", k), uint64(math.Float32bits(th.f[k])), uint64(at[14+k]), th.f[k] != th.f[k] && got != got)
		}
		for k := range th.g {
			bits := uint64(at[18+2*k]) | uint64(at[19+2*k])<<32
			same(fmt.Sprintf("%%g%d", k), math.Float64bits(th.g[k]), bits, th.g[k] != th.g[k] && math.IsNaN(math.Float64frombits(bits)))
			h := uint16(at[24+k/2] >> (16 * (k % 2)))
			same(fmt.Sprintf("%%h%d", k), uint64(th.h[k]), uint64(h), fromHalf(th.h[k]) != fromHalf(th.h[k]) && fromHalf(h) != fromHalf(h))
			same(fmt.Sprintf("%%p%d", k), map[bool]uint64{true: 1}[th.p[k]], uint64(at[26+k]), false)
		}
	}
}

// TestRandomPrograms compares random programs with the second evaluator, with every set of instructions.
func TestRandomPrograms(t *testing.T) {
	best := InstructionSet()
	defer UseInstructionSet(best)
	for _, set := range []string{"base", "avx2", "avx512"} {
		if !UseInstructionSet(set) {
			continue
		}
		count := 150
		if set == best {
			count = 1500
		}
		if testing.Short() {
			count = 50
		}
		for seed := range count {
			compareRandom(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		}
	}
}

// FuzzExecute searches for programs that the two evaluators disagree about.
func FuzzExecute(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { compareRandom(t, rand.New(rand.NewPCG(a, b))) })
}
