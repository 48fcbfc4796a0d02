/* The lane loops: one loop over lanes for each line of lanes.def, compiled once for each instruction set by
 * lanes_*.c, which define ISA (a name) and TARGET (an attribute of functions). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "program.h"
#include "lanetable.h"

#if defined(__clang__)
#pragma clang fp contract(off)
#pragma clang diagnostic ignored "-Wpass-failed" /* some loops have no vectors */
#define LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#define LOOP _Pragma("GCC ivdep")
#endif

/* A loop over n lanes: the inner one has a fixed length, so that it becomes straight code with vectors. */
#define LANES_OF(n) \
	for (size_t i0 = 0; i0 < (size_t)(n); i0 += LANES) \
		LOOP for (size_t j = 0; j < LANES; j++)

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define HELPER static inline __attribute__((always_inline, unused))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef struct {
	u64 part[2];
} u128;

HELPER f32 as_f32(u32 v) { f32 f; memcpy(&f, &v, 4); return f; }
HELPER u32 of_f32(f32 f) { u32 v; memcpy(&v, &f, 4); return v; }
HELPER f64 as_f64(u64 v) { f64 f; memcpy(&f, &v, 8); return f; }
HELPER u64 of_f64(f64 f) { u64 v; memcpy(&v, &f, 8); return v; }

HELPER s32 clamp_s32(s64 v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (s32)v; }
HELPER s64 sign24(s32 v) { return (s32)((u32)v << 8) >> 8; }
HELPER s64 mulhi_s64(s64 a, s64 b) { return (s64)((__int128)a * b >> 64); }
HELPER u64 mulhi_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
HELPER s64 div_s64(s64 a, s64 b) { return b == 0 ? -1 : b == -1 ? (s64)-(u64)a : a / b; }

/* The table's bit 4a + 2b + c is the result for the bits a, b and c. */
HELPER u32 lop3(u32 a, u32 b, u32 c, s64 table) {
	u32 t = (u32)table, r = 0;
	for (u32 k = 0; k < 8; k++) {
		u32 on = -(t >> k & 1);
		r |= on & (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
	}
	return r;
}

HELPER u32 dp4a(u32 a, u32 b, u32 c, int sa, int sb) {
	for (int i = 0; i < 32; i += 8) {
		s32 x = sa ? (s8)(a >> i) : (u8)(a >> i), y = sb ? (s8)(b >> i) : (u8)(b >> i);
		c += (u32)(x * y);
	}
	return c;
}

HELPER u32 dp2a(u32 a, u32 b, u32 c, int sa, int sb) {
	for (int i = 0; i < 2; i++) {
		s32 x = sa ? (s16)(a >> 16 * i) : (u16)(a >> 16 * i), y = sb ? (s8)(b >> 8 * i) : (u8)(b >> 8 * i);
		c += (u32)(x * y);
	}
	return c;
}

HELPER u32 popc_4(u32 v) {
	v -= v >> 1 & 0x55555555;
	v = (v & 0x33333333) + (v >> 2 & 0x33333333);
	return ((v + (v >> 4)) & 0x0f0f0f0f) * 0x01010101u >> 24;
}
HELPER u32 popc_8(u64 v) { return popc_4((u32)v) + popc_4((u32)(v >> 32)); }
HELPER u32 clz_4(u32 v) {
	v |= v >> 1, v |= v >> 2, v |= v >> 4, v |= v >> 8, v |= v >> 16;
	return 32 - popc_4(v);
}
HELPER u32 clz_8(u64 v) { return v >> 32 ? clz_4((u32)(v >> 32)) : 32 + clz_4((u32)v); }
HELPER u32 brev_4(u32 v) {
	v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
	v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
	v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
	v = (v >> 8 & 0x00ff00ff) | (v & 0x00ff00ff) << 8;
	return v >> 16 | v << 16;
}
HELPER u64 brev_8(u64 v) { return (u64)brev_4((u32)v) << 32 | brev_4((u32)(v >> 32)); }
/* Position of the highest bit, or with `shift` how far it is from the top. */
HELPER u32 bfind(u64 v, u32 top, s64 shift) {
	u32 at = 63 - clz_8(v);
	return v == 0 ? ~0u : shift ? top - at : at;
}
HELPER u32 bmsk(u32 at, u32 n) { return at > 31 ? 0 : (n > 31 ? ~0u : (1u << n) - 1) << at; }
HELPER u32 szext(u32 v, u32 n, int sign) {
	if (n > 31) return v;
	u32 low = v & ((1u << n) - 1);
	return sign && n > 0 && v >> (n - 1) & 1 ? low | ~0u << n : low;
}
HELPER u64 bfe(u64 v, u32 at, u32 n, u32 width, int sign) {
	at &= 255, n &= 255;
	u64 fill = sign && n > 0 && v >> (at + n - 1 < width - 1 ? at + n - 1 : width - 1) & 1 ? ~0ull : 0;
	if (width == 32) v &= 0xffffffff;
	u64 r = at < width ? v >> at : 0;
	if (fill && at > 0) r |= at < width ? fill << (width - at) : fill;
	if (n >= 64) return n == 0 ? 0 : r;
	u64 mask = (1ull << n) - 1;
	return n == 0 ? 0 : (r & mask) | (fill & ~mask);
}
HELPER u64 bfi(u64 a, u64 b, u32 at, u32 n, u32 width) {
	at &= 255, n &= 255;
	if (at >= width) return b;
	u64 mask = (n >= 64 ? ~0ull : (1ull << n) - 1) << at;
	return (b & ~mask) | (a << at & mask);
}
/* The position of the n-th bit that is set, counted from `base` upwards (n > 0) or downwards (n < 0). */
HELPER u32 fns(u32 mask, u32 base, s32 n) {
	if (n == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
	for (s64 at = base; at >= 0 && at < 32; at += n > 0 ? 1 : -1) {
		if (mask >> at & 1 && (n > 0 ? --n : ++n) == 0) return (u32)at;
	}
	return ~0u;
}
HELPER u32 prmt(u32 a, u32 b, u32 choice) {
	u64 v = (u64)b << 32 | a;
	u32 r = 0;
	for (int i = 0; i < 4; i++) {
		u32 k = choice >> 4 * i, byte = (u32)(v >> 8 * (k & 7)) & 255;
		if (k & 8) byte = byte & 128 ? 255 : 0;
		r |= byte << 8 * i;
	}
	return r;
}
HELPER u32 prmt_b4e(u32 a, u32 b, u32 k) {
	u64 v = (u64)b << 32 | a;
	u32 r = 0;
	for (u32 i = 0; i < 4; i++) r |= ((u32)(v >> 8 * ((k - i) & 7)) & 255) << 8 * i;
	return r;
}
HELPER u32 prmt_ecl(u32 a, u32 k) {
	u32 r = 0;
	for (u32 i = 0; i < 4; i++) r |= (a >> 8 * (i > k ? i : k) & 255) << 8 * i;
	return r;
}
HELPER u32 prmt_ecr(u32 a, u32 k) {
	u32 r = 0;
	for (u32 i = 0; i < 4; i++) r |= (a >> 8 * (i < k ? i : k) & 255) << 8 * i;
	return r;
}

/* One NaN loses; -0 is less than +0. */
HELPER f32 min_f32(f32 a, f32 b) {
	u32 both = of_f32(a) | of_f32(b);
	f32 m = a == b ? as_f32(both) : a < b ? a : b;
	return a != a ? b : b != b ? a : m;
}
HELPER f32 max_f32(f32 a, f32 b) {
	u32 both = of_f32(a) & of_f32(b);
	f32 m = a == b ? as_f32(both) : a > b ? a : b;
	return a != a ? b : b != b ? a : m;
}

/* Rounding to odd keeps what a second rounding needs to know: the last bit is set where bits were lost. */
HELPER f32 f64_to_odd(f64 v) {
	f32 f = (f32)v;
	u32 bits = of_f32(f);
	f64 back = f;
	if (back == v || v != v) return f;
	if (__builtin_fabsf(f) == INFINITY) return __builtin_fabs(v) == INFINITY ? f : as_f32((bits & 0x80000000) | 0x7f7fffff);
	if (bits & 1) return f;
	int up = back < v; /* the value lies above f */
	return as_f32(bits == 0 || bits == 0x80000000 ? (v < 0 ? 0x80000001 : 1) : up == (back > 0) ? bits + 1 : bits - 1);
}
HELPER f32 s64_to_odd(s64 v) {
	u64 m = v < 0 ? -(u64)v : (u64)v;
	u32 lead = 64 - clz_8(m), drop = lead > 30 ? lead - 30 : 0;
	u64 kept = m >> drop << drop;
	if (kept != m) kept |= 1ull << drop;
	f32 f = f64_to_odd((f64)kept);
	return v < 0 ? -f : f;
}
HELPER f32 u64_to_odd(u64 v) {
	u32 lead = 64 - clz_8(v), drop = lead > 30 ? lead - 30 : 0;
	u64 kept = v >> drop << drop;
	if (kept != v) kept |= 1ull << drop;
	return f64_to_odd((f64)kept);
}
/* a * b + c of numbers that were 16 bits wide: the product is exact in f64. */
HELPER f32 fma_to_odd(f32 a, f32 b, f32 c) {
	f64 p = (f64)a * b, q = c, s = p + q;
	f64 t = s - p, lost = (p - (s - t)) + (q - t);
	u64 bits = of_f64(s);
	if (lost != 0 && lost == lost && !(bits & 1)) {
		s = as_f64((lost > 0) == (s > 0) ? bits + 1 : bits - 1);
	}
	return f64_to_odd(s);
}

HELPER f32 f16_to_f32(u16 h) {
	u32 low = (u32)(h & 0x7fff) << 13;
	u32 bits = low >= 0x7c00u << 13 ? low | 0x7f800000 : of_f32(as_f32(low) * 0x1p112f);
	return as_f32(bits | (u32)(h & 0x8000) << 16);
}
HELPER f32 bf16_to_f32(u16 h) { return as_f32((u32)h << 16); }
HELPER u16 f32_to_f16(f32 f) {
	u32 u = of_f32(f), sign = u >> 16 & 0x8000;
	u &= 0x7fffffff;
	u32 normal = (u - 0x38000000 + 0xfff + (u >> 13 & 1)) >> 13;
	u32 small = of_f32(as_f32(u) + 0.5f) - 0x3f000000;
	u32 r = u < 0x38800000 ? small : u >= 0x477ff000 ? 0x7c00 : normal;
	return u > 0x7f800000 ? 0x7fff : r | sign;
}
HELPER u16 f32_to_bf16(f32 f) {
	u32 u = of_f32(f);
	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
/* The nearest value, then one step where it lies on the wrong side. */
HELPER int wrong_side(f32 got, f32 f, int how) {
	if (got == f || f != f) return 0;
	return how == ROUND_ZERO ? __builtin_fabsf(got) > __builtin_fabsf(f) : how == ROUND_DOWN ? got > f : got < f;
}
HELPER u16 step(u16 h, f32 f, int how) { /* by one value away from the wrong side */
	int down = how == ROUND_DOWN || (how == ROUND_ZERO && f > 0);
	if ((h & 0x7fff) == 0) return down ? 0x8001 : 0x0001;
	return ((h & 0x8000) == 0) == down ? h - 1 : h + 1;
}
HELPER u16 f32_to_f16_directed(f32 f, int how) {
	u16 h = f32_to_f16(f);
	return wrong_side(f16_to_f32(h), f, how) ? step(h, f, how) : h;
}
HELPER u16 f32_to_bf16_directed(f32 f, int how) {
	u16 h = f32_to_bf16(f);
	return wrong_side(bf16_to_f32(h), f, how) ? step(h, f, how) : h;
}
/* ROUND_UP stands for ties away from zero. */
HELPER u32 to_tf32(u32 u, int how) {
	if ((u & 0x7f800000) == 0x7f800000) return (u & 0x7fffff) ? 0x7fffffff : u;
	if (how == ROUND_UP) u += 0x1000;
	if (how == ROUND_NEAREST) u += 0xfff + (u >> 13 & 1);
	return u & ~0x1fffu;
}
/* Eight bits, saturating to the largest finite value. */
HELPER u32 f32_to_f8(f32 f, int mantissa, int bias, u32 largest, f32 bound) {
	u32 sign = of_f32(f) >> 24 & 0x80;
	f32 m = __builtin_fabsf(f);
	if (m != m) return 0x7f;
	if (m >= bound) return sign | largest;
	int e = (int)(of_f32(m) >> 23) - 127;
	if (e < 1 - bias) e = 1 - bias;
	f32 ulp = as_f32((u32)(e - mantissa + 127) << 23);
	u32 q = (u32)rintf(m / ulp); /* in units of the last place; 2^mantissa and more carries into the exponent */
	u32 r = ((u32)(e + bias - 1) << mantissa) + q;
	return sign | (r > largest ? largest : r);
}
HELPER u32 f32_to_e4m3(f32 f) { return f32_to_f8(f, 3, 7, 0x7e, 448); }
HELPER u32 f32_to_e5m2(f32 f) { return f32_to_f8(f, 2, 15, 0x7b, 57344); }
HELPER u16 e4m3_to_f16(u32 v) {
	u32 sign = (v & 0x80) << 8, low = v & 0x7f;
	if (low == 0x7f) return 0x7fff;
	return sign | f32_to_f16(as_f32(low << 20) * 0x1p120f);
}

/* 2^x: the integral part goes into the exponent, the rest is a polynomial in double precision. */
HELPER f32 ex2_f32(f32 x) {
	const f64 magic = 0x1.8p52, ln2 = 0x1.62e42fefa39efp-1;
	f64 v = x < -160 ? -160 : x > 160 ? 160 : (f64)x;
	f64 t = v + magic, k = t - magic, r = (v - k) * ln2;
	f64 p = 1 + r * (1 + r * (1. / 2 + r * (1. / 6 + r * (1. / 24 + r * (1. / 120 + r * (1. / 720 + r * (1. / 5040)))))));
	f64 scale = as_f64((of_f64(t) + 1023) << 52);
	return x != x ? x : (f32)(p * scale);
}
/* log2 by the series of the inverse hyperbolic tangent. */
HELPER f32 lg2_f32(f32 x) {
	u64 u = of_f64((f64)x);
	f64 e = (f64)((s32)(u >> 52 & 2047) - 1023), m = as_f64((u & 0xfffffffffffff) | 0x3ffull << 52);
	int big = m > 0x1.6a09e667f3bcdp+0;
	m = big ? m * 0.5 : m;
	e = big ? e + 1 : e;
	f64 t = (m - 1) / (m + 1), q = t * t;
	f64 r = e + 0x1.71547652b82fep+1 * t * (1 + q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q * (1. / 9 + q * (1. / 11))))));
	return x != x || x < 0 ? NAN : x == 0 ? -INFINITY : x > FLT_MAX ? INFINITY : (f32)r;
}

#define LANE_HEAD(name, D) \
	TARGET static void CAT(lane_, name)(const Insn *in, int n, void *dp, const void *ap, const void *bp, const void *cp, \
	                                    const void *ep) { \
		const s64 K = in->imm; \
		D *d = __builtin_assume_aligned(dp, 32); \
		(void)K, (void)ap, (void)bp, (void)cp, (void)ep;
#define LANE_LOOP(body) \
	LANES_OF(n) { \
		const size_t i = i0 + j; \
		body; \
	} \
	}
#define LANE_IN(T, v, V) const T *v = __builtin_assume_aligned(v##p, 32);

#define LANE1(name, D, TA, expr) \
	LANE_HEAD(name, D) LANE_IN(TA, a, A) LANE_LOOP(TA A = a[i]; (void)A; d[i] = (expr))
#define LANE2(name, D, TA, TB, expr) \
	LANE_HEAD(name, D) LANE_IN(TA, a, A) LANE_IN(TB, b, B) LANE_LOOP(TA A = a[i]; TB B = b[i]; (void)A; (void)B; d[i] = (expr))
#define LANE3(name, D, TA, TB, TC, expr) \
	LANE_HEAD(name, D) \
	LANE_IN(TA, a, A) LANE_IN(TB, b, B) LANE_IN(TC, c, C) LANE_LOOP(TA A = a[i]; TB B = b[i]; TC C = c[i]; (void)A; (void)B; d[i] = (expr))
#define LANE4(name, D, TA, TB, TC, TE, expr) \
	LANE_HEAD(name, D) \
	LANE_IN(TA, a, A) LANE_IN(TB, b, B) LANE_IN(TC, c, C) LANE_IN(TE, e, E) \
	LANE_LOOP(TA A = a[i]; TB B = b[i]; TC C = c[i]; TE E = e[i]; d[i] = (expr))
#include "lanes.def"
#undef LANE1
#undef LANE2
#undef LANE3
#undef LANE4

/* ---- what the executor needs besides the loops of instructions ---- */

#define ADDRESS_LOOP(expr) \
	LANES_OF(n) { \
		const size_t i = i0 + j; \
		u64 v = (expr) + offset; \
		out[i] = v; \
		low = v < low ? v : low; \
		high = v > high ? v : high; \
		bits |= v; \
		differs |= (v - (u64)(u32)i * step) ^ first; \
	}

TARGET static Span CAT(addresses_, ISA)(u64 *out, const void *base, int base_size, u64 offset, int n, int stride) {
	u64 low = ~0ull, high = 0, bits = 0, differs = 0, step = (u64)stride;
	if (base_size == 8) {
		const u64 *b = __builtin_assume_aligned(base, 32);
		u64 first = b[0] + offset;
		ADDRESS_LOOP(b[i])
	} else if (base_size == 4) {
		const u32 *b = __builtin_assume_aligned(base, 32);
		u64 first = b[0] + offset;
		ADDRESS_LOOP((u64)b[i])
	} else {
		for (int i = 0; i < n; i++) out[i] = offset;
		low = high = bits = offset;
		differs = 1;
	}
	return (Span){low, high, bits, differs == 0};
}

#define BLEND_LOOP(T) \
	{ \
		T *to = d; \
		const T *from = t; \
		LANES_OF(n) { \
			const size_t i = i0 + j; \
			to[i] = mask[i] ? from[i] : to[i]; \
		} \
	}

TARGET static void CAT(blend_, ISA)(void *d, const void *t, const u8 *restrict mask, int n, int size) {
	switch (size) {
	case 1: BLEND_LOOP(u8) break;
	case 2: BLEND_LOOP(u16) break;
	case 4: BLEND_LOOP(u32) break;
	case 8: BLEND_LOOP(u64) break;
	default: BLEND_LOOP(u128)
	}
}

TARGET static int CAT(masked_, ISA)(u8 *out, const u8 *mask, const u8 *p, int invert, int n) {
	int count = 0;
	for (size_t i0 = 0; i0 < (size_t)n; i0 += LANES) {
		u8 some = 0; /* at most 32 */
		LOOP for (size_t j = 0; j < LANES; j++) {
			u8 v = mask[i0 + j] & (p[i0 + j] ^ (u8)invert);
			out[i0 + j] = v;
			some += v;
		}
		count += some;
	}
	return count;
}

typedef f32 f32x8 __attribute__((vector_size(32), aligned(4)));

/* A product and a sum for each element: a fused one would differ between instruction sets. */
TARGET static void CAT(multiply_, ISA)(f32 *c, const f32 *a, const f32 *b, int rows, int k) {
	for (int r = 0; r < rows; r += 8) {
		f32x8 s[8];
		for (int y = 0; y < 8; y++) s[y] = *(const f32x8 *)(c + (r + y) * 8);
		const f32 *ar = a + r * k;
		for (int q = 0; q < k; q++) {
			f32x8 bq = *(const f32x8 *)(b + q * 8);
			s[0] += ar[q] * bq;
			s[1] += ar[k + q] * bq;
			s[2] += ar[2 * k + q] * bq;
			s[3] += ar[3 * k + q] * bq;
			s[4] += ar[4 * k + q] * bq;
			s[5] += ar[5 * k + q] * bq;
			s[6] += ar[6 * k + q] * bq;
			s[7] += ar[7 * k + q] * bq;
		}
		for (int y = 0; y < 8; y++) *(f32x8 *)(c + (r + y) * 8) = s[y];
	}
}

/* The greatest of n offsets, and all of them or-ed. */
TARGET static int CAT(shadow_read_, ISA)(const u32 *writer, u32 *reader, int32_t *reader_pc, int n, u32 now, int32_t pc) {
	return shadow_read(writer, reader, reader_pc, n, now, pc);
}

TARGET static int CAT(shadow_used_, ISA)(const u32 *writer, const u32 *reader, int n, u32 now) {
	u32 used = 0;
	for (int i = 0; i < n; i++) used |= (u32)shadow_meets(writer[i], now) | (u32)shadow_meets(reader[i], now);
	return used != 0;
}

TARGET static u32 CAT(reach_, ISA)(const u32 *base, int n, u32 *bits) {
	u32 most = 0, any = 0;
	base = __builtin_assume_aligned(base, 32);
	LANES_OF(n) {
		const size_t i = i0 + j;
		most = base[i] > most ? base[i] : most;
		any |= base[i];
	}
	*bits = any;
	return most;
}

TARGET static void CAT(gather_, ISA)(u32 *d, const u8 *p, const u32 *base, int n) {
	for (int i = 0; i < n; i += 8) {
		for (int k = 0; k < 8; k++) memcpy(&d[i + k], p + base[i + k], 4);
	}
}

typedef u32 u32x4 __attribute__((vector_size(16), aligned(4)));
#if defined(__clang__) || __GNUC__ >= 12
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (u32x4){__VA_ARGS__})
#endif

/* Four rows of four words become four columns. */
#define TRANSPOSE(r0, r1, r2, r3) \
	u32x4 t0 = MIX(r0, r1, 0, 4, 1, 5), t1 = MIX(r0, r1, 2, 6, 3, 7), t2 = MIX(r2, r3, 0, 4, 1, 5), t3 = MIX(r2, r3, 2, 6, 3, 7); \
	u32x4 c0 = MIX(t0, t2, 0, 1, 4, 5), c1 = MIX(t0, t2, 2, 3, 6, 7), c2 = MIX(t1, t3, 0, 1, 4, 5), c3 = MIX(t1, t3, 2, 3, 6, 7);

#define SPLIT(r0, r1, r2, r3) \
	{ \
		u32x4 v0 = *(const u32x4 *)(r0), v1 = *(const u32x4 *)(r1), v2 = *(const u32x4 *)(r2), v3 = *(const u32x4 *)(r3); \
		TRANSPOSE(v0, v1, v2, v3) \
		*(u32x4 *)&d0[i] = c0, *(u32x4 *)&d1[i] = c1, *(u32x4 *)&d2[i] = c2, *(u32x4 *)&d3[i] = c3; \
	}

TARGET static void CAT(gather4_, ISA)(u32 *d0, u32 *d1, u32 *d2, u32 *d3, const u8 *p, const u32 *base, int n) {
	for (int i = 0; i < n; i += 4) SPLIT(p + base[i], p + base[i + 1], p + base[i + 2], p + base[i + 3])
}
TARGET static void CAT(split_, ISA)(u32 *d0, u32 *d1, u32 *d2, u32 *d3, const u32 *p, int n) {
	int i = 0;
	for (; i + 4 <= n; i += 4) SPLIT(p + 4 * i, p + 4 * i + 4, p + 4 * i + 8, p + 4 * i + 12)
	for (; i < n; i++) d0[i] = p[4 * i], d1[i] = p[4 * i + 1], d2[i] = p[4 * i + 2], d3[i] = p[4 * i + 3];
}
TARGET static void CAT(join_, ISA)(u32 *p, const u32 *d0, const u32 *d1, const u32 *d2, const u32 *d3, int n) {
	int i = 0;
	for (; i + 4 <= n; i += 4) {
		u32x4 v0 = *(const u32x4 *)&d0[i], v1 = *(const u32x4 *)&d1[i], v2 = *(const u32x4 *)&d2[i], v3 = *(const u32x4 *)&d3[i];
		TRANSPOSE(v0, v1, v2, v3)
		u32x4 *to = (u32x4 *)(p + 4 * i);
		to[0] = c0, to[1] = c1, to[2] = c2, to[3] = c3;
	}
	for (; i < n; i++) p[4 * i] = d0[i], p[4 * i + 1] = d1[i], p[4 * i + 2] = d2[i], p[4 * i + 3] = d3[i];
}

TARGET static void CAT(widen_f16_, ISA)(f32 *out, const u16 *in, int n) {
	LOOP for (int i = 0; i < n; i++) out[i] = f16_to_f32(in[i]);
}
TARGET static void CAT(widen_bf16_, ISA)(f32 *out, const u16 *in, int n) {
	LOOP for (int i = 0; i < n; i++) out[i] = bf16_to_f32(in[i]);
}
TARGET static void CAT(narrow_f16_, ISA)(u16 *out, const f32 *in, int n) {
	LOOP for (int i = 0; i < n; i++) out[i] = f32_to_f16(in[i]);
}

const LaneTable CAT(ptx_lanes_, ISA) = {
	{
#define LANE1(name, ...) CAT(lane_, name),
#define LANE2 LANE1
#define LANE3 LANE1
#define LANE4 LANE1
#include "lanes.def"
#undef LANE1
#undef LANE2
#undef LANE3
#undef LANE4
	},
	CAT(addresses_, ISA), CAT(blend_, ISA), CAT(masked_, ISA), CAT(multiply_, ISA),
	CAT(reach_, ISA), CAT(gather_, ISA), CAT(gather4_, ISA), CAT(split_, ISA), CAT(join_, ISA),
	CAT(shadow_read_, ISA), CAT(shadow_used_, ISA),
	CAT(widen_f16_, ISA), CAT(widen_bf16_, ISA), CAT(narrow_f16_, ISA),
};
