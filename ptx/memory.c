/* Accesses to memory: which addresses, whether they are allowed, and moving the values. */
#include "context.h"

#include <pthread.h>

/* The addresses of one access by the selected lanes. */
typedef struct {
	int count;           /* how many lanes */
	int lane0;           /* the first of them, where lanes is null: then they follow each other */
	const int32_t *lanes;
	uint64_t *address;
	uint64_t add;        /* from an address to the host's */
	Span span;
} Access;

static inline int lane_of(const Access *a, int i) { return a->lanes ? a->lanes[i] : a->lane0 + i; }

/* ---- recording of the bytes of global memory ---- */

/* Words that are 0, of launches before: new ones cost a launch more than what it records, as the system clears each page. In
 * front of a list stands how many words it has. */
enum { IDLE_LISTS = 16, MOST_IDLE = 1 << 22 };
static struct {
	pthread_mutex_t mutex;
	uint64_t *lists[IDLE_LISTS];
	int count;
	uint64_t words; /* in all of them */
} idle = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t *zero_words(uint64_t words) {
	uint64_t *found = NULL;
	pthread_mutex_lock(&idle.mutex);
	for (int i = idle.count - 1; i >= 0 && !found; i--) {
		if (idle.lists[i][-1] < words || idle.lists[i][-1] / 4 > words) continue;
		found = idle.lists[i];
		idle.lists[i] = idle.lists[--idle.count];
		idle.words -= found[-1];
	}
	pthread_mutex_unlock(&idle.mutex);
	if (found) return found;
	found = calloc(words + 1, sizeof *found);
	if (!found) return NULL;
	*found = words;
	return found + 1;
}

/* Gives back words, of which those in [low, high) may be other than 0. */
static void give_words(uint64_t *list, uint64_t low, uint64_t high) {
	if (!list) return;
	if (low < high) memset(list + low, 0, (high - low) * sizeof *list);
	pthread_mutex_lock(&idle.mutex);
	int fits = idle.count < IDLE_LISTS && idle.words + list[-1] <= MOST_IDLE;
	if (fits) {
		idle.lists[idle.count++] = list;
		idle.words += list[-1];
	}
	pthread_mutex_unlock(&idle.mutex);
	if (!fits) free(list - 1);
}

Bitmap *ptx_bitmap_new(const Launch *l) {
	Bitmap *b = calloc(1, sizeof *b);
	size_t n = (size_t)l->memory_count + 1;
	if (!b) return NULL;
	b->bits = calloc(n, sizeof *b->bits);
	b->low = calloc(n, sizeof *b->low);
	b->high = calloc(n, sizeof *b->high);
	if (b->bits && b->low && b->high) return b;
	ptx_bitmap_free(l, b);
	return NULL;
}

void ptx_bitmap_free(const Launch *l, Bitmap *b) {
	if (!b) return;
	for (int i = 0; b->bits && b->low && b->high && i < l->memory_count; i++) give_words(b->bits[i], b->low[i], b->high[i]);
	free(b->bits);
	free(b->low);
	free(b->high);
	free(b);
}

/* Adds what one worker recorded to what others did; takes over or frees `from`. */
void ptx_bitmap_merge(const Launch *l, Bitmap **into, Bitmap *from) {
	if (!*into) {
		*into = from;
		return;
	}
	Bitmap *to = *into;
	for (int i = 0; i < l->memory_count; i++) {
		if (!from->bits[i]) continue;
		if (!to->bits[i]) {
			to->bits[i] = from->bits[i];
			to->low[i] = from->low[i];
			to->high[i] = from->high[i];
			from->bits[i] = NULL;
			continue;
		}
		for (uint64_t w = from->low[i]; w < from->high[i]; w++) to->bits[i][w] |= from->bits[i][w];
		if (from->low[i] < to->low[i]) to->low[i] = from->low[i];
		if (from->high[i] > to->high[i]) to->high[i] = from->high[i];
	}
	ptx_bitmap_free(l, from);
}

/* Takes bytes out; either may be null. */
void ptx_bitmap_subtract(const Launch *l, Bitmap *from, const Bitmap *what) {
	for (int i = 0; from && what && i < l->memory_count; i++) {
		if (!from->bits[i] || !what->bits[i]) continue;
		for (uint64_t w = what->low[i]; w < what->high[i]; w++) from->bits[i][w] &= ~what->bits[i][w];
	}
}

/* Marks the bytes [start, end), which lie in range r of the launch's memory, but for those of `but`, which may be null. */
static void record(const Launch *l, Bitmap *b, const Bitmap *but, int r, uint64_t start, uint64_t end) {
	if (!b) return;
	const Range *m = &l->memory[r];
	if (!b->bits[r]) {
		b->bits[r] = zero_words((m->end - m->start) / 64 + 2);
		if (!b->bits[r]) return;
		b->low[r] = ~0ull;
	}
	start -= m->start;
	end -= m->start;
	uint64_t first = start / 64, last = (end - 1) / 64, *bits = b->bits[r];
	if (first < b->low[r]) b->low[r] = first;
	if (last + 1 > b->high[r]) b->high[r] = last + 1;
	const uint64_t *not = but ? but->bits[r] : NULL;
	uint64_t head = ~0ull << (start & 63), tail = ~0ull >> (63 - ((end - 1) & 63));
	for (uint64_t w = first; w <= last; w++) {
		uint64_t mask = (w == first ? head : ~0ull) & (w == last ? tail : ~0ull);
		bits[w] |= not ? mask & ~not[w] : mask;
	}
}

int64_t ptx_intervals(Launch *l, int which, Range *out, int64_t room) {
	Bitmap *b = which == 0 ? l->reads : which == 1 ? l->writes : l->inputs;
	int64_t count = 0;
	if (!b) return 0;
	for (int r = 0; r < l->memory_count; r++) {
		if (!b->bits[r]) continue;
		uint64_t base = l->memory[r].start, open = 0;
		int is_open = 0;
		for (uint64_t w = b->low[r]; w <= b->high[r]; w++) {
			uint64_t v = w < b->high[r] ? b->bits[r][w] : 0;
			if (v == (is_open ? ~0ull : 0)) continue;
			for (int k = 0; k < 64;) { /* to the next change */
				uint64_t rest = (is_open ? ~v : v) >> k;
				if (!rest) break;
				k += __builtin_ctzll(rest);
				if (is_open) {
					if (count < room) out[count] = (Range){open, base + w * 64 + (uint64_t)k};
					count++;
				} else {
					open = base + w * 64 + (uint64_t)k;
				}
				is_open = !is_open;
			}
		}
	}
	return count;
}

/* ---- checks ---- */

static int first_lane(const Access *a, int i) { return lane_of(a, i); }

static Fault *access_fault(Context *x, const Insn *in, int lane, int kind, int access, int space, uint64_t address, int size) {
	Fault *f = ptx_fault(x, in, lane, kind);
	f->access = access;
	f->space = space;
	f->address = address;
	f->size = size;
	return f;
}

/* The range of the launch's memory that has these bytes, memory_count for variables of the module that are in none, or
 * -1. */
static int find_range(Context *x, uint64_t address, uint64_t end) {
	const Launch *l = x->launch;
	const Range *m = l->memory;
	if (x->range < l->memory_count && address >= m[x->range].start && end <= m[x->range].end) return x->range;
	int lo = 0, hi = l->memory_count; /* the last range that begins at or before the address */
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (m[mid].start <= address) lo = mid + 1;
		else hi = mid;
	}
	if (lo > 0 && end <= m[lo - 1].end && end >= address) {
		x->range = lo - 1;
		return lo - 1;
	}
	return address >= l->module.start && end <= l->module.end && address <= end ? l->memory_count : -1;
}

static int other_memory(const Context *x, uint64_t address, int size) {
	const Launch *l = x->launch;
	uint64_t own = (uint64_t)(uintptr_t)l->cooperative;
	return (address >= own && address + (uint64_t)size <= own + sizeof l->cooperative) || ptx_heap_holds(address, size);
}

static void record_access(Context *x, int r, int access, uint64_t start, uint64_t end) {
	if (r == x->launch->memory_count) return; /* a variable of the module is nobody else's */
	if (access & ACCESS_READ) {
		record(x->launch, x->reads, NULL, r, start, end);
		record(x->launch, x->inputs, x->writes, r, start, end);
	}
	if (access & ACCESS_WRITE) record(x->launch, x->writes, NULL, r, start, end);
}

/* Compilers make an atomic operation on 1 or 2 bytes of one on the word that has them, which ends behind an allocation of
 * an odd number of them. Memory comes in whole words, so that nobody else's bytes are there. */
static int reaches_behind(const Context *x, const Insn *in) {
	return (in->kind == K_ATOMIC || in->kind == K_LOAD) && x->program->mems[in->x].whole_word;
}

static int global_one(Context *x, const Insn *in, int lane, uint64_t address, int size, int access) {
	if (x->launch->flags & FLAG_NO_BOUNDS && address > 4096) return 1;
	uint64_t end = address + (uint64_t)size;
	int r = find_range(x, address, end);
	if (r < 0 && reaches_behind(x, in) && (r = find_range(x, address, address + 1)) >= 0) {
		end = r < x->launch->memory_count ? x->launch->memory[r].end : x->launch->module.end;
	}
	if (r < 0) {
		if (other_memory(x, address, size)) return 1;
		access_fault(x, in, lane, FAULT_BOUNDS, access, SPACE_GLOBAL, address, size);
		return 0;
	}
	if (x->launch->flags & FLAG_RECORD) record_access(x, r, access, address, end);
	return 1;
}

static int check_global(Context *x, const Insn *in, Access *a, int size, int access) {
	const Launch *l = x->launch;
	if (l->flags & FLAG_NO_BOUNDS && a->span.low > 4096) return 1;
	int r = find_range(x, a->span.low, a->span.high + (uint64_t)size);
	if (LIKELY(r >= 0)) {
		if (!(l->flags & FLAG_RECORD)) return 1;
		if (a->span.run) {
			record_access(x, r, access, a->span.low, a->span.high + (uint64_t)size);
			return 1;
		}
		for (int i = 0; i < a->count;) { /* pieces that follow each other are marked at once */
			uint64_t start = a->address[i], end = start + (uint64_t)size;
			for (i++; i < a->count && (a->address[i] == end || a->address[i] + (uint64_t)size == end); i++) {
				end = a->address[i] + (uint64_t)size;
			}
			record_access(x, r, access, start, end);
		}
		return 1;
	}
	for (int i = 0; i < a->count; i++) {
		if (!global_one(x, in, lane_of(a, i), a->address[i], size, access)) return 0;
	}
	return 1;
}

/* Reports at most one finding for each pair of instructions; `other` is a record of the shadow. */
static void shadow_report(Context *x, const Insn *in, int kind, int access, int lane, uint32_t other, int other_pc, uint64_t address) {
	int other_lane = other & SHADOW_SEVERAL ? -1 : (int)(other % MAX_LANES);
	ptx_finding(x, kind, access, (int)(in - x->program->code), lane, other_pc, other_lane, address);
}

static inline uint32_t shadow_record(const Context *x, int lane) { return x->epoch * SHADOW_EPOCH + (uint32_t)lane; }

/* The words [address, address + size) of shared memory are read or written by a lane. `used` says which of the
 * elements of `element` bytes somebody uses; atomics race with nothing but plain accesses, which others report. Accesses to
 * parts of a word are compared with nothing, as they may be to different bytes of it; neither are lanes that write a word by
 * one instruction, since those that hold copies of one value do so. */
static void shadow_words(Context *x, const Insn *in, int lane, uint64_t address, int size, int access, const uint8_t *used, int element) {
	Shadow *s = &x->shadow;
	uint32_t now = shadow_record(x, lane);
	int pc = (int)(in - x->program->code), atomic = access == ACCESS_BOTH;
	for (uint64_t w = address / 4; w <= (address + (uint64_t)size - 1) / 4; w++) {
		int whole = address <= w * 4 && address + (uint64_t)size >= w * 4 + 4;
		if (access & ACCESS_READ) {
			int k = used ? (int)((w * 4 > address ? w * 4 - address : 0) / (uint64_t)element) : 0;
			if (used && !used[k]) continue;
			if (UNLIKELY(s->writer[w] == 0)) {
				shadow_report(x, in, FIND_UNINITIALIZED, access, lane, 0, -1, address);
				s->writer[w] = 1; /* epoch 0: once is enough */
			} else if (UNLIKELY(shadow_meets(s->writer[w], now)) && !atomic && whole) {
				shadow_report(x, in, FIND_RACE_READ, access, lane, s->writer[w], s->writer_pc[w], address);
			}
			if (!atomic && whole) shadow_read(s->writer + w, s->reader + w, s->reader_pc + w, 1, now, pc);
		}
		if (access & ACCESS_WRITE && !whole) {
			s->writer[w] = 1; /* epoch 0 */
		} else if (access & ACCESS_WRITE && !atomic) {
			if (UNLIKELY(shadow_meets(s->writer[w], now)) && s->writer_pc[w] != pc) {
				shadow_report(x, in, FIND_RACE_WRITE, access, lane, s->writer[w], s->writer_pc[w], address);
			} else if (UNLIKELY(shadow_meets(s->reader[w], now))) {
				shadow_report(x, in, FIND_RACE_OVERWRITE, access, lane, s->reader[w], s->reader_pc[w], address);
			}
			s->writer[w] = now;
			s->writer_pc[w] = pc;
		}
		if (atomic && s->writer[w] == 0) s->writer[w] = 1;
	}
}

static inline int same_four(const uint32_t *p) {
	uint64_t first, second;
	memcpy(&first, p, 8);
	memcpy(&second, p + 2, 8);
	return first == second && first >> 32 == (uint32_t)first;
}

/* Notes that a lane uses n words; returns 0 where there may be something to say about it, which is not noted then. */
static inline int shadow_note(Context *x, const Insn *in, int lane, uint64_t word, int n, int access) {
	Shadow *s = &x->shadow;
	uint32_t now = shadow_record(x, lane);
	int pc = (int)(in - x->program->code);
	if (access == ACCESS_READ && n == 4 && same_four(s->writer + word) && same_four(s->reader + word)) {
		uint32_t writer = s->writer[word], differs = s->reader[word] ^ now, reader = s->reader[word] | SHADOW_SEVERAL;
		if (writer == 0 || shadow_meets(writer, now)) return 0;
		if (differs < 32) return 1;
		if (differs >= SHADOW_EPOCH) {
			reader = now;
			for (int i = 0; i < 4; i++) s->reader_pc[word + (uint64_t)i] = pc;
		}
		for (int i = 0; i < 4; i++) s->reader[word + (uint64_t)i] = reader;
		return 1;
	}
	if (access == ACCESS_READ) return !x->table->shadow_read(s->writer + word, s->reader + word, s->reader_pc + word, n, now, pc);
	for (int i = 0; i < n; i++) s->writer[word + (uint64_t)i] = now, s->writer_pc[word + (uint64_t)i] = pc;
	return 1;
}

static int used_by_others(Context *x, int lane, uint64_t word, int n) {
	const uint32_t *writer = x->shadow.writer + word, *reader = x->shadow.reader + word, now = shadow_record(x, lane);
	if (n == 4 && same_four(writer) && same_four(reader)) return shadow_meets(*writer, now) | shadow_meets(*reader, now);
	return x->table->shadow_used(writer, reader, n, now);
}

/* After how many lanes their offsets come again, at most all. */
static int period(const uint32_t *offset, int count) {
	for (int p = 1; p < count; p *= 2) {
		if (memcmp(offset, offset + p, (size_t)(count - p) * sizeof *offset) == 0) return p;
	}
	return count;
}

/* Finds what lanes access by their offsets, which is known if they did so lately. */
static const Footprint *footprint(Context *x, const uint32_t *of, int lane0, const uint32_t *offset, int count, int size) {
	Shadow *s = &x->shadow;
	for (int i = 0; i < FOOTPRINTS; i++) {
		const Footprint *known = &s->footprints[i];
		if (known->of == of && known->size == size && known->count == count && known->lane0 == lane0 &&
		    memcmp(known->offset, offset, (size_t)count * sizeof *offset) == 0) {
			return known;
		}
	}
	Footprint *p = &s->footprints[s->next++ % FOOTPRINTS];
	p->of = of, p->lane0 = lane0, p->count = count, p->size = size, p->pieces = 0;
	memcpy(p->offset, offset, (size_t)count * sizeof *offset);
	for (int i = 0, end; i < count; i = end) {
		end = i + 32 - (lane0 + i) % 32; /* of the warp */
		if (end > count) end = count;
		for (int k = i, once = i + period(offset + i, end - i); k < once; k++) {
			if (offset[k] % 4) {
				p->pieces = -1;
				return p;
			}
			if (k > i && offset[k] == offset[k - 1]) continue;
			if (k == i || offset[k] != offset[k - 1] + (uint32_t)size) {
				p->piece[p->pieces].lane = lane0 + k, p->piece[p->pieces].first = offset[k] / 4, p->piece[p->pieces++].count = 0;
			}
			p->piece[p->pieces - 1].count += (uint32_t)size / 4;
		}
	}
	return p;
}

/* Looks at the pieces of a footprint at once; returns 0 where lanes are to be looked at one by one. */
static int shadow_pieces(Context *x, const Insn *in, const Footprint *p, uint32_t add, int access) {
	if (p->pieces < 0 || add % 4) return 0;
	for (int i = 0; access == ACCESS_WRITE && i < p->pieces; i++) {
		if (used_by_others(x, p->piece[i].lane, p->piece[i].first + add / 4, (int)p->piece[i].count)) return 0;
	}
	int plain = 1;
	for (int i = 0; i < p->pieces; i++) {
		plain &= shadow_note(x, in, p->piece[i].lane, p->piece[i].first + add / 4, (int)p->piece[i].count, access);
	}
	return plain;
}

/* An access by lanes, which follow lane0 where `lanes` is null, each at its offset plus `add`. The offsets may be in a register. */
static void shadow_lanes(Context *x, const Insn *in, const uint32_t *of, const int32_t *lanes, int lane0, const uint32_t *offset,
                         uint32_t add, int count, int size, int access, const uint8_t *used, int element) {
	int whole = used != NULL; /* every element is used */
	for (int k = 0; whole && k < size / element; k++) whole = used[k];
	if (whole) used = NULL;
	if (!lanes && !used && size % 4 == 0 && access != ACCESS_BOTH &&
	    shadow_pieces(x, in, footprint(x, of, lane0, offset, count, size), add, access)) {
		return;
	}
	for (int i = 0; i < count; i++) shadow_words(x, in, lanes ? lanes[i] : lane0 + i, (uint64_t)offset[i] + add, size, access, used, element);
}

void ptx_shared_access(Context *x, const Insn *in, int lane, uint64_t address, int size, int access) {
	int words = size % 4 || address % 4 || access == ACCESS_BOTH ? 0 : size / 4;
	if (!words || (access == ACCESS_WRITE && used_by_others(x, lane, address / 4, words)) ||
	    !shadow_note(x, in, lane, address / 4, words, access)) {
		shadow_words(x, in, lane, address, size, access, NULL, 0);
	}
}

static const uint8_t *used_elements(const MemOperand *m, int access) { return access == ACCESS_READ && m->vec ? m->live : NULL; }

static int check_shared(Context *x, const Insn *in, Access *a, int size, int access, const uint8_t *used, int element) {
	uint64_t top = (uint64_t)x->shared_size;
	if (UNLIKELY(a->span.high + (uint64_t)size > top || a->span.high > top)) {
		for (int i = 0; i < a->count; i++) {
			if (a->address[i] + (uint64_t)size <= top && a->address[i] <= top) continue;
			access_fault(x, in, first_lane(a, i), FAULT_SHARED_BOUNDS, access, SPACE_SHARED, a->address[i], size)->value = top;
			return 0;
		}
	}
	if (UNLIKELY(x->launch->flags & FLAG_SHARED)) {
		uint32_t offset[MAX_LANES];
		for (int i = 0; i < a->count; i++) offset[i] = (uint32_t)a->address[i];
		shadow_lanes(x, in, NULL, a->lanes, a->lane0, offset, 0, a->count, size, access, used, element);
	}
	a->add = (uint64_t)(uintptr_t)x->shared;
	return 1;
}

int ptx_is_space(Context *x, uint64_t address, int space) {
	(void)x;
	uint64_t top = address >> WINDOW_SHIFT;
	return space == SPACE_GLOBAL || space == SPACE_CONST ? top == 0 && address != 0 : top == (uint64_t)space;
}

uint8_t *ptx_pointer(Context *x, const Insn *in, Frame *f, int space, uint64_t address, int size, int align, int lane,
                     int access) {
	(void)f;
	if (space == SPACE_GENERIC) {
		space = (int)(address >> WINDOW_SHIFT);
		address &= WINDOW(1) - 1;
		if (space == 0) space = SPACE_GLOBAL;
		if (space != SPACE_GLOBAL && space != SPACE_SHARED && space != SPACE_LOCAL && space != SPACE_PARAM) {
			access_fault(x, in, lane, FAULT_NO_SPACE, access, SPACE_GENERIC, address | WINDOW(space), size);
			return NULL;
		}
	}
	uint64_t base = 0, top = 0;
	int kind = FAULT_NONE;
	if (address & (uint64_t)(align - 1)) {
		access_fault(x, in, lane, FAULT_MISALIGNED, access, space, address, size);
		return NULL;
	}
	switch (space) {
	case SPACE_SHARED:
		base = (uint64_t)(uintptr_t)x->shared, top = (uint64_t)x->shared_size, kind = FAULT_SHARED_BOUNDS;
		if (x->launch->flags & FLAG_SHARED && address + (uint64_t)size <= top && address <= top) {
			ptx_shared_access(x, in, lane, address, size, access);
		}
		break;
	case SPACE_LOCAL:
		base = (uint64_t)(uintptr_t)(x->local + (size_t)x->local_stride * (size_t)lane);
		top = x->local_stride, kind = FAULT_LOCAL_BOUNDS;
		break;
	case SPACE_PARAM:
		base = (uint64_t)(uintptr_t)x->launch->params;
		top = (uint64_t)x->program->param_bytes, kind = FAULT_PARAM_BOUNDS;
		if (access & ACCESS_WRITE) top = 0;
		break;
	default: return global_one(x, in, lane, address, size, access) ? (uint8_t *)(uintptr_t)address : NULL;
	}
	if (address + (uint64_t)size > top || address > top) {
		access_fault(x, in, lane, kind, access, space, address, size)->value = top;
		return NULL;
	}
	return (uint8_t *)(uintptr_t)(base + address);
}

/* Finds the host addresses of an access of `size` bytes by the selected lanes. Returns 0 after a fault. */
static int resolve(Context *x, const Insn *in, Frame *f, const MemOperand *m, int size, const Selection *s, int access, Access *a) {
	const uint8_t *base = m->base >= 0 ? reg(x, f, m->base) + (size_t)s->lo * m->base_size : NULL;
	uint64_t offset = (uint64_t)m->offset;
	int space = m->space, align = m->size * m->vec > 16 ? 16 : m->size * m->vec;
	if (space == SPACE_LOCAL && m->base < 0) offset += f->local_base;
	a->address = x->address;
	a->add = 0;
	if (LIKELY(s->dense)) {
		a->count = s->hi - s->lo;
		a->lane0 = s->lo;
		a->lanes = NULL;
		a->span = x->table->addresses(a->address, base, base ? m->base_size : 0, offset, a->count, size);
	} else {
		uint64_t low = ~0ull, high = 0, bits = 0;
		int n = 0, run = 1;
		for (int i = s->lo; i < s->hi; i++) {
			if (!s->mask[i]) continue;
			int k = i - s->lo;
			uint64_t v = !base ? 0 : m->base_size == 8 ? ((const uint64_t *)base)[k] : ((const uint32_t *)base)[k];
			v += offset;
			x->lane_list[n] = i;
			a->address[n] = v;
			low = v < low ? v : low;
			high = v > high ? v : high;
			bits |= v;
			run &= v == a->address[0] + (uint64_t)n * (uint64_t)size;
			n++;
		}
		a->count = n;
		a->lane0 = 0;
		a->lanes = x->lane_list;
		a->span = (Span){low, high, bits, run && base};
		if (x->lane_list[n - 1] - x->lane_list[0] == n - 1) { /* without gaps after all */
			a->lane0 = x->lane_list[0];
			a->lanes = NULL;
		}
	}
	if (space == SPACE_GENERIC) {
		uint64_t low = a->span.low >> WINDOW_SHIFT, high = a->span.high >> WINDOW_SHIFT;
		if (low != high || low > SPACE_PARAM) { /* lanes in several spaces */
			for (int i = 0; i < a->count; i++) {
				uint8_t *p = ptx_pointer(x, in, f, SPACE_GENERIC, a->address[i], size, align, lane_of(a, i), access);
				if (!p) return 0;
				a->address[i] = (uint64_t)(uintptr_t)p;
			}
			a->span.run = 0;
			a->span.low = 0, a->span.high = 1;
			return 1;
		}
		space = low ? (int)low : SPACE_GLOBAL;
		if (low) {
			uint64_t window = WINDOW(low);
			for (int i = 0; i < a->count; i++) a->address[i] -= window;
			a->span.low -= window;
			a->span.high -= window;
		}
	}
	if (UNLIKELY(a->span.bits & (uint64_t)(align - 1))) {
		for (int i = 0; i < a->count; i++) {
			if (!(a->address[i] & (uint64_t)(align - 1))) continue;
			access_fault(x, in, lane_of(a, i), FAULT_MISALIGNED, access, space, a->address[i], size);
			return 0;
		}
	}
	switch (space) {
	case SPACE_GLOBAL:
	case SPACE_CONST: return check_global(x, in, a, size, access);
	case SPACE_SHARED: return check_shared(x, in, a, size, access, used_elements(m, access), m->size);
	case SPACE_PARAM:
		if (a->span.high + (uint64_t)size > (uint64_t)x->program->param_bytes || a->span.high > WINDOW(1)) {
			access_fault(x, in, lane_of(a, 0), FAULT_PARAM_BOUNDS, access, space, a->span.high, size);
			return 0;
		}
		a->add = (uint64_t)(uintptr_t)x->launch->params;
		return 1;
	default: /* local: each lane has its own */
		for (int i = 0; i < a->count; i++) {
			uint8_t *p = ptx_pointer(x, in, f, SPACE_LOCAL, a->address[i], size, 1, lane_of(a, i), access);
			if (!p) return 0;
			a->address[i] = (uint64_t)(uintptr_t)p;
		}
		a->span.run = 0;
		a->span.low = 0, a->span.high = 1;
		return 1;
	}
}

/* ---- loads and stores ---- */

typedef struct { uint64_t part[2]; } Wide;

#define AT(T) ((const T *)(uintptr_t)(a->address[i] + add))
#define LOAD_LOOP(T, R) \
	{ \
		R *to = (R *)d; \
		if (!a->lanes) { \
			to += a->lane0; \
			if (a->span.run) { \
				const uint8_t *p = (const uint8_t *)(uintptr_t)(a->address[0] + add); \
				if (stride == sizeof(T)) for (int i = 0; i < a->count; i++) to[i] = ((const T *)p)[i]; \
				else for (int i = 0; i < a->count; i++) to[i] = *(const T *)(p + (size_t)i * stride); \
			} else if (a->span.low == a->span.high) { \
				R v = (R)*(const T *)(uintptr_t)(a->address[0] + add); \
				for (int i = 0; i < a->count; i++) to[i] = v; \
			} else { \
				for (int i = 0; i < a->count; i++) to[i] = *AT(T); \
			} \
		} else { \
			for (int i = 0; i < a->count; i++) to[a->lanes[i]] = *AT(T); \
		} \
		break; \
	}

#define KEY(size, reg, sign) ((size) * 64 + (reg) * 2 + (sign))

static void load_element(const Access *a, uint64_t add, size_t stride, uint8_t *d, int size, int reg_size, int is_signed) {
	switch (KEY(size, reg_size, is_signed)) {
	case KEY(1, 2, 0): LOAD_LOOP(uint8_t, uint16_t)
	case KEY(1, 4, 0): LOAD_LOOP(uint8_t, uint32_t)
	case KEY(1, 8, 0): LOAD_LOOP(uint8_t, uint64_t)
	case KEY(1, 2, 1): LOAD_LOOP(int8_t, uint16_t)
	case KEY(1, 4, 1): LOAD_LOOP(int8_t, uint32_t)
	case KEY(1, 8, 1): LOAD_LOOP(int8_t, uint64_t)
	case KEY(2, 2, 0): case KEY(2, 2, 1): LOAD_LOOP(uint16_t, uint16_t)
	case KEY(2, 4, 0): LOAD_LOOP(uint16_t, uint32_t)
	case KEY(2, 8, 0): LOAD_LOOP(uint16_t, uint64_t)
	case KEY(2, 4, 1): LOAD_LOOP(int16_t, uint32_t)
	case KEY(2, 8, 1): LOAD_LOOP(int16_t, uint64_t)
	case KEY(4, 4, 0): case KEY(4, 4, 1): LOAD_LOOP(uint32_t, uint32_t)
	case KEY(4, 8, 0): LOAD_LOOP(uint32_t, uint64_t)
	case KEY(4, 8, 1): LOAD_LOOP(int32_t, uint64_t)
	case KEY(8, 8, 0): case KEY(8, 8, 1): LOAD_LOOP(uint64_t, uint64_t)
	default: /* 16 bytes */
		for (int i = 0; i < a->count; i++) memcpy(d + (size_t)lane_of(a, i) * 16, (void *)(uintptr_t)(a->address[i] + add), 16);
	}
}

/* Four 32-bit registers from 16 bytes a lane, the most frequent vector. */
static void load_four(const Context *x, const Access *a, uint32_t *d0, uint32_t *d1, uint32_t *d2, uint32_t *d3) {
	d0 += a->lane0, d1 += a->lane0, d2 += a->lane0, d3 += a->lane0;
	if (a->span.run) {
		x->table->split(d0, d1, d2, d3, (const uint32_t *)(uintptr_t)(a->address[0] + a->add), a->count);
		return;
	}
	for (int i = 0; i < a->count; i++) {
		const uint32_t *p = (const uint32_t *)(uintptr_t)(a->address[i] + a->add);
		uint32_t v0 = p[0], v1 = p[1], v2 = p[2], v3 = p[3];
		d0[i] = v0, d1[i] = v1, d2[i] = v2, d3[i] = v3;
	}
}

/* The frequent accesses: words of shared memory at offsets of 32 bits, by lanes without gaps. Returns null if an access
 * is another one; else where offset 0 is. */
static inline uint8_t *shared_words(Context *x, const Insn *in, Frame *f, const MemOperand *m, const Selection *s, int size, int access,
                                    const uint32_t **base) {
	if (m->space != SPACE_SHARED || m->size != 4 || m->reg_size != 4 || m->base_size != 4 || m->base < 0 || !s->dense ||
	    m->synchronizes) {
		return NULL;
	}
	uint32_t bits, most;
	*base = (const uint32_t *)reg(x, f, m->base) + s->lo;
	most = x->table->reach(*base, s->hi - s->lo, &bits);
	if ((uint64_t)m->offset + most + (uint64_t)size > (uint64_t)x->shared_size || m->offset < 0) return NULL;
	if ((bits | (uint32_t)m->offset) & (uint32_t)(size - 1)) return NULL;
	if (UNLIKELY(x->launch->flags & FLAG_SHARED)) {
		shadow_lanes(x, in, *base, NULL, s->lo, *base, (uint32_t)m->offset, s->hi - s->lo, size, access, used_elements(m, access), m->size);
	}
	return x->shared + m->offset;
}

void ptx_load(Context *x, const Insn *in, Frame *f, Selection s) {
	const MemOperand *m = &x->program->mems[in->x];
	int size = m->size * m->vec;
	const uint32_t *offsets;
	const uint8_t *words = shared_words(x, in, f, m, &s, size, ACCESS_READ, &offsets);
	if (words) {
		uint32_t *d[MAX_DIRECT];
		int n = s.hi - s.lo, sinks = 0;
		for (int k = 0; k < m->vec; k++) {
			sinks += m->regs[k] < 0;
			d[k] = m->regs[k] < 0 ? NULL : (uint32_t *)reg(x, f, m->regs[k]) + s.lo;
		}
		if (m->vec == 4 && !sinks) {
			x->table->gather4(d[0], d[1], d[2], d[3], words, offsets, n);
			return;
		}
		for (int k = 0; k < m->vec; k++) {
			if (d[k]) x->table->gather(d[k], words + 4 * k, offsets, n);
		}
		return;
	}
	if (m->synchronizes) x->effort += 256;
	if (m->space == SPACE_PARAM && m->base < 0 && LIKELY(s.direct)) { /* a parameter of the kernel */
		uint64_t v = 0;
		for (int k = 0; k < m->vec; k++) {
			if (m->regs[k] < 0) continue;
			const uint8_t *p = x->launch->params + m->offset + k * m->size;
			uint8_t *d = reg(x, f, m->regs[k]);
			memcpy(&v, p, (size_t)(m->size > 8 ? 8 : m->size));
			if (m->is_signed && m->size < 8) v = (uint64_t)((int64_t)(v << (64 - 8 * m->size)) >> (64 - 8 * m->size));
			switch (m->reg_size) {
			case 2: for (int i = s.lo; i < s.hi; i++) ((uint16_t *)d)[i] = (uint16_t)v; break;
			case 4: for (int i = s.lo; i < s.hi; i++) ((uint32_t *)d)[i] = (uint32_t)v; break;
			case 8: for (int i = s.lo; i < s.hi; i++) ((uint64_t *)d)[i] = v; break;
			default: for (int i = s.lo; i < s.hi; i++) memcpy(d + (size_t)i * 16, p, 16);
			}
		}
		return;
	}
	Access a;
	if (!resolve(x, in, f, m, size, &s, ACCESS_READ, &a)) return;
	if (m->fence) __atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (m->vec == 4 && m->size == 4 && m->reg_size == 4 && !a.lanes && m->regs[0] >= 0 && m->regs[1] >= 0 && m->regs[2] >= 0 && m->regs[3] >= 0) {
		load_four(x, &a, (uint32_t *)reg(x, f, m->regs[0]), (uint32_t *)reg(x, f, m->regs[1]), (uint32_t *)reg(x, f, m->regs[2]),
		          (uint32_t *)reg(x, f, m->regs[3]));
		return;
	}
	for (int k = 0; k < m->vec; k++) {
		if (m->regs[k] < 0) continue;
		load_element(&a, a.add + (uint64_t)(k * m->size), (size_t)size, reg(x, f, m->regs[k]), m->size, m->reg_size, m->is_signed);
	}
	if (m->fence) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define STORE_LOOP(R, T) \
	{ \
		const R *from = (const R *)d; \
		if (!a->lanes) { \
			from += a->lane0; \
			if (a->span.run && stride == sizeof(T)) { \
				T *p = (T *)(uintptr_t)(a->address[0] + add); \
				for (int i = 0; i < a->count; i++) p[i] = (T)from[i]; \
			} else { \
				for (int i = 0; i < a->count; i++) *(T *)(uintptr_t)(a->address[i] + add) = (T)from[i]; \
			} \
		} else { \
			for (int i = 0; i < a->count; i++) *(T *)(uintptr_t)(a->address[i] + add) = (T)from[a->lanes[i]]; \
		} \
		break; \
	}

static void store_element(const Access *a, uint64_t add, size_t stride, const uint8_t *d, int size, int reg_size) {
	switch (KEY(size, reg_size, 0)) {
	case KEY(1, 2, 0): STORE_LOOP(uint16_t, uint8_t)
	case KEY(1, 4, 0): STORE_LOOP(uint32_t, uint8_t)
	case KEY(1, 8, 0): STORE_LOOP(uint64_t, uint8_t)
	case KEY(2, 2, 0): STORE_LOOP(uint16_t, uint16_t)
	case KEY(2, 4, 0): STORE_LOOP(uint32_t, uint16_t)
	case KEY(2, 8, 0): STORE_LOOP(uint64_t, uint16_t)
	case KEY(4, 4, 0): STORE_LOOP(uint32_t, uint32_t)
	case KEY(4, 8, 0): STORE_LOOP(uint64_t, uint32_t)
	case KEY(8, 8, 0): STORE_LOOP(uint64_t, uint64_t)
	default: for (int i = 0; i < a->count; i++) memcpy((void *)(uintptr_t)(a->address[i] + add), d + (size_t)lane_of(a, i) * 16, 16);
	}
}

void ptx_store(Context *x, const Insn *in, Frame *f, Selection s) {
	const MemOperand *m = &x->program->mems[in->x];
	Access a;
	int size = m->size * m->vec;
	const uint32_t *offsets;
	uint8_t *words = shared_words(x, in, f, m, &s, size, ACCESS_WRITE, &offsets);
	if (words) {
		for (int k = 0; k < m->vec; k++) {
			const uint32_t *d = (const uint32_t *)reg(x, f, m->regs[k]) + s.lo;
			for (int i = 0; i < s.hi - s.lo; i++) memcpy(words + 4 * k + offsets[i], &d[i], 4);
		}
		return;
	}
	if (!resolve(x, in, f, m, size, &s, ACCESS_WRITE, &a)) return;
	if (m->fence) __atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (m->vec == 4 && m->size == 4 && m->reg_size == 4 && !a.lanes) {
		const uint32_t *d[4];
		for (int k = 0; k < 4; k++) d[k] = (const uint32_t *)reg(x, f, m->regs[k]) + a.lane0;
		if (a.span.run) {
			x->table->join((uint32_t *)(uintptr_t)(a.address[0] + a.add), d[0], d[1], d[2], d[3], a.count);
			return;
		}
		for (int i = 0; i < a.count; i++) {
			uint32_t *p = (uint32_t *)(uintptr_t)(a.address[i] + a.add);
			p[0] = d[0][i], p[1] = d[1][i], p[2] = d[2][i], p[3] = d[3][i];
		}
		return;
	}
	for (int k = 0; k < m->vec; k++) {
		store_element(&a, a.add + (uint64_t)(k * m->size), (size_t)size, reg(x, f, m->regs[k]), m->size, m->reg_size);
	}
}

/* ---- atomics ---- */

enum { OP_ADD, OP_MIN, OP_MAX, OP_AND, OP_OR, OP_XOR, OP_EXCH, OP_CAS, OP_INC, OP_DEC };
enum { TYPE_U32, TYPE_S32, TYPE_U64, TYPE_S64, TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_F16X2, TYPE_BF16X2, TYPE_B16, TYPE_B128 };

static float as_float(uint32_t v) { float f; memcpy(&f, &v, 4); return f; }
static uint32_t of_float(float f) { uint32_t v; memcpy(&v, &f, 4); return v; }

/* One 16-bit float operation, by the lane loops. */
static uint16_t half_op(const Context *x, int op, int bf, uint16_t a, uint16_t b) {
	uint16_t va[LANES] __attribute__((aligned(64))) = {a}, vb[LANES] __attribute__((aligned(64))) = {b};
	float fa[LANES] __attribute__((aligned(64))), fb[LANES] __attribute__((aligned(64)));
	static const Insn none;
	int widen = bf ? LANE_bf16_f32 : LANE_f16_f32;
	x->table->loops[widen](&none, LANES, fa, va, NULL, NULL, NULL);
	x->table->loops[widen](&none, LANES, fb, vb, NULL, NULL, NULL);
	fa[0] = op == OP_ADD ? fa[0] + fb[0] : fa[0] != fa[0] ? fb[0] : fb[0] != fb[0] ? fa[0] : (op == OP_MIN) == (fa[0] < fb[0]) ? fa[0] : fb[0];
	x->table->loops[bf ? LANE_f32_bf16 : LANE_f32_f16](&none, LANES, va, fa, NULL, NULL, NULL);
	return va[0];
}

/* What an operation makes of the old value. */
static uint64_t atomic_value(const Context *x, int op, int type, uint64_t a, uint64_t b) {
	switch (op) {
	case OP_AND: return a & b;
	case OP_OR: return a | b;
	case OP_XOR: return a ^ b;
	case OP_EXCH: return b;
	case OP_INC: return (uint32_t)a >= (uint32_t)b ? 0 : a + 1;
	case OP_DEC: return (uint32_t)a == 0 || (uint32_t)a > (uint32_t)b ? b : a - 1;
	default: break;
	}
	switch (type) {
	case TYPE_U32: return op == OP_ADD ? (uint32_t)(a + b) : (op == OP_MIN) == ((uint32_t)a < (uint32_t)b) ? a : b;
	case TYPE_S32: return op == OP_ADD ? (uint32_t)(a + b) : (op == OP_MIN) == ((int32_t)a < (int32_t)b) ? a : b;
	case TYPE_U64: return op == OP_ADD ? a + b : (op == OP_MIN) == (a < b) ? a : b;
	case TYPE_S64: return op == OP_ADD ? a + b : (op == OP_MIN) == ((int64_t)a < (int64_t)b) ? a : b;
	case TYPE_F32: return of_float(as_float((uint32_t)a) + as_float((uint32_t)b));
	case TYPE_F64: {
		double p, q;
		uint64_t r;
		memcpy(&p, &a, 8);
		memcpy(&q, &b, 8);
		p += q;
		memcpy(&r, &p, 8);
		return r;
	}
	case TYPE_F16: case TYPE_BF16: return half_op(x, op, type == TYPE_BF16, (uint16_t)a, (uint16_t)b);
	default: {
		int bf = type == TYPE_BF16X2;
		return half_op(x, op, bf, (uint16_t)a, (uint16_t)b) | (uint64_t)half_op(x, op, bf, (uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
	}
	}
}

#define UPDATE(T) \
	{ \
		T *p = (T *)where, old = __atomic_load_n(p, __ATOMIC_RELAXED), next; \
		do { \
			next = op == OP_CAS ? (old == (T)compare ? (T)value : old) : (T)atomic_value(x, op, type, old, (T)value); \
		} while (!__atomic_compare_exchange_n(p, &old, next, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
		return old; \
	}

static uint64_t atomic_update(const Context *x, int op, int type, int size, uint8_t *where, uint64_t value, uint64_t compare) {
	if (op == OP_ADD && size == 4 && type <= TYPE_S32) return __atomic_fetch_add((uint32_t *)where, (uint32_t)value, __ATOMIC_SEQ_CST);
	switch (size) {
	case 2: UPDATE(uint16_t)
	case 4: UPDATE(uint32_t)
	default: UPDATE(uint64_t)
	}
}

static pthread_mutex_t wide_atomics = PTHREAD_MUTEX_INITIALIZER; /* of 16 bytes */

static uint64_t element(const uint8_t *row, int size, int lane) {
	switch (size) {
	case 2: return ((const uint16_t *)row)[lane];
	case 4: return ((const uint32_t *)row)[lane];
	default: return ((const uint64_t *)row)[lane];
	}
}

/* Lane after lane, in their order. */
void ptx_atomic(Context *x, const Insn *in, Frame *f, Selection s) {
	const MemOperand *m = &x->program->mems[in->x];
	int op = in->mode, type = in->pair;
	Access a;
	if (!resolve(x, in, f, m, m->size, &s, ACCESS_BOTH, &a)) return;
	const uint8_t *value = reg(x, f, m->regs[0]), *compare = m->regs[1] >= 0 ? reg(x, f, m->regs[1]) : NULL;
	uint8_t *d = in->d >= 0 ? reg(x, f, in->d) : NULL;
	for (int i = 0; i < a.count; i++) {
		int lane = lane_of(&a, i);
		uint8_t *where = (uint8_t *)(uintptr_t)(a.address[i] + a.add);
		if (m->size == 16) {
			uint8_t old[16], now[16];
			memcpy(now, value + (size_t)lane * 16, 16); /* may share its registers with the result */
			pthread_mutex_lock(&wide_atomics);
			memcpy(old, where, 16);
			if (op == OP_EXCH || memcmp(old, compare + (size_t)lane * 16, 16) == 0) memcpy(where, now, 16);
			pthread_mutex_unlock(&wide_atomics);
			if (d) memcpy(d + (size_t)lane * 16, old, 16);
			continue;
		}
		uint64_t old = atomic_update(x, op, type, m->size, where, element(value, m->size, lane), compare ? element(compare, m->size, lane) : 0);
		if (!d) continue;
		if (m->size == 2) ((uint16_t *)d)[lane] = (uint16_t)old;
		else if (m->size == 4) ((uint32_t *)d)[lane] = (uint32_t)old;
		else ((uint64_t *)d)[lane] = old;
	}
}

/* cp.async: the copy is done at once, which a program that waits for it cannot tell. regs[0] of the destination
 * is the slot of the source's size, or -1. */
void ptx_copy_async(Context *x, const Insn *in, Frame *f, Selection s) {
	const MemOperand *to = &x->program->mems[in->x], *from = to + 1;
	int n = to->size;
	const uint32_t *sizes = to->regs[0] >= 0 ? (const uint32_t *)reg(x, f, to->regs[0]) : NULL;
	const uint8_t *ignore = to->regs[1] >= 0 ? reg(x, f, to->regs[1]) : NULL;
	if (!sizes && !ignore && s.count) { /* all lanes copy all bytes */
		Access src, dst;
		if (!resolve(x, in, f, from, n, &s, ACCESS_READ, &src)) return;
		uint64_t *kept = (uint64_t *)(void *)x->temp[0];
		memcpy(kept, src.address, (size_t)src.count * 8);
		if (!resolve(x, in, f, to, n, &s, ACCESS_WRITE, &dst)) return;
		for (int i = 0; i < dst.count; i++) {
			uint8_t *d = (uint8_t *)(uintptr_t)(dst.address[i] + dst.add);
			const uint8_t *p = (const uint8_t *)(uintptr_t)(kept[i] + src.add);
			if (n == 16) memcpy(d, p, 16);
			else if (n == 8) memcpy(d, p, 8);
			else memcpy(d, p, 4);
		}
		return;
	}
	for (int i = s.lo; i < s.hi; i++) {
		if (!s.mask[i]) continue;
		int bytes = ignore && ignore[i] ? 0 : sizes ? (int)sizes[i] : n;
		if (bytes < 0 || bytes > n) {
			access_fault(x, in, i, FAULT_COPY_SIZE, ACCESS_READ, SPACE_GLOBAL, 0, n)->value = (uint64_t)(uint32_t)bytes;
			return;
		}
		const uint8_t *b = to->base >= 0 ? reg(x, f, to->base) : NULL, *c = from->base >= 0 ? reg(x, f, from->base) : NULL;
		uint64_t target = (b ? element(b, to->base_size, i) : 0) + (uint64_t)to->offset;
		uint64_t source = (c ? element(c, from->base_size, i) : 0) + (uint64_t)from->offset;
		const uint8_t *p = NULL;
		if (bytes && !(p = ptx_pointer(x, in, f, from->space, source, bytes, n, i, ACCESS_READ))) return;
		uint8_t *d = ptx_pointer(x, in, f, to->space, target, n, n, i, ACCESS_WRITE);
		if (!d) return;
		if (bytes) memcpy(d, p, (size_t)bytes);
		memset(d + bytes, 0, (size_t)(n - bytes));
	}
}
