/* Runs blocks: which lanes are where, branches, calls, barriers, and how blocks take turns. */
#include "program.h"

#include <fenv.h>
#include <sched.h>

#include "context.h"

enum {
	LOOK_AROUND = 1 << 15,  /* effort between two looks at the launch's state */
	SPIN_SURCHARGE = 256,   /* effort of an access by which threads wait for each other */
	ROTATION = 4096,        /* instructions of a group that others waited for */
	TURN = 1 << 22,         /* effort of a block before another one of the launch gets a turn */
	MOST_FRAMES = 1024,     /* depth of calls */
	MOST_LOCAL = 512 << 10, /* bytes of local memory for each thread */
	MOST_IDLE = 8,          /* contexts that a program keeps */
	NEVER = INT32_MAX,
};

/* ---- memory of a context ---- */

static void *room(size_t bytes) {
	return aligned_alloc(64, (bytes + 127) & ~(size_t)63);
}

static void free_frame(Frame *f) {
	if (!f) return;
	free(f->regs);
	free(f);
}

static size_t shadow_words_of(const Launch *l) { return (size_t)l->shared / 4 + 16; }

static int shadow_new(Context *x, size_t words) {
	Shadow *s = &x->shadow;
	s->writer = calloc(words, 4 * sizeof *s->writer);
	s->footprints = calloc(FOOTPRINTS, sizeof *s->footprints);
	if (!s->writer || !s->footprints) return 0;
	s->reader = s->writer + words;
	s->writer_pc = (int32_t *)(s->reader + words);
	s->reader_pc = s->writer_pc + words;
	return 1;
}

static void shadow_free(Context *x) {
	free(x->shadow.writer);
	free(x->shadow.footprints);
	x->shadow = (Shadow){0};
}

static void context_free(Context *x) {
	if (!x) return;
	for (int i = 0; i < x->group_count; i++) free(x->groups[i]->mask), free(x->groups[i]);
	for (int i = 0; i < x->spare_count; i++) free(x->spare[i]->mask), free(x->spare[i]);
	for (int i = 0; x->free_frames && i < x->program->func_count; i++) {
		for (Frame *f = x->free_frames[i], *next; f; f = next) next = f->next, free_frame(f);
	}
	free_frame(x->root);
	free(x->free_frames);
	free(x->alive);
	free(x->shared);
	free(x->local);
	for (int i = 0; i < 5; i++) free(x->temp[i]);
	free(x->address);
	free(x->lane_list);
	free(x->guard_mask);
	shadow_free(x);
	free(x->rows);
	free(x->matrices);
	free(x);
}

static Context *context_new(Launch *l) {
	Context *x = calloc(1, sizeof *x);
	if (!x) return NULL;
	x->program = l->program;
	x->lanes = l->lanes;
	x->padded = l->padded;
	x->warps = (l->lanes + 31) / 32;
	memcpy(x->block_dim, l->block, sizeof x->block_dim);
	x->alive = room((size_t)x->padded);
	x->guard_mask = room((size_t)x->padded);
	x->address = room((size_t)x->padded * 8);
	x->lane_list = room((size_t)x->padded * 4);
	x->free_frames = calloc((size_t)x->program->func_count, sizeof *x->free_frames);
	int ok = x->alive && x->guard_mask && x->address && x->lane_list && x->free_frames;
	for (int i = 0; i < 5; i++) ok &= (x->temp[i] = room((size_t)x->padded * 16)) != NULL;
	if (ok) return x;
	context_free(x);
	return NULL;
}

/* Takes a context of an earlier launch with blocks of the same shape, or makes one. */
static Context *context_take(Launch *l) {
	Program *p = l->program;
	Context *x = NULL;
	pthread_mutex_lock(&p->mutex);
	for (Context **at = &p->idle; *at; at = &(*at)->next) {
		if (memcmp((*at)->block_dim, l->block, sizeof l->block) == 0) {
			x = *at;
			*at = x->next;
			p->idle_count--;
			break;
		}
	}
	pthread_mutex_unlock(&p->mutex);
	if (!x) x = context_new(l);
	if (!x) return NULL;
	if (x->shared_room < l->shared + 64) {
		free(x->shared);
		x->shared_room = l->shared + 64;
		x->shared = room((size_t)x->shared_room);
		if (!x->shared) {
			context_free(x);
			return NULL;
		}
	}
	if (l->flags & FLAG_SHARED) {
		shadow_free(x);
		if (!shadow_new(x, shadow_words_of(l))) {
			context_free(x);
			return NULL;
		}
	}
	x->launch = l;
	x->shared_size = l->shared;
	x->range = 0;
	return x;
}

static void context_give(Launch *l, Context *x) {
	Program *p = l->program;
	x->launch = NULL;
	pthread_mutex_lock(&p->mutex);
	if (p->idle_count < MOST_IDLE) {
		x->next = p->idle;
		p->idle = x;
		p->idle_count++;
		x = NULL;
	}
	pthread_mutex_unlock(&p->mutex);
	context_free(x);
}

/* ---- faults ---- */

static void thread_of(const Launch *l, int lane, int32_t *out) {
	out[0] = lane % l->block[0];
	out[1] = lane / l->block[0] % l->block[1];
	out[2] = lane / (l->block[0] * l->block[1]);
}

/* Ends the launch with a fault, of which the first one counts; its caller adds what the text needs. */
Fault *ptx_fault(Context *x, const Insn *in, int lane, int kind) {
	static __thread Fault lost;
	Launch *l = x->launch;
	pthread_mutex_lock(&l->mutex);
	Fault *f = l->fault.kind == FAULT_NONE ? &l->fault : &lost;
	memset(f, 0, sizeof *f);
	f->kind = kind;
	f->pc = in ? (int32_t)(in - x->program->code) : -1;
	f->other_pc = -1;
	f->lane = lane;
	memcpy(f->block, x->block_id, sizeof f->block);
	thread_of(l, lane < 0 ? 0 : lane, f->thread);
	pthread_mutex_unlock(&l->mutex);
	__atomic_store_n(&l->stop, 1, __ATOMIC_SEQ_CST);
	x->stopped = 1;
	return f;
}

void ptx_finding(Context *x, int kind, int access, int pc, int lane, int other_pc, int other_lane, uint64_t address) {
	Launch *l = x->launch;
	pthread_mutex_lock(&l->mutex);
	Fault *f = NULL;
	for (int i = 0; i < l->finding_count; i++) {
		Fault *o = &l->findings[i];
		if (o->kind == kind && o->pc == pc && o->other_pc == other_pc) f = o;
	}
	if (f) {
		f->count++;
	} else if (l->finding_count < MAX_FINDINGS) {
		f = &l->findings[l->finding_count++];
		memset(f, 0, sizeof *f);
		*f = (Fault){.kind = kind, .access = access, .pc = pc, .other_pc = other_pc, .lane = lane, .address = address};
		f->other_lane = other_lane;
		f->count = 1;
		memcpy(f->block, x->block_id, sizeof f->block);
		thread_of(l, lane, f->thread);
		thread_of(l, other_lane < 0 ? 0 : other_lane, f->other_thread);
	}
	pthread_mutex_unlock(&l->mutex);
}

/* ---- frames ---- */

static void fill_array(uint8_t *to, int size, uint64_t bits, int n) {
	switch (size) {
	case 1: memset(to, (int)bits, (size_t)n); break;
	case 2: for (int i = 0; i < n; i++) ((uint16_t *)to)[i] = (uint16_t)bits; break;
	case 4: for (int i = 0; i < n; i++) ((uint32_t *)to)[i] = (uint32_t)bits; break;
	case 8: for (int i = 0; i < n; i++) ((uint64_t *)to)[i] = bits; break;
	default:
		for (int i = 0; i < n; i++) ((uint64_t *)to)[2 * i] = bits, ((uint64_t *)to)[2 * i + 1] = 0;
	}
}

static void fill_special(const Context *x, const Fill *w, uint8_t *to) {
	const Launch *l = x->launch;
	int n = x->padded, axis = (w->what - FILL_TID) % 3;
	uint32_t *v = (uint32_t *)to, value = 0;
	switch (w->what) {
	case FILL_TID: case FILL_TID + 1: case FILL_TID + 2:
		for (int i = 0; i < n; i++) {
			int32_t at[3];
			thread_of(l, i, at);
			v[i] = (uint32_t)at[axis];
		}
		return;
	case FILL_LANEID: for (int i = 0; i < n; i++) v[i] = (uint32_t)i & 31; return;
	case FILL_WARPID: for (int i = 0; i < n; i++) v[i] = (uint32_t)i >> 5; return;
	case FILL_MASK_EQ: for (int i = 0; i < n; i++) v[i] = 1u << (i & 31); return;
	case FILL_MASK_LT: for (int i = 0; i < n; i++) v[i] = (1u << (i & 31)) - 1; return;
	case FILL_MASK_LE: for (int i = 0; i < n; i++) v[i] = (2u << (i & 31)) - 1; return;
	case FILL_MASK_GT: for (int i = 0; i < n; i++) v[i] = ~((2u << (i & 31)) - 1); return;
	case FILL_MASK_GE: for (int i = 0; i < n; i++) v[i] = ~((1u << (i & 31)) - 1); return;
	case FILL_CTAID: case FILL_CTAID + 1: case FILL_CTAID + 2: value = (uint32_t)x->block_id[axis]; break;
	case FILL_NTID: case FILL_NTID + 1: case FILL_NTID + 2: value = (uint32_t)l->block[axis]; break;
	case FILL_NCTAID: case FILL_NCTAID + 1: case FILL_NCTAID + 2: value = (uint32_t)l->grid[axis]; break;
	case FILL_NWARPID: value = (uint32_t)x->warps; break;
	case FILL_DYNAMIC_SHARED: value = (uint32_t)l->dynamic_shared; break;
	case FILL_TOTAL_SHARED: value = (uint32_t)(l->program->shared_bytes + l->dynamic_shared); break;
	case FILL_COOP_LOW: value = (uint32_t)(uintptr_t)l->cooperative; break;
	case FILL_COOP_HIGH: value = (uint32_t)((uint64_t)(uintptr_t)l->cooperative >> 32); break;
	default: break;
	}
	fill_array(to, w->size, value, n);
}

/* Whether a special register stays the same in all blocks of one shape. */
static int is_fixed(int what) {
	return what == FILL_CONST || (what >= FILL_TID && what < FILL_CTAID) || (what >= FILL_NTID && what < FILL_NCTAID) ||
	       (what >= FILL_LANEID && what <= FILL_MASK_GE);
}

static void fill_frame(const Context *x, Frame *f, int fresh) {
	const Fill *fills = x->program->fills + f->func->fills;
	for (int i = 0; i < f->func->fill_count; i++) {
		const Fill *w = &fills[i];
		uint8_t *to = reg(x, f, w->slot);
		if (w->what == FILL_ZERO) memset(to, 0, (size_t)w->size * (size_t)x->padded);
		else if (!fresh && is_fixed(w->what)) continue;
		else if (w->what == FILL_CONST) fill_array(to, w->size, w->bits, x->padded);
		else fill_special(x, w, to);
	}
	f->serial = x->serial;
}

static Frame *frame_new(Context *x, int func) {
	Frame *f = calloc(1, sizeof *f);
	if (!f) return NULL;
	f->func = &x->program->funcs[func];
	f->regs = room((size_t)f->func->frame_bytes * (size_t)x->padded);
	if (!f->regs) {
		free(f);
		return NULL;
	}
	/* Padding lanes are computed too; what they hold must not depend on earlier work. */
	memset(f->regs, 0, (size_t)f->func->frame_bytes * (size_t)x->padded);
	fill_frame(x, f, 1);
	return f;
}

static Frame *frame_take(Context *x, int func) {
	Frame *f = x->free_frames[func];
	if (!f) return frame_new(x, func);
	x->free_frames[func] = f->next;
	int other_block = f->serial != x->serial;
	const Fill *fills = x->program->fills + f->func->fills;
	if (other_block) fill_frame(x, f, 0);
	for (int i = 0; !other_block && i < f->func->fill_count; i++) {
		if (fills[i].what == FILL_ZERO) memset(reg(x, f, fills[i].slot), 0, (size_t)fills[i].size * (size_t)x->padded);
	}
	return f;
}

/* Lanes left a frame, by returning or by ending; the last ones give it back. */
static Frame *frame_leave(Context *x, Frame *f, int lanes) {
	Frame *parent = f->parent;
	f->lanes -= lanes;
	if (f->lanes == 0 && parent) {
		int func = (int)(f->func - x->program->funcs);
		f->next = x->free_frames[func];
		x->free_frames[func] = f;
	}
	return parent;
}

/* Makes local memory of at least `bytes` for each lane. */
static int local_room(Context *x, uint32_t bytes) {
	if (bytes <= x->local_stride) return 1;
	if (bytes > MOST_LOCAL) return 0;
	uint32_t stride = (bytes + 15u) & ~15u;
	if (x->local_stride && stride < 2 * x->local_stride) stride = 2 * x->local_stride;
	uint8_t *grown = room((size_t)stride * (size_t)x->padded);
	if (!grown) return 0;
	memset(grown, 0, (size_t)stride * (size_t)x->padded);
	for (int i = 0; x->local && i < x->padded; i++) {
		memcpy(grown + (size_t)stride * (size_t)i, x->local + (size_t)x->local_stride * (size_t)i, x->local_stride);
	}
	free(x->local);
	x->local = grown;
	x->local_stride = stride;
	return 1;
}

/* ---- groups ---- */

static Group *group_new(Context *x, int32_t pc, Frame *f) {
	Group *g;
	if (x->spare_count) {
		g = x->spare[--x->spare_count];
	} else {
		g = calloc(1, sizeof *g);
		if (g && !(g->mask = room((size_t)x->padded))) {
			free(g);
			g = NULL;
		}
		if (!g) {
			ptx_fault(x, NULL, -1, FAULT_MEMORY);
			return NULL;
		}
	}
	g->pc = pc;
	g->frame = f;
	g->wait = g->waited = WAIT_NONE;
	g->stamp = 0;
	x->groups[x->group_count++] = g;
	return g;
}

static void group_drop(Context *x, Group *g) {
	for (int i = 0; i < x->group_count; i++) {
		if (x->groups[i] != g) continue;
		x->groups[i] = x->groups[--x->group_count];
		break;
	}
	x->spare[x->spare_count++] = g;
}

/* Finds count and bounds of a group whose mask was written within [lo, hi). */
static void group_measure(Context *x, Group *g, int lo, int hi) {
	g->count = 0;
	g->lo = hi;
	g->hi = lo;
	int others = 0;
	for (int c = lo; c < hi; c += LANES) {
		int n = 0;
		for (int i = c; i < c + LANES; i++) n += g->mask[i];
		if (!n) continue;
		g->count += n;
		if (g->lo > c) g->lo = c;
		g->hi = c + LANES;
	}
	for (int i = g->lo; i < g->hi; i++) others += x->alive[i] & !g->mask[i];
	if (g->lo > g->hi) g->lo = g->hi;
	g->direct = others == 0;
	g->dense = g->count == g->hi - g->lo;
}

/* Splits the lanes of a selection off a group: they become a new group at `pc`. */
static Group *group_split(Context *x, Group *g, const uint8_t *mask, int32_t pc) {
	Group *n = group_new(x, pc, g->frame);
	if (!n) return NULL;
	int lo = g->lo, hi = g->hi;
	memset(n->mask, 0, (size_t)x->padded);
	for (int i = lo; i < hi; i++) {
		n->mask[i] = mask[i];
		g->mask[i] &= !mask[i];
	}
	n->barrier = g->barrier;
	n->stamp = g->stamp;
	group_measure(x, n, lo, hi);
	group_measure(x, g, lo, hi);
	return n;
}

static void group_merge(Context *x, Group *to, Group *from) {
	int lo = to->lo < from->lo ? to->lo : from->lo, hi = to->hi > from->hi ? to->hi : from->hi;
	for (int i = from->lo; i < from->hi; i++) to->mask[i] |= from->mask[i];
	group_measure(x, to, lo, hi);
	group_drop(x, from);
}

static uint32_t warp_bits(const uint8_t *mask, int warp) {
	uint32_t bits = 0;
	for (int i = 0; i < 32; i++) bits |= (uint32_t)mask[warp * 32 + i] << i;
	return bits;
}

/* ---- arithmetic ---- */

static const int rounding_modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/* An instruction whose operands or result need more than its loop. */
static void modified(Context *x, const Insn *in, int n, void *d, const void *a, const void *b, const void *c,
                     const void *e) {
	const LaneTable *t = x->table;
	const void *src[4] = {a, b, c, e};
	int half = in->mods & (MOD_HALF | MOD_BF16);
	int wide = !half && in->size_d == 8;
	for (int i = 0; i < in->sources; i++) {
		if (half) {
			t->loops[in->mods & MOD_HALF ? LANE_f16_f32 : LANE_bf16_f32](in, n, x->temp[i], src[i], NULL, NULL, NULL);
			src[i] = x->temp[i];
		}
		if (in->mods & MOD_FTZ) {
			t->loops[in->mods & MOD_HALF ? LANE_flush_f16 : LANE_flush_f32](in, n, x->temp[i], src[i], NULL, NULL, NULL);
			src[i] = x->temp[i];
		}
	}
	void *out = half ? x->temp[3] : d;
	if (in->mods & MOD_ROUND) fesetround(rounding_modes[in->round]);
	t->loops[in->fn](in, n, out, src[0], src[1], src[2], src[3]);
	if (in->mods & MOD_ROUND) fesetround(FE_TONEAREST);
	if (in->mods & MOD_KEEP) {
		if (out != d) memcpy(d, out, (size_t)n * in->size_d);
		return;
	}
	if (in->mods & MOD_RELU) t->loops[LANE_relu_f32](in, n, out, out, NULL, NULL, NULL);
	if (in->mods & MOD_SAT) t->loops[wide ? LANE_sat_f64 : LANE_sat_f32](in, n, out, out, NULL, NULL, NULL);
	if (half) t->loops[in->mods & MOD_HALF ? LANE_f32_f16 : LANE_f32_bf16](in, n, out, out, NULL, NULL, NULL);
	if (in->mods & MOD_FTZ) {
		if (half) {
			for (int i = 0; i < n; i++) {
				uint16_t *h = &((uint16_t *)out)[i];
				if (in->mods & MOD_HALF && (*h & 0x7c00) == 0) *h &= 0x8000;
			}
		} else {
			t->loops[LANE_flush_f32](in, n, out, out, NULL, NULL, NULL);
		}
	}
	if (half) memcpy(d, out, (size_t)n * 2);
}

static inline void alu(Context *x, const Insn *in, Frame *f, const Selection *s) {
	int n = s->hi - s->lo;
	size_t lo = (size_t)s->lo;
	uint8_t *d = reg(x, f, in->d) + lo * in->size_d;
	const uint8_t *a = reg(x, f, in->a) + lo * in->size_a, *b = reg(x, f, in->b) + lo * in->size_b;
	const uint8_t *c = reg(x, f, in->c) + lo * in->size_c, *e = reg(x, f, in->e) + lo * in->size_e;
	uint8_t *out = LIKELY(s->direct) ? d : x->temp[4];
	if (LIKELY(!in->mods)) x->table->loops[in->fn](in, n << in->pair, out, a, b, c, e);
	else modified(x, in, n << in->pair, out, a, b, c, e);
	if (UNLIKELY(!s->direct)) x->table->blend(d, out, s->mask + lo, n, in->size_d);
}

/* ---- barriers and warps ---- */

static void look_again(Context *x, int warp);

/* What was accessed before a barrier cannot race with what comes behind it. */
static void next_epoch(Context *x) {
	if (++x->epoch < SHADOW_EPOCHS) return;
	x->epoch = 1;
	for (size_t i = 0; x->shadow.writer && i < shadow_words_of(x->launch); i++) {
		x->shadow.writer[i] = x->shadow.writer[i] != 0; /* epoch 0: written, and no race any more */
		x->shadow.reader[i] = 0;
	}
}

static int barrier_complete(const Context *x, int id) {
	int here = 0;
	for (int i = 0; i < x->group_count; i++) {
		if (x->groups[i]->wait == WAIT_BARRIER && x->groups[i]->barrier == id) here += x->groups[i]->count;
	}
	if (here == 0) return x->wanted[id] > 0 && x->arrived[id] >= x->wanted[id];
	if (x->wanted[id] <= 0) return here + x->arrived[id] >= x->alive_count;
	int threads = x->arrived[id];
	for (int w = 0; w < x->warps; w++) {
		uint32_t there = 0;
		for (int i = 0; i < x->group_count; i++) {
			Group *g = x->groups[i];
			if (g->wait == WAIT_BARRIER && g->barrier == id && g->lo <= w * 32 && g->hi > w * 32) there |= warp_bits(g->mask, w);
		}
		if (there && (warp_bits(x->alive, w) & ~there) == 0) threads += 32;
	}
	return threads >= x->wanted[id];
}

/* The result of barrier.red for all that wait, written for each group. */
static void barrier_reduce(Context *x, int id) {
	int count = 0, all = 1, any = 0, reduces = 0;
	const Insn *code = x->program->code;
	for (int i = 0; i < x->group_count; i++) {
		Group *g = x->groups[i];
		const Insn *in = &code[g->pc];
		if (g->wait != WAIT_BARRIER || g->barrier != id || in->mode < 2) continue;
		reduces = 1;
		const uint8_t *p = reg(x, g->frame, in->c);
		for (int k = g->lo; k < g->hi; k++) {
			if (!g->mask[k]) continue;
			int v = p[k] ^ (in->imm & 1);
			count += v, any |= v, all &= v;
		}
	}
	for (int i = 0; reduces && i < x->group_count; i++) {
		Group *g = x->groups[i];
		const Insn *in = &code[g->pc];
		if (g->wait != WAIT_BARRIER || g->barrier != id || in->mode < 2) continue;
		uint8_t *d = reg(x, g->frame, in->d);
		for (int k = g->lo; k < g->hi; k++) {
			if (!g->mask[k]) continue;
			if (in->mode == 2) ((uint32_t *)d)[k] = (uint32_t)count;
			else d[k] = (uint8_t)(in->mode == 3 ? all : any);
		}
	}
}

static void barrier_release(Context *x, int id) {
	/* One that counts threads is for parts of a block, which may come from different places. */
	int first_pc = -1, first_lane = -1, look = x->launch->flags & FLAG_SYNC && x->wanted[id] == 0;
	barrier_reduce(x, id);
	for (int i = 0; i < x->group_count; i++) {
		Group *g = x->groups[i];
		if (g->wait != WAIT_BARRIER || g->barrier != id) continue;
		int lane = g->lo;
		while (!g->mask[lane]) lane++;
		if (look && first_pc >= 0 && first_pc != g->pc) {
			ptx_finding(x, FIND_BARRIER_PLACES, 0, g->pc, lane, first_pc, first_lane, (uint64_t)id);
		}
		if (first_pc < 0) first_pc = g->pc, first_lane = lane;
		g->wait = WAIT_NONE;
		g->pc++;
	}
	x->arrived[id] = 0;
	x->wanted[id] = 0;
	next_epoch(x);
}

static int barrier_look(Context *x) {
	int moved = 0;
	for (int id = 0; id < 16; id++) {
		int waits = 0;
		for (int i = 0; i < x->group_count; i++) waits |= x->groups[i]->wait == WAIT_BARRIER && x->groups[i]->barrier == id;
		if (waits && barrier_complete(x, id)) barrier_release(x, id), moved = 1;
	}
	return moved;
}

/* Barriers: mode 0 sync, 1 arrive, 2 to 4 reductions. Returns whether the group goes on at once. */
static int barrier(Context *x, const Insn *in, Group *g) {
	int first = g->lo;
	while (!g->mask[first]) first++;
	uint32_t id = ((uint32_t *)reg(x, g->frame, in->a))[first];
	int want = in->b >= 0 ? (int)((uint32_t *)reg(x, g->frame, in->b))[first] : 0;
	if (id > 15 || (in->b >= 0 && (want <= 0 || want % 32 || want > MAX_LANES))) {
		Fault *f = ptx_fault(x, in, first, FAULT_BARRIER_BAD);
		f->address = id;
		f->value = (uint64_t)want;
		return 0;
	}
	if (in->mode == 0 && g->count == x->alive_count && x->arrived[id] == 0 && (want == 0 || want == x->warps * 32)) {
		next_epoch(x);
		g->pc++;
		return 1;
	}
	x->wanted[id] = want;
	if (in->mode == 1) {
		for (int w = g->lo / 32; w < g->hi / 32; w++) {
			uint32_t there = warp_bits(g->mask, w);
			if (there) x->arrived[id] += (warp_bits(x->alive, w) & ~there) == 0 && want > 0 ? 32 : __builtin_popcount(there);
		}
		g->pc++;
	} else {
		g->wait = WAIT_BARRIER;
		g->barrier = (uint8_t)id;
	}
	if (barrier_complete(x, (int)id)) barrier_release(x, (int)id);
	return 0;
}

/* Lanes of `here` whose partners by their masks are all in `here`; masks is null where all lanes take part. */
static uint32_t ready_lanes(uint32_t here, uint32_t alive, const uint32_t *masks) {
	for (uint32_t before = 0; here != before;) {
		before = here;
		for (uint32_t rest = here; rest; rest &= rest - 1) {
			int i = __builtin_ctz(rest);
			uint32_t mask = masks ? masks[i] : ~0u;
			if (mask & alive & ~here) here &= ~(1u << i);
		}
	}
	return here;
}

/* The slots that an instruction of a warp reads and writes, at most 64 of them. */
typedef struct { int32_t *slot; int size; int write; } Operand;

static int warp_operands(const Context *x, Insn *in, Operand *out, int32_t *table) {
	int n = 0;
	if (in->kind == K_MMA || in->kind == K_LOAD_MATRIX || in->kind == K_STORE_MATRIX || in->kind == K_WMMA_LOAD ||
	    in->kind == K_WMMA_STORE) {
		/* the table row: counts of written and of read registers, then slots */
		const int32_t *row = x->program->table + in->x;
		int writes = row[0], reads = row[1];
		memcpy(table, row, (size_t)(writes + reads + 4) * sizeof *table);
		for (int i = 0; i < writes + reads; i++) out[n++] = (Operand){&table[4 + i], in->size_d, i < writes};
		if (in->a >= 0) out[n++] = (Operand){&in->a, in->size_a, 0};
		if (in->b >= 0) out[n++] = (Operand){&in->b, in->size_b, 0};
		return n;
	}
	if (in->sources > 0) out[n++] = (Operand){&in->a, in->size_a, 0};
	if (in->sources > 1) out[n++] = (Operand){&in->b, in->size_b, 0};
	if (in->sources > 2) out[n++] = (Operand){&in->c, in->size_c, 0};
	if (in->d >= 0) out[n++] = (Operand){&in->d, in->size_d, 1};
	if (in->x >= 0) out[n++] = (Operand){&in->x, 1, 1};
	return n;
}

static int same_sync(const Insn *a, const Insn *b) {
	return a->kind == b->kind && a->mode == b->mode && a->fn == b->fn && a->pair == b->pair &&
	       (a->kind != K_MMA || a->imm == b->imm);
}

/* Lanes of one warp that wait at like instructions, maybe at different places: if those that a mask names are
 * there, they execute together. Returns whether some did. */
static int warp_join(Context *x, int warp, Group *first) {
	const Insn *code = x->program->code;
	Group *members[32];
	int count = 0;
	uint32_t here = 0, masks[32], alive = warp_bits(x->alive, warp);
	for (int i = 0; i < x->group_count; i++) {
		Group *g = x->groups[i];
		if (g->wait != WAIT_WARP || g->lo != warp * 32 || !same_sync(&code[g->pc], &code[first->pc])) continue;
		const Insn *in = &code[g->pc];
		uint32_t bits = warp_bits(g->mask, warp);
		const uint32_t *m = in->e >= 0 ? (uint32_t *)reg(x, g->frame, in->e) + warp * 32 : NULL;
		for (int k = 0; k < 32; k++) {
			if (bits >> k & 1) masks[k] = m ? m[k] : ~0u;
		}
		here |= bits;
		members[count++] = g;
	}
	uint32_t ready = ready_lanes(here, alive, masks);
	if (!ready) return 0;
	/* Their registers are brought together in rows of 32 lanes, as if all were at one place in one frame. */
	if (!x->rows && !(x->rows = room(64 * 16 * (size_t)x->padded))) {
		ptx_fault(x, NULL, -1, FAULT_MEMORY);
		return 1;
	}
	uint8_t *rows = x->rows;
	Frame together = *members[0]->frame;
	together.regs = rows;
	Insn joined = code[first->pc];
	Operand to[64], from[64];
	int32_t table[80], other_table[80];
	int operands = warp_operands(x, &joined, to, table);
	for (int m = 0; m < count; m++) {
		Insn own = code[members[m]->pc];
		warp_operands(x, &own, from, other_table);
		uint32_t bits = warp_bits(members[m]->mask, warp) & ready;
		for (int o = 0; o < operands; o++) {
			if (*from[o].slot < 0) continue;
			const uint8_t *row = reg(x, members[m]->frame, *from[o].slot);
			uint8_t *copy = rows + (size_t)o * 16 * (size_t)x->padded;
			size_t size = (size_t)from[o].size;
			for (int k = 0; k < 32; k++) {
				if (bits >> k & 1) memcpy(copy + ((size_t)warp * 32 + (size_t)k) * size, row + ((size_t)warp * 32 + (size_t)k) * size, size);
			}
		}
	}
	for (int o = 0; o < operands; o++) *to[o].slot = *to[o].slot < 0 ? -1 : o * 16;
	if (joined.e >= 0) { /* the masks are one more row */
		joined.e = 63 * 16;
		memcpy((uint32_t *)reg(x, &together, joined.e) + warp * 32, masks, sizeof masks);
	}
	Program changed = *x->program;
	const Program *whole = x->program;
	if (joined.kind != K_SHUFFLE && joined.x >= 0 && operands && to[0].slot == &table[4]) {
		changed.table = table;
		joined.x = 0;
		x->program = &changed;
	}
	ptx_warp(x, &joined, &together, warp, ready);
	x->program = whole;
	if (x->stopped) return 1;
	for (int m = 0; m < count; m++) {
		Group *g = members[m];
		Insn own = code[g->pc];
		warp_operands(x, &own, from, other_table);
		uint32_t bits = warp_bits(g->mask, warp), now = bits & ready;
		if (!now) continue;
		for (int o = 0; o < operands; o++) {
			if (!from[o].write || *from[o].slot < 0) continue;
			uint8_t *row = reg(x, g->frame, *from[o].slot);
			const uint8_t *copy = rows + (size_t)o * 16 * (size_t)x->padded;
			size_t size = (size_t)from[o].size;
			for (int k = 0; k < 32; k++) {
				if (now >> k & 1) memcpy(row + ((size_t)warp * 32 + (size_t)k) * size, copy + ((size_t)warp * 32 + (size_t)k) * size, size);
			}
		}
		if (now != bits) {
			uint8_t *keep = x->guard_mask;
			memset(keep, 0, (size_t)x->padded);
			for (int k = 0; k < 32; k++) keep[warp * 32 + k] = (bits & ~now) >> k & 1;
			Group *left = group_split(x, g, keep, g->pc);
			if (!left) return 1;
			left->wait = WAIT_WARP;
		}
		g->wait = WAIT_NONE;
		g->pc++;
	}
	return 1;
}

/* Looks whether lanes of a warp that wait for others can go on. */
static void look_again(Context *x, int warp) {
	for (int again = 1; again && !x->stopped;) {
		again = 0;
		for (int i = 0; i < x->group_count && !again; i++) {
			Group *g = x->groups[i];
			if (g->wait == WAIT_WARP && g->lo == warp * 32) again = warp_join(x, warp, g);
		}
	}
}

/* Instructions that the lanes of a warp execute together. Returns whether the group goes on at once. */
static int together(Context *x, const Insn *in, Group *g) {
	uint32_t waits[MAX_WARPS] = {0};
	int any = 0;
	for (int w = g->lo / 32; w < g->hi / 32; w++) {
		uint32_t here = g->count == x->lanes && x->lanes == x->padded ? ~0u : warp_bits(g->mask, w);
		if (!here) continue;
		if (g->count != x->alive_count) {
			const uint32_t *masks = in->e >= 0 ? (uint32_t *)reg(x, g->frame, in->e) + w * 32 : NULL;
			if (ready_lanes(here, warp_bits(x->alive, w), masks) != here) {
				waits[w] = here;
				any = 1;
				continue;
			}
		}
		ptx_warp(x, in, g->frame, w, here);
		if (x->stopped) return 0;
	}
	if (!any) {
		g->pc++;
		return 1;
	}
	/* each warp that waits becomes a group of its own */
	for (int w = g->lo / 32, end = g->hi / 32; w < end; w++) {
		if (!waits[w]) continue;
		Group *waiting = g;
		if (waits[w] != 0 && g->count > __builtin_popcount(waits[w])) {
			memset(x->guard_mask, 0, (size_t)x->padded);
			for (int k = 0; k < 32; k++) x->guard_mask[w * 32 + k] = waits[w] >> k & 1;
			waiting = group_split(x, g, x->guard_mask, g->pc);
			if (!waiting) return 0;
		}
		waiting->wait = WAIT_WARP;
	}
	if (g->wait == WAIT_NONE) g->pc++;
	for (int w = 0; w < x->warps && !x->stopped; w++) {
		if (waits[w]) look_again(x, w);
	}
	return 0;
}

/* ---- control ---- */

static void lanes_end(Context *x, Group *g) {
	for (int i = g->lo; i < g->hi; i++) x->alive[i] &= !g->mask[i];
	x->alive_count -= g->count;
	int lo = g->lo / 32, hi = g->hi / 32;
	for (Frame *f = g->frame; f; f = frame_leave(x, f, g->count)) {}
	group_drop(x, g);
	if (x->alive_count == 0) return;
	for (int i = 0; i < x->group_count; i++) { /* who is alone now needs no mask */
		Group *o = x->groups[i];
		if (!o->direct) group_measure(x, o, o->lo, o->hi);
	}
	for (int w = lo; w < hi && !x->stopped; w++) look_again(x, w);
	barrier_look(x);
}

static uint8_t *local_of(const Context *x, int lane) { return x->local + (size_t)x->local_stride * (size_t)lane; }

static void copy_rows(Context *x, const Group *g, const int32_t *rows, int count, uint32_t caller, uint32_t callee, int back) {
	for (int r = 0; r < count; r++, rows += 3) {
		for (int i = g->lo; i < g->hi; i++) {
			if (!g->mask[i]) continue;
			uint8_t *l = local_of(x, i), *out = l + caller + rows[0], *in = l + callee + rows[1];
			if (back) memcpy(out, in, (size_t)rows[2]);
			else memcpy(in, out, (size_t)rows[2]);
		}
	}
}

#define FUNCTION_WINDOW (7ull << WINDOW_SHIFT)

static void call(Context *x, const Insn *in, Group *g) {
	const CallSite *site = &x->program->calls[in->x];
	int func = site->func;
	if (func < 0) { /* those lanes that call what the first one calls */
		const uint64_t *to = (uint64_t *)reg(x, g->frame, site->reg);
		int first = g->lo, same = 0;
		while (!g->mask[first]) first++;
		for (int i = g->lo; i < g->hi; i++) same += x->guard_mask[i] = g->mask[i] && to[i] == to[first];
		if (same != g->count) {
			Group *n = group_split(x, g, x->guard_mask, g->pc);
			if (!n) return;
			g = n;
		}
		uint64_t index = (to[first] ^ FUNCTION_WINDOW) / 16;
		const int32_t *known = x->program->table + in->imm; /* count, then pairs of index in the module and function */
		func = -1;
		for (int i = 0; i < known[0]; i++) {
			if ((uint64_t)known[1 + 2 * i] == index && to[first] % 16 == 0) func = known[2 + 2 * i];
		}
		if (func < 0) {
			ptx_fault(x, in, first, FAULT_CALL_TARGET)->address = to[first];
			return;
		}
	}
	const Func *callee = &x->program->funcs[func];
	Frame *f = g->frame;
	uint32_t base = (f->local_base + (uint32_t)f->func->local_bytes + 15u) & ~15u;
	Frame *n = f->depth < MOST_FRAMES && local_room(x, base + (uint32_t)callee->local_bytes) ? frame_take(x, func) : NULL;
	if (!n) {
		ptx_fault(x, in, -1, FAULT_STACK);
		return;
	}
	n->parent = f;
	n->site = site;
	n->return_pc = g->pc + 1;
	n->depth = f->depth + 1;
	n->lanes = g->count;
	n->local_base = base;
	copy_rows(x, g, x->program->table + site->first, site->args, f->local_base, base, 0);
	g->frame = n;
	g->pc = callee->entry;
}

static void function_return(Context *x, Group *g) {
	Frame *f = g->frame;
	if (!f->parent) {
		lanes_end(x, g);
		return;
	}
	const CallSite *site = f->site;
	copy_rows(x, g, x->program->table + site->first + 3 * site->args, site->rets, f->parent->local_base, f->local_base, 1);
	g->pc = f->return_pc;
	g->frame = frame_leave(x, f, g->count);
}

static void branch_index(Context *x, const Insn *in, Group *g) {
	const uint32_t *index = (uint32_t *)reg(x, g->frame, in->a);
	const int32_t *targets = x->program->table + in->x;
	while (g->count) {
		int first = g->lo, same = 0;
		while (!g->mask[first]) first++;
		if (index[first] >= (uint32_t)targets[0]) {
			ptx_fault(x, in, first, FAULT_BRANCH_INDEX)->value = index[first];
			return;
		}
		int32_t to = targets[1 + index[first]];
		for (int i = g->lo; i < g->hi; i++) {
			same += x->guard_mask[i] = g->mask[i] && index[i] < (uint32_t)targets[0] && targets[1 + index[i]] == to;
		}
		if (same == g->count) {
			g->pc = to;
			return;
		}
		if (!group_split(x, g, x->guard_mask, to)) return;
	}
}

/* What a backward jump finds when it looks around: whether the group goes on. */
static int look_around(Context *x, const Insn *in, Group *g, int lane) {
	Launch *l = x->launch;
	int64_t done = __atomic_add_fetch(&l->executed, x->steps - x->counted, __ATOMIC_RELAXED);
	x->counted = x->steps;
	x->check_at = x->effort + LOOK_AROUND;
	if (__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
		x->stopped = 1;
		return 0;
	}
	if (done > l->limit) {
		ptx_fault(x, in, lane, FAULT_LIMIT)->value = (uint64_t)l->limit;
		return 0;
	}
	for (int i = 0; i < x->group_count; i++) {
		Group *o = x->groups[i];
		if (o != g && o->wait == WAIT_NONE) x->rotation = ROTATION;
	}
	return x->rotation == 0 && x->effort < x->run_until;
}

/* The group to run: of the deepest call, at the lowest place; others at that place join it. *limit is where the
 * next one waits. In a rotation it is the one that has not run for longest. */
static Group *pick(Context *x, int32_t *limit) {
	Group *g = NULL;
	for (int i = 0; i < x->group_count; i++) {
		Group *o = x->groups[i];
		if (o->wait != WAIT_NONE) continue;
		if (!g) g = o;
		else if (x->rotation) g = o->stamp < g->stamp ? o : g;
		else if (o->frame->depth != g->frame->depth) g = o->frame->depth > g->frame->depth ? o : g;
		else if (o->pc < g->pc) g = o;
	}
	*limit = NEVER;
	if (!g) return NULL;
	for (int i = 0; i < x->group_count; i++) {
		Group *o = x->groups[i];
		if (o == g || o->wait != WAIT_NONE || o->frame != g->frame) continue;
		if (o->pc == g->pc) group_merge(x, g, o), i = -1;
		else if (o->pc > g->pc && o->pc < *limit && !x->rotation) *limit = o->pc;
	}
	g->stamp = ++x->stamp;
	return g;
}

static void stuck(Context *x) {
	Group *g = x->groups[0], *other = NULL;
	for (int i = 1; i < x->group_count; i++) {
		if (x->groups[i]->pc != g->pc || x->groups[i]->wait != g->wait) other = x->groups[i];
	}
	const Insn *in = &x->program->code[g->pc];
	int lane = g->lo;
	while (!g->mask[lane]) lane++;
	Fault *f = ptx_fault(x, in, lane, g->wait == WAIT_BARRIER ? FAULT_BARRIER_STUCK : FAULT_WARP_STUCK);
	f->value = (uint64_t)x->alive_count;
	f->address = g->barrier;
	f->other_lane = -1;
	if (!other) return;
	f->other_pc = other->pc;
	f->other_lane = other->lo;
	while (!other->mask[f->other_lane]) f->other_lane++;
	thread_of(x->launch, f->other_lane, f->other_thread);
}

enum { BLOCK_DONE, BLOCK_YIELDS, BLOCK_STOPPED };

/* Runs a block until it ends, until it gives way to another one, or until a fault. */
static int run(Context *x) {
	const Insn *code = x->program->code;
	x->run_until = x->effort + TURN;
	for (;;) {
		int32_t limit;
		Group *g = pick(x, &limit);
		if (x->stopped) return BLOCK_STOPPED;
		if (!g) {
			if (x->group_count == 0) return BLOCK_DONE;
			if (barrier_look(x)) continue;
			stuck(x);
			return BLOCK_STOPPED;
		}
		int64_t left = x->rotation ? x->rotation : INT64_MAX;
		x->rotation = 0;
		Frame *f = g->frame;
		Selection whole = group_selection(g);
		int32_t pc = g->pc;
		while (pc < limit && left-- > 0) {
			const Insn *in = &code[pc];
			Selection s = whole;
			x->steps++;
			x->effort++;
			x->lane_steps += whole.count;
			if (in->guard >= 0) {
				const uint8_t *p = reg(x, f, in->guard);
				s.count = x->table->masked(x->guard_mask + s.lo, whole.mask + s.lo, p + s.lo, in->guard_not, s.hi - s.lo);
				if (s.count == 0) {
					pc++;
					continue;
				}
				if (s.count != whole.count) {
					s.mask = x->guard_mask;
					s.direct = s.dense = 0;
					if (in->kind == K_BRANCH) {
						g->pc = pc + 1;
						group_split(x, g, x->guard_mask, in->x);
						goto reschedule;
					}
					if ((in->kind >= K_BRANCH && in->kind <= K_BARRIER) || (in->kind >= K_SHUFFLE && in->kind <= K_WMMA_STORE)) {
						/* the lanes that take part become a group of their own, the others go on */
						g->pc = pc + 1;
						g = group_split(x, g, x->guard_mask, pc);
						if (!g) return BLOCK_STOPPED;
						f = g->frame;
						whole = group_selection(g);
						limit = pc + 1;
					}
				}
			}
			switch (in->kind) {
			case K_ALU:
				alu(x, in, f, &s);
				pc++;
				continue;
			case K_BRANCH:
				if (in->x <= pc && UNLIKELY(x->effort >= x->check_at)) {
					int lane = g->lo;
					while (!g->mask[lane]) lane++;
					g->pc = in->x;
					if (!look_around(x, in, g, lane)) {
						if (x->stopped) return BLOCK_STOPPED;
						if (x->effort >= x->run_until) return BLOCK_YIELDS;
						goto reschedule;
					}
				}
				pc = in->x;
				continue;
			case K_LOAD: ptx_load(x, in, f, s); break;
			case K_STORE: ptx_store(x, in, f, s); break;
			case K_ATOMIC:
				x->effort += SPIN_SURCHARGE;
				ptx_atomic(x, in, f, s);
				break;
			case K_COPY_ASYNC: ptx_copy_async(x, in, f, s); break;
			case K_BRANCH_INDEX:
				g->pc = pc;
				branch_index(x, in, g);
				goto look;
			case K_EXIT:
				g->pc = pc;
				lanes_end(x, g);
				goto reschedule;
			case K_CALL:
				g->pc = pc;
				call(x, in, g);
				goto look;
			case K_RETURN:
				g->pc = pc;
				function_return(x, g);
				goto reschedule;
			case K_BARRIER:
				g->pc = pc;
				if (!barrier(x, in, g)) goto reschedule;
				pc = g->pc;
				continue;
			case K_SHUFFLE: case K_VOTE: case K_MATCH: case K_REDUX: case K_ELECT: case K_WARP_SYNC: case K_MMA:
			case K_LOAD_MATRIX: case K_STORE_MATRIX: case K_WMMA_LOAD: case K_WMMA_STORE:
				g->pc = pc;
				if (!together(x, in, g)) goto reschedule;
				pc = g->pc;
				continue;
			case K_ACTIVE_MASK: {
				uint32_t *d = (uint32_t *)reg(x, f, in->d);
				for (int i = s.lo; i < s.hi; i++) {
					if (s.mask[i]) d[i] = warp_bits(s.mask, i / 32);
				}
				break;
			}
			case K_LOCAL_ADDRESS:
				for (int i = s.lo; i < s.hi; i++) {
					if (!s.mask[i]) continue;
					uint64_t v = f->local_base + (uint64_t)in->imm;
					if (in->size_d == 4) ((uint32_t *)reg(x, f, in->d))[i] = (uint32_t)v;
					else ((uint64_t *)reg(x, f, in->d))[i] = v;
				}
				break;
			case K_IS_SPACE: {
				const uint8_t *a = reg(x, f, in->a);
				for (int i = s.lo; i < s.hi; i++) {
					uint64_t v = in->size_a == 4 ? ((uint32_t *)a)[i] : ((uint64_t *)a)[i];
					if (s.mask[i]) reg(x, f, in->d)[i] = (uint8_t)ptx_is_space(x, v, in->mode);
				}
				break;
			}
			case K_CLOCK:
				for (int i = s.lo; i < s.hi; i++) {
					if (!s.mask[i]) continue;
					uint64_t v = (uint64_t)x->effort >> in->imm;
					if (in->size_d == 4) ((uint32_t *)reg(x, f, in->d))[i] = (uint32_t)v;
					else ((uint64_t *)reg(x, f, in->d))[i] = v;
				}
				x->effort += SPIN_SURCHARGE; /* loops wait for a time, too */
				break;
			case K_FENCE: __atomic_thread_fence(__ATOMIC_SEQ_CST); break;
			case K_PRINTF: ptx_print(x, in, f, s); break;
			case K_ASSERT: ptx_assertion(x, in, f, s); break;
			case K_TRAP: {
				int lane = s.lo;
				while (!s.mask[lane]) lane++;
				ptx_fault(x, in, lane, in->mode ? FAULT_BREAK : FAULT_TRAP);
				break;
			}
			case K_ALLOC: ptx_alloc(x, in, f, s); break;
			case K_FREE: ptx_free_block(x, in, f, s); break;
			default: break;
			}
			if (UNLIKELY(x->stopped)) return BLOCK_STOPPED;
			pc++;
			continue;
		look: /* calls and computed jumps can go round in circles, too */
			if (!x->stopped && UNLIKELY(x->effort >= x->check_at)) {
				look_around(x, in, g, 0);
				if (!x->stopped && x->effort >= x->run_until) return BLOCK_YIELDS;
			}
			goto reschedule;
		}
		g->pc = pc;
	reschedule:;
		if (UNLIKELY(x->stopped)) return BLOCK_STOPPED;
	}
}

/* Sets a context to the begin of a block. Returns 0 if there is no memory. */
static int start(Context *x, int64_t block) {
	Launch *l = x->launch;
	x->block = block;
	x->serial++;
	x->block_id[0] = (int32_t)(block % l->grid[0]);
	x->block_id[1] = (int32_t)(block / l->grid[0] % l->grid[1]);
	x->block_id[2] = (int32_t)(block / ((int64_t)l->grid[0] * l->grid[1]));
	while (x->group_count) group_drop(x, x->groups[0]);
	memset(x->arrived, 0, sizeof x->arrived);
	memset(x->wanted, 0, sizeof x->wanted);
	for (int i = 0; i < x->padded; i++) x->alive[i] = i < x->lanes;
	x->alive_count = x->lanes;
	x->stopped = 0;
	x->rotation = 0;
	x->effort = x->steps = x->counted = x->lane_steps = 0;
	x->check_at = LOOK_AROUND;
	x->stamp = 0;
	x->epoch = 1;
	if (l->flags & FLAG_SHARED) memset(x->shadow.writer, 0, 2 * shadow_words_of(l) * sizeof *x->shadow.writer);
	if (l->shared) memset(x->shared, 0, (size_t)l->shared);
	if (!x->root) {
		x->root = frame_new(x, 0);
		if (!x->root) return 0;
	} else {
		fill_frame(x, x->root, 0);
	}
	x->root->lanes = x->lanes;
	if (!local_room(x, (uint32_t)x->root->func->local_bytes)) return 0;
	if (x->local) memset(x->local, 0, (size_t)x->local_stride * (size_t)x->padded);
	Group *g = group_new(x, x->root->func->entry, x->root);
	if (!g) return 0;
	memcpy(g->mask, x->alive, (size_t)x->padded);
	group_measure(x, g, 0, x->padded);
	return 1;
}

static void finish(Context *x) {
	Launch *l = x->launch;
	__atomic_add_fetch(&l->executed, x->steps - x->counted, __ATOMIC_RELAXED);
	__atomic_add_fetch(&l->lane_count, x->lane_steps, __ATOMIC_RELAXED);
	/* frames of calls that a fault cut short */
	for (int i = 0; i < x->group_count; i++) {
		Group *g = x->groups[i];
		for (Frame *f = g->frame; f; f = frame_leave(x, f, g->count)) {}
	}
	while (x->group_count) group_drop(x, x->groups[0]);
}

static const LaneTable *chosen;
static const char *chosen_name;

static int supports(const char *isa) {
#if defined(__x86_64__)
	int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
	if (strcmp(isa, "avx2") == 0) return avx2;
	if (strcmp(isa, "avx512") == 0) {
		return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	}
#endif
	return strcmp(isa, "base") == 0;
}

int ptx_use(const char *isa) {
	if (!supports(isa)) return 0;
	const LaneTable *t = &ptx_lanes_base;
	const char *name = "base";
#if defined(__x86_64__)
	if (strcmp(isa, "avx2") == 0) t = &ptx_lanes_avx2, name = "avx2";
	if (strcmp(isa, "avx512") == 0) t = &ptx_lanes_avx512, name = "avx512";
#endif
	__atomic_store_n(&chosen_name, name, __ATOMIC_SEQ_CST);
	__atomic_store_n(&chosen, t, __ATOMIC_SEQ_CST);
	return 1;
}

static const LaneTable *lane_table(void) {
	const LaneTable *t = __atomic_load_n(&chosen, __ATOMIC_SEQ_CST);
	if (t) return t;
	(void)(ptx_use("avx512") || ptx_use("avx2") || ptx_use("base"));
	return __atomic_load_n(&chosen, __ATOMIC_SEQ_CST);
}

const char *ptx_isa(void) {
	lane_table();
	return __atomic_load_n(&chosen_name, __ATOMIC_SEQ_CST);
}

/* Blocks that gave way wait in a queue; a worker alternates between the first of them and a new one. */
int64_t ptx_work(Launch *l, int64_t most) {
	Context *waiting = NULL, **last = &waiting, *spare = NULL;
	Bitmap *reads = NULL, *writes = NULL, *inputs = NULL;
	int64_t ended = 0, begun = 0;
	int turn_of_new = 1;
	if (l->flags & FLAG_RECORD) {
		reads = ptx_bitmap_new(l);
		writes = ptx_bitmap_new(l);
		inputs = ptx_bitmap_new(l);
	}
	for (;;) {
		Context *x = NULL;
		if (__atomic_load_n(&l->stop, __ATOMIC_SEQ_CST)) break;
		if ((turn_of_new || !waiting) && begun < most) {
			int64_t block = __atomic_load_n(&l->next, __ATOMIC_RELAXED);
			if (block < l->blocks) block = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
			if (block < l->blocks) {
				x = spare ? spare : context_take(l);
				spare = NULL;
				if (x) x->table = lane_table();
				if (!x || !start(x, block)) {
					Context none = {.launch = l, .program = l->program};
					ptx_fault(x ? x : &none, NULL, -1, FAULT_MEMORY);
					if (x) spare = x;
					break;
				}
				x->reads = reads;
				x->writes = writes;
				x->inputs = inputs;
				begun++;
			}
		}
		turn_of_new = 0;
		if (!x) {
			x = waiting;
			if (!x) break;
			waiting = x->next;
			if (!waiting) last = &waiting;
			turn_of_new = 1;
		}
		int how = run(x);
		if (how == BLOCK_YIELDS) {
			x->next = NULL;
			*last = x;
			last = &x->next;
			if (waiting == x) sched_yield(); /* what it waits for may be on another thread */
			continue;
		}
		finish(x);
		if (spare) context_give(l, spare);
		spare = x;
		if (how == BLOCK_DONE) ended++;
	}
	while (waiting) {
		Context *x = waiting;
		waiting = x->next;
		finish(x);
		context_give(l, x);
	}
	if (spare) context_give(l, spare);
	pthread_mutex_lock(&l->mutex);
	/* What another worker wrote may have been written before. */
	ptx_bitmap_subtract(l, l->inputs, writes);
	ptx_bitmap_subtract(l, inputs, l->writes);
	if (inputs) ptx_bitmap_merge(l, &l->inputs, inputs);
	if (reads) ptx_bitmap_merge(l, &l->reads, reads);
	if (writes) ptx_bitmap_merge(l, &l->writes, writes);
	pthread_mutex_unlock(&l->mutex);
	return ended;
}

/* ---- programs and launches ---- */

static void *copied(const void *from, size_t bytes) {
	void *p = malloc(bytes + 16);
	if (p && bytes) memcpy(p, from, bytes);
	return p;
}

Program *ptx_program_new(const Insn *code, int32_t code_count, const MemOperand *mems, int32_t mem_count,
                         const CallSite *calls, int32_t call_count, const Func *funcs, int32_t func_count,
                         const Fill *fills, int32_t fill_count, const int32_t *table, int32_t table_count,
                         int32_t shared_bytes, int32_t param_bytes) {
	Program *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->code = copied(code, (size_t)code_count * sizeof *code);
	p->mems = copied(mems, (size_t)mem_count * sizeof *mems);
	p->calls = copied(calls, (size_t)call_count * sizeof *calls);
	p->funcs = copied(funcs, (size_t)func_count * sizeof *funcs);
	p->fills = copied(fills, (size_t)fill_count * sizeof *fills);
	p->table = copied(table, (size_t)table_count * sizeof *table);
	p->code_count = code_count;
	p->func_count = func_count;
	p->shared_bytes = shared_bytes;
	p->param_bytes = param_bytes;
	pthread_mutex_init(&p->mutex, NULL);
	if (p->code && p->mems && p->calls && p->funcs && p->fills && p->table) return p;
	ptx_program_free(p);
	return NULL;
}

void ptx_program_free(Program *p) {
	if (!p) return;
	for (Context *x = p->idle, *next; x; x = next) next = x->next, context_free(x);
	free((void *)p->code);
	free((void *)p->mems);
	free((void *)p->calls);
	free((void *)p->funcs);
	free((void *)p->fills);
	free((void *)p->table);
	pthread_mutex_destroy(&p->mutex);
	free(p);
}

Launch *ptx_launch_new(Program *p, const int32_t *grid, const int32_t *block, int32_t dynamic_shared, uint32_t flags,
                       int64_t limit, const void *params, const Range *memory, int32_t memory_count, Range module) {
	Launch *l = calloc(1, sizeof *l);
	if (!l) return NULL;
	l->program = p;
	memcpy(l->grid, grid, sizeof l->grid);
	memcpy(l->block, block, sizeof l->block);
	l->lanes = block[0] * block[1] * block[2];
	l->padded = (l->lanes + LANES - 1) / LANES * LANES;
	l->dynamic_shared = dynamic_shared;
	l->shared = (p->shared_bytes + dynamic_shared + 15) / 16 * 16;
	l->flags = flags;
	l->limit = limit;
	l->params = copied(params, (size_t)p->param_bytes);
	l->memory = memory;
	l->memory_count = memory_count;
	l->module = module;
	l->blocks = (int64_t)grid[0] * grid[1] * grid[2];
	pthread_mutex_init(&l->mutex, NULL);
	ptx_launch_reset(l);
	if (l->params) return l;
	ptx_launch_free(l);
	return NULL;
}

/* Makes a launch ready to run (again). */
void ptx_launch_reset(Launch *l) {
	l->next = l->executed = l->lane_count = 0;
	l->stop = 0;
	l->fault.kind = FAULT_NONE;
	l->finding_count = 0;
	l->output_size = 0;
	memset(l->cooperative, 0, sizeof l->cooperative);
	l->cooperative[0] = sizeof l->cooperative;
	ptx_bitmap_free(l, l->reads);
	ptx_bitmap_free(l, l->writes);
	ptx_bitmap_free(l, l->inputs);
	l->reads = l->writes = l->inputs = NULL;
}

void ptx_launch_free(Launch *l) {
	if (!l) return;
	ptx_bitmap_free(l, l->reads);
	ptx_bitmap_free(l, l->writes);
	ptx_bitmap_free(l, l->inputs);
	free(l->params);
	free(l->output);
	pthread_mutex_destroy(&l->mutex);
	free(l);
}

void ptx_stop(Launch *l) {
	pthread_mutex_lock(&l->mutex);
	if (l->fault.kind == FAULT_NONE) {
		memset(&l->fault, 0, sizeof l->fault);
		l->fault.kind = FAULT_STOPPED;
		l->fault.pc = l->fault.other_pc = -1;
	}
	pthread_mutex_unlock(&l->mutex);
	__atomic_store_n(&l->stop, 1, __ATOMIC_SEQ_CST);
}

static const char *const names[] = {
#define LANE1(name, ...) #name,
#define LANE2 LANE1
#define LANE3 LANE1
#define LANE4 LANE1
#include "lanes.def"
#undef LANE1
#undef LANE2
#undef LANE3
#undef LANE4
};

const char *ptx_lane_name(int i) { return names[i]; }
int ptx_lane_count(void) { return LANE_COUNT; }
