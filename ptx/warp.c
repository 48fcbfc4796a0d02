/* Instructions that the lanes of a warp execute together: shuffles, votes, matrix products. */
#include "context.h"

enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNIFORM, VOTE_BALLOT };
enum { REDUX_ADD, REDUX_MIN_S, REDUX_MAX_S, REDUX_MIN_U, REDUX_MAX_U, REDUX_AND, REDUX_OR, REDUX_XOR };
enum { MATCH_ANY, MATCH_ALL };
/* Elements of matrices. */
enum { E_F16, E_BF16, E_TF32, E_F64, E_S8, E_U8, E_S4, E_U4, E_B1, E_F32, E_S32 };
static const uint8_t element_bits[] = {16, 16, 32, 64, 8, 8, 4, 4, 1, 32, 32};

/* For each lane where it takes its value from, and whether that is within its segment. */
#define SOURCES(expr, test) \
	for (int32_t i = 0; i < 32; i++) { \
		int32_t by = (int32_t)(b[i] & 31), clamp = (int32_t)(c[i] & 31), segment = (int32_t)(c[i] >> 8 & 31), first = i & segment; \
		int32_t last = first | (clamp & ~segment), at = (expr); \
		int32_t within = (test); \
		(void)last; \
		from[i] = within ? at : i; \
		ok[i] = (uint8_t)within; \
	} \
	break;

static void shuffle(const Insn *in, uint32_t *d, uint8_t *p, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t lanes) {
	int32_t from[32];
	uint32_t out[32];
	uint8_t ok[32];
	switch (in->mode) {
	case SHUFFLE_UP: SOURCES(i - by, at >= last)
	case SHUFFLE_DOWN: SOURCES(i + by, at <= last)
	case SHUFFLE_BUTTERFLY: SOURCES(i ^ by, at <= last)
	default: SOURCES(first | (by & ~segment), at <= last)
	}
	if (lanes == ~0u) {
		for (int i = 0; i < 32; i++) out[i] = a[from[i]];
		memcpy(d, out, sizeof out);
		if (p) memcpy(p, ok, sizeof ok);
		return;
	}
	for (int i = 0; i < 32; i++) out[i] = a[lanes >> from[i] & 1 ? from[i] : i];
	for (int i = 0; i < 32; i++) {
		if (!(lanes >> i & 1)) continue;
		d[i] = out[i];
		if (p) p[i] = ok[i];
	}
}

static uint32_t reduce(int mode, const uint32_t *a, uint32_t lanes) {
	uint32_t r = a[__builtin_ctz(lanes)];
	for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) {
		uint32_t v = a[__builtin_ctz(rest)];
		switch (mode) {
		case REDUX_ADD: r += v; break;
		case REDUX_MIN_S: r = (int32_t)v < (int32_t)r ? v : r; break;
		case REDUX_MAX_S: r = (int32_t)v > (int32_t)r ? v : r; break;
		case REDUX_MIN_U: r = v < r ? v : r; break;
		case REDUX_MAX_U: r = v > r ? v : r; break;
		case REDUX_AND: r &= v; break;
		case REDUX_OR: r |= v; break;
		default: r ^= v;
		}
	}
	return r;
}

/* ---- matrices ---- */

enum { MOST_K = 64, MOST_N = 32, MOST_M = 32 };

typedef struct {
	float a[MOST_M * MOST_K], b[MOST_K * MOST_N], c[MOST_M * MOST_N];
} Matrices;

/* The elements of a register row of 32 lanes as f32, which holds all of them but those of f64 and b1 exactly. */
static void widen_row(const Context *x, int kind, const uint32_t *row, float *out) {
	switch (kind) {
	case E_F16: x->table->widen_f16(out, (const uint16_t *)row, 64); break;
	case E_BF16: x->table->widen_bf16(out, (const uint16_t *)row, 64); break;
	case E_TF32: /* the low bits take no part */
		for (int i = 0; i < 32; i++) {
			uint32_t v = row[i] & ~0x1fffu;
			memcpy(&out[i], &v, 4);
		}
		break;
	case E_F32: memcpy(out, row, 128); break;
	case E_S8: for (int i = 0; i < 128; i++) out[i] = ((const int8_t *)row)[i]; break;
	case E_U8: for (int i = 0; i < 128; i++) out[i] = ((const uint8_t *)row)[i]; break;
	case E_S4: for (int i = 0; i < 256; i++) out[i] = (float)((int32_t)(row[i / 8] << (28 - i % 8 * 4)) >> 28); break;
	default: for (int i = 0; i < 256; i++) out[i] = (float)(row[i / 8] >> i % 8 * 4 & 15);
	}
}

static int32_t add_s32(int32_t c, int64_t sum, int saturate) {
	int64_t v = c + sum;
	if (!saturate) return (int32_t)(uint32_t)v;
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

#define ROW(k) ((uint32_t *)(reg(x, f, slots[k])) + warp * 32)
#define ROW64(k) ((double *)(void *)(reg(x, f, slots[k])) + warp * 32)

/* D = A B + C for M x 8 x K. Register r of A holds, for lane 4 g + t, the elements t E and on of row g + 8 (r & 1)
 * in the columns of block r >> 1; of B those of column g; C and D hold pairs of a row. */
static void multiply(Context *x, const Insn *in, Frame *f, int warp) {
	const int32_t *row = x->program->table + in->x, *slots = row + 4;
	int nd = row[0], na = row[2], nb = row[3], nc = row[1] - na - nb;
	int m = (int)(in->imm & 255), k = (int)(in->imm >> 8 & 0xffff), saturate = (int)(in->imm >> 24 & 1), is_and = (int)(in->imm >> 25 & 1);
	int a_kind = in->mode, b_kind = in->round, c_kind = in->pair, d_kind = in->mods;
	const int32_t *a = slots + nd, *b = a + na, *c = b + nb;
	if (a_kind == E_F64) {
		double r[64];
		for (int g = 0; g < 8; g++) {
			for (int n = 0; n < 8; n++) {
				double s = ((double *)(void *)reg(x, f, c[n & 1]))[warp * 32 + g * 4 + n / 2];
				for (int q = 0; q < 4; q++) {
					s = __builtin_fma(((double *)(void *)reg(x, f, a[0]))[warp * 32 + g * 4 + q], ((double *)(void *)reg(x, f, b[0]))[warp * 32 + n * 4 + q], s);
				}
				r[g * 8 + n] = s;
			}
		}
		for (int i = 0; i < 64; i++) ROW64(i & 1)[i / 2] = r[i];
		return;
	}
	if (a_kind == E_B1) {
		int32_t r[16 * 8];
		for (int y = 0; y < m; y++) {
			for (int n = 0; n < 8; n++) {
				uint32_t sum = 0;
				for (int w = 0; w < k / 32; w++) { /* word w of row y: lane w % 4, block w / 4 */
					uint32_t va = ((uint32_t *)reg(x, f, a[m == 16 ? w / 4 * 2 + y / 8 : w / 4]))[warp * 32 + y % 8 * 4 + w % 4];
					uint32_t vb = ((uint32_t *)reg(x, f, b[w / 4]))[warp * 32 + n * 4 + w % 4];
					sum += (uint32_t)__builtin_popcount(is_and ? va & vb : va ^ vb);
				}
				r[y * 8 + n] = (int32_t)(((uint32_t *)reg(x, f, c[y / 8 * 2 + n % 2]))[warp * 32 + y % 8 * 4 + n / 2] + sum);
			}
		}
		for (int y = 0; y < m; y++) {
			for (int n = 0; n < 8; n++) ROW(y / 8 * 2 + n % 2)[y % 8 * 4 + n / 2] = (uint32_t)r[y * 8 + n];
		}
		return;
	}
	Matrices *t = (Matrices *)(void *)x->matrices;
	float wide[256];
	int width = 4 * 32 / element_bits[a_kind]; /* columns of a block */
	for (int r = 0; r < na; r++) {
		widen_row(x, a_kind, (uint32_t *)reg(x, f, a[r]) + warp * 32, wide);
		int top = m == 16 ? 8 * (r & 1) : 0, left = (m == 16 ? r >> 1 : r) * width;
		float *to = &t->a[top * k + left];
		if (width == 8) for (int g = 0; g < 8; g++) memcpy(&to[g * k], &wide[g * 8], 32);
		else for (int g = 0; g < 8; g++) memcpy(&to[g * k], &wide[g * width], (size_t)width * sizeof(float));
	}
	for (int r = 0; r < nb; r++) {
		widen_row(x, b_kind, (uint32_t *)reg(x, f, b[r]) + warp * 32, wide);
		float *to = &t->b[r * width * 8];
		if (width == 8) {
			for (int q = 0; q < 8; q++) {
				for (int g = 0; g < 8; g++) to[q * 8 + g] = wide[g * 8 + q];
			}
			continue;
		}
		for (int q = 0; q < width; q++) {
			for (int g = 0; g < 8; g++) to[q * 8 + g] = wide[g * width + q];
		}
	}
	if (c_kind == E_F32) { /* two registers have the even and the odd columns of eight rows */
		for (int r = 0; r < nc; r += 2) {
			const float *even = (const float *)(void *)((uint32_t *)reg(x, f, c[r]) + warp * 32);
			const float *odd = (const float *)(void *)((uint32_t *)reg(x, f, c[r + 1]) + warp * 32);
			float *to = &t->c[r * 32];
			for (int i = 0; i < 32; i++) to[2 * i] = even[i], to[2 * i + 1] = odd[i];
		}
	} else if (c_kind == E_F16) {
		for (int r = 0; r < nc; r++) widen_row(x, E_F16, (uint32_t *)reg(x, f, c[r]) + warp * 32, &t->c[r * 64]);
	} else {
		memset(t->c, 0, (size_t)m * 8 * sizeof(float));
	}
	x->table->multiply(t->c, t->a, t->b, m, k);
	if (d_kind == E_F32) {
		for (int r = 0; r < nd; r += 2) {
			float *even = (float *)(void *)ROW(r), *odd = (float *)(void *)ROW(r + 1);
			const float *from = &t->c[r * 32];
			for (int i = 0; i < 32; i++) even[i] = from[2 * i], odd[i] = from[2 * i + 1];
		}
	} else if (d_kind == E_F16) {
		for (int r = 0; r < nd; r++) x->table->narrow_f16((uint16_t *)ROW(r), &t->c[r * 64], 64);
	} else {
		for (int r = 0; r < nd; r++) {
			const int32_t *v = (const int32_t *)reg(x, f, c[r]) + warp * 32;
			for (int i = 0; i < 32; i++) {
				float sum = t->c[(8 * (r >> 1) + i / 4) * 8 + i % 4 * 2 + (r & 1)];
				ROW(r)[i] = (uint32_t)add_s32(v[i], (int64_t)sum, saturate);
			}
		}
	}
}

/* ---- wmma: where a fragment keeps an element is ours to choose. It is the number of the element, row by row; a
 * fragment with more room than elements holds them several times. ---- */

static void read_fragment(const Context *x, const Frame *f, const int32_t *slots, int count, int kind, int warp, int elements, float *out) {
	float wide[256];
	int each = 32 / element_bits[kind];
	for (int r = 0; r < count; r++) {
		widen_row(x, kind, (uint32_t *)reg(x, f, slots[r]) + warp * 32, wide);
		for (int lane = 0; lane < 32; lane++) {
			for (int e = 0; e < each; e++) {
				int at = (lane * count + r) * each + e;
				if (at < elements) out[at] = wide[lane * each + e];
			}
		}
	}
}

static void multiply_wmma(Context *x, const Insn *in, Frame *f, int warp) {
	const int32_t *row = x->program->table + in->x, *slots = row + 4;
	int nd = row[0], na = row[2], nb = row[3], nc = row[1] - na - nb;
	int m = (int)(in->imm & 255), n = (int)(in->imm >> 32 & 255), k = (int)(in->imm >> 8 & 0xffff);
	int saturate = (int)(in->imm >> 24 & 1), is_and = (int)(in->imm >> 25 & 1);
	int kind = in->mode, c_kind = in->pair, d_kind = in->mods;
	const int32_t *a = slots + nd, *b = a + na, *c = b + nb;
	if (kind == E_F64) {
		double r[64];
		for (int y = 0; y < 8; y++) {
			for (int z = 0; z < 8; z++) {
				double s = ((double *)(void *)reg(x, f, c[(y * 8 + z) % 2]))[warp * 32 + (y * 8 + z) / 2];
				for (int q = 0; q < 4; q++) s = __builtin_fma(((double *)(void *)reg(x, f, a[0]))[warp * 32 + y * 4 + q], ((double *)(void *)reg(x, f, b[0]))[warp * 32 + q * 8 + z], s);
				r[y * 8 + z] = s;
			}
		}
		for (int i = 0; i < 64; i++) ROW64(i & 1)[i / 2] = r[i];
		return;
	}
	if (kind == E_B1) { /* A by rows, B by columns: each a row of four words */
		const uint32_t *va = (uint32_t *)reg(x, f, a[0]) + warp * 32, *vb = (uint32_t *)reg(x, f, b[0]) + warp * 32;
		uint32_t r[64];
		for (int i = 0; i < 64; i++) {
			uint32_t sum = ((uint32_t *)reg(x, f, c[i & 1]))[warp * 32 + i / 2];
			for (int w = 0; w < 4; w++) {
				uint32_t p = va[i / 8 * 4 + w], q = vb[i % 8 * 4 + w];
				sum += (uint32_t)__builtin_popcount(is_and ? p & q : p ^ q);
			}
			r[i] = sum;
		}
		for (int i = 0; i < 64; i++) ROW(i & 1)[i / 2] = r[i];
		return;
	}
	Matrices *t = (Matrices *)(void *)x->matrices;
	float block[MOST_M * 8], *all_b = malloc(sizeof(float) * (size_t)(k * n + m * n));
	if (!all_b) {
		ptx_fault(x, in, warp * 32, FAULT_MEMORY);
		return;
	}
	float *sum = all_b + k * n;
	read_fragment(x, f, a, na, kind, warp, m * k, t->a);
	read_fragment(x, f, b, nb, in->round, warp, k * n, all_b);
	if (element_bits[kind] == 4) { /* its columns were loaded as words */
		memcpy(t->b, all_b, sizeof(float) * (size_t)(k * n));
		for (int i = 0; i < k * n; i++) all_b[i] = t->b[i % n * k + i / n];
	}
	if (c_kind == E_S32) memset(sum, 0, sizeof(float) * (size_t)(m * n));
	else read_fragment(x, f, c, nc, c_kind, warp, m * n, sum);
	for (int left = 0; left < n; left += 8) {
		for (int q = 0; q < k; q++) memcpy(&t->b[q * 8], &all_b[q * n + left], 8 * sizeof(float));
		for (int y = 0; y < m; y++) memcpy(&block[y * 8], &sum[y * n + left], 8 * sizeof(float));
		x->table->multiply(block, t->a, t->b, m, k);
		for (int y = 0; y < m; y++) memcpy(&sum[y * n + left], &block[y * 8], 8 * sizeof(float));
	}
	for (int r = 0; r < nd; r++) {
		for (int lane = 0; lane < 32; lane++) {
			if (d_kind == E_F16) {
				float pair[2] = {sum[(lane * nd + r) * 2], sum[(lane * nd + r) * 2 + 1]};
				x->table->narrow_f16((uint16_t *)&ROW(r)[lane], pair, 2);
			} else if (d_kind == E_F32) {
				memcpy(&ROW(r)[lane], &sum[lane * nd + r], 4);
			} else {
				int32_t old = ((int32_t *)reg(x, f, c[r]))[warp * 32 + lane];
				ROW(r)[lane] = (uint32_t)add_s32(old, (int64_t)sum[lane * nd + r], saturate);
			}
		}
	}
	free(all_b);
}

static uint64_t address_of(const Context *x, const Insn *in, const Frame *f, int lane) {
	uint64_t v = 0;
	if (in->a >= 0) v = in->size_a == 8 ? ((uint64_t *)reg(x, f, in->a))[lane] : ((uint32_t *)reg(x, f, in->a))[lane];
	return v + (uint64_t)(int64_t)x->program->table[in->x + 2];
}

/* Elements go between memory and fragments one by one. */
static void transfer_wmma(Context *x, const Insn *in, Frame *f, int warp, int is_store) {
	const int32_t *row = x->program->table + in->x, *slots = row + 4;
	int count = row[0] + row[1], space = row[3], kind = in->mode, bits = element_bits[kind], lane0 = warp * 32;
	int rows = (int)(in->imm & 255), cols = (int)(in->imm >> 8 & 255), by_columns = (int)(in->imm >> 16 & 1);
	uint64_t base = address_of(x, in, f, lane0);
	int64_t stride = by_columns ? rows : cols;
	if (in->b >= 0) stride = ((uint32_t *)reg(x, f, in->b))[lane0];
	int bytes = bits < 8 ? 4 : bits / 8, each = bits < 8 ? 32 / bits : 1; /* small elements go in words */
	int words = bits >= 32 ? 1 : 32 / (bits < 8 ? 32 : bits), total = rows * cols / each;
	int row_words = cols / each;
	for (int r = 0; r < count; r++) {
		for (int lane = 0; lane < 32; lane++) {
			for (int e = 0; e < words; e++) {
				int at = (lane * count + r) * words + e;
				if (is_store && at >= total) continue;
				at %= total;
				int64_t y = at / row_words, z = at % row_words;
				/* b1 and 4-bit matrices are stored by rows (A) or by columns (B), either way along K */
				int64_t offset = bits < 8 ? (at / (total / 8) * stride / each + at % (total / 8)) * 4 : (by_columns ? z * stride + y : y * stride + z) * bytes;
				uint8_t *p = ptx_pointer(x, in, f, space, base + (uint64_t)offset, bytes, bytes, lane0 + lane, is_store ? ACCESS_WRITE : ACCESS_READ);
				if (!p) return;
				uint8_t *v = reg(x, f, slots[r]) + (size_t)(lane0 + lane) * (bits == 64 ? 8 : 4) + e * bytes;
				if (is_store) memcpy(p, v, (size_t)bytes);
				else memcpy(v, p, (size_t)bytes);
			}
		}
	}
}

/* ldmatrix and stmatrix: lane 8 m + r has the address of row r of matrix m; each row has 16 bytes. */
static void transfer_matrices(Context *x, const Insn *in, Frame *f, int warp, int is_store) {
	const int32_t *row = x->program->table + in->x, *slots = row + 4;
	int count = row[0] + row[1], space = row[3], lane0 = warp * 32, checked = x->launch->flags & FLAG_SHARED;
	for (int m = 0; m < count; m++) {
		uint32_t tile[32];
		uint16_t *h = (uint16_t *)tile;
		uint32_t *v = (uint32_t *)reg(x, f, slots[m]) + lane0;
		if (is_store) {
			memcpy(tile, v, sizeof tile);
			if (in->mode) {
				for (int i = 0; i < 64; i++) h[i % 8 * 8 + i / 8] = ((uint16_t *)v)[i];
			}
		}
		for (int r = 0; r < 8; r++) {
			uint64_t at = address_of(x, in, f, lane0 + m * 8 + r);
			uint8_t *p;
			if (LIKELY(space == SPACE_SHARED && at + 16 <= (uint64_t)x->shared_size && at % 16 == 0)) {
				if (UNLIKELY(checked)) ptx_shared_access(x, in, lane0 + m * 8 + r, at, 16, is_store ? ACCESS_WRITE : ACCESS_READ);
				p = x->shared + at;
			} else {
				p = ptx_pointer(x, in, f, space, at, 16, 16, lane0 + m * 8 + r, is_store ? ACCESS_WRITE : ACCESS_READ);
				if (!p) return;
			}
			if (is_store) memcpy(p, &tile[r * 4], 16);
			else memcpy(&tile[r * 4], p, 16);
		}
		if (is_store) continue;
		if (in->mode) {
			for (int i = 0; i < 64; i++) ((uint16_t *)v)[i] = h[i % 8 * 8 + i / 8];
		} else {
			memcpy(v, tile, sizeof tile);
		}
	}
}

/* The lanes of `lanes` that name the same lanes in their masks, each set in turn. */
void ptx_warp(Context *x, const Insn *in, Frame *f, int warp, uint32_t lanes) {
	int lane0 = warp * 32;
	if (in->kind >= K_MMA && !x->matrices && !(x->matrices = aligned_alloc(64, (sizeof(Matrices) + 63) / 64 * 64))) {
		ptx_fault(x, in, lane0, FAULT_MEMORY);
		return;
	}
	switch (in->kind) {
	case K_SHUFFLE:
		shuffle(in, (uint32_t *)reg(x, f, in->d) + lane0, in->x >= 0 ? reg(x, f, in->x) + lane0 : NULL, (uint32_t *)reg(x, f, in->a) + lane0,
		        (uint32_t *)reg(x, f, in->b) + lane0, (uint32_t *)reg(x, f, in->c) + lane0, lanes);
		return;
	case K_WARP_SYNC: __atomic_thread_fence(__ATOMIC_SEQ_CST); return;
	case K_MMA:
		if (in->imm >> 40) multiply_wmma(x, in, f, warp);
		else multiply(x, in, f, warp);
		return;
	case K_LOAD_MATRIX: transfer_matrices(x, in, f, warp, 0); return;
	case K_STORE_MATRIX: transfer_matrices(x, in, f, warp, 1); return;
	case K_WMMA_LOAD: transfer_wmma(x, in, f, warp, 0); return;
	case K_WMMA_STORE: transfer_wmma(x, in, f, warp, 1); return;
	default: break;
	}
	const uint32_t *masks = in->e >= 0 ? (uint32_t *)reg(x, f, in->e) + lane0 : NULL;
	uint8_t *p = in->x >= 0 ? reg(x, f, in->x) + lane0 : NULL;
	for (uint32_t rest = lanes; rest;) {
		uint32_t mask = masks ? masks[__builtin_ctz(rest)] : ~0u, set = 0;
		for (uint32_t r = rest; r; r &= r - 1) {
			int i = __builtin_ctz(r);
			if ((masks ? masks[i] : ~0u) == mask) set |= 1u << i;
		}
		rest &= ~set;
		uint32_t *d = in->d >= 0 ? (uint32_t *)reg(x, f, in->d) + lane0 : NULL, value = 0;
		switch (in->kind) {
		case K_VOTE: {
			const uint8_t *a = reg(x, f, in->a) + lane0;
			uint32_t on = 0;
			for (uint32_t r = set; r; r &= r - 1) on |= (uint32_t)(a[__builtin_ctz(r)] ^ (in->imm & 1)) << __builtin_ctz(r);
			switch (in->mode) {
			case VOTE_ALL: value = on == set; break;
			case VOTE_ANY: value = on != 0; break;
			case VOTE_UNIFORM: value = on == set || on == 0; break;
			default: value = on;
			}
			uint8_t *out = reg(x, f, in->d) + lane0;
			for (uint32_t r = set; r; r &= r - 1) {
				int i = __builtin_ctz(r);
				if (in->mode == VOTE_BALLOT) d[i] = value;
				else out[i] = (uint8_t)value;
			}
			break;
		}
		case K_REDUX:
			value = reduce(in->mode, (uint32_t *)reg(x, f, in->a) + lane0, set);
			for (uint32_t r = set; r; r &= r - 1) d[__builtin_ctz(r)] = value;
			break;
		case K_ELECT:
			value = (uint32_t)__builtin_ctz(set);
			for (uint32_t r = set; r; r &= r - 1) {
				int i = __builtin_ctz(r);
				if (d) d[i] = value;
				if (p) p[i] = (uint32_t)i == value;
			}
			break;
		default: { /* match */
			const uint32_t *a4 = (uint32_t *)reg(x, f, in->a) + lane0;
			const uint64_t *a8 = (uint64_t *)(void *)reg(x, f, in->a) + lane0;
			uint32_t out[32], all = 1;
			for (uint32_t r = set; r; r &= r - 1) {
				int i = __builtin_ctz(r);
				out[i] = 0;
				for (uint32_t q = set; q; q &= q - 1) {
					int k = __builtin_ctz(q);
					if (in->size_a == 8 ? a8[i] == a8[k] : a4[i] == a4[k]) out[i] |= 1u << k;
				}
				all &= out[i] == set;
			}
			for (uint32_t r = set; r; r &= r - 1) {
				int i = __builtin_ctz(r);
				d[i] = in->mode == MATCH_ANY ? out[i] : all ? set : 0;
				if (p) p[i] = (uint8_t)all;
			}
		}
		}
	}
}
