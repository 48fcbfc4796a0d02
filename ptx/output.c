/* What a kernel asks of the system: printing, assertions, memory from the heap. */
#include "context.h"

#include <stdio.h>

enum { MOST_TEXT = 1024, MOST_OUTPUT = 16 << 20 };

/* Reads a text at a generic address; returns null after a fault. */
static const char *read_text(Context *x, const Insn *in, Frame *f, uint64_t address, int lane, char *out, size_t room) {
	size_t n = 0;
	for (; n + 1 < room; n++) {
		const uint8_t *p = ptx_pointer(x, in, f, SPACE_GENERIC, address + n, 1, 1, lane, ACCESS_READ);
		if (!p) return NULL;
		out[n] = (char)*p;
		if (!*p) return out;
	}
	out[n] = 0;
	return out;
}

static void append(Launch *l, const char *text, size_t n) {
	if (l->output_size + (int64_t)n > MOST_OUTPUT) return;
	if (l->output_size + (int64_t)n > l->output_room) {
		int64_t size = 2 * (l->output_size + (int64_t)n) + 4096;
		char *grown = realloc(l->output, (size_t)size);
		if (!grown) return;
		l->output = grown;
		l->output_room = size;
	}
	memcpy(l->output + l->output_size, text, n);
	l->output_size += (int64_t)n;
}

/* One call of vprintf by one lane: the arguments lie at `args`, each at a multiple of its size. */
static int print_lane(Context *x, const Insn *in, Frame *f, int lane, uint64_t format, uint64_t args, char *line, size_t room) {
	char text[MOST_TEXT], piece[MOST_TEXT], spec[64];
	size_t n = 0;
	int count = 0;
	if (!read_text(x, in, f, format, lane, text, sizeof text)) return -1;
	for (const char *c = text; *c;) {
		if (*c != '%' || c[1] == '%') {
			if (n + 1 < room) line[n++] = *c;
			c += *c == '%' ? 2 : 1;
			continue;
		}
		const char *begin = c++;
		int longs = 0, width[2], widths = 0;
		for (; *c && strchr("-+ #0123456789.*lhjzt", *c); c++) {
			longs += *c == 'l' || *c == 'j' || *c == 'z' || *c == 't';
			if (*c != '*' || widths == 2) continue;
			const uint8_t *p = ptx_pointer(x, in, f, SPACE_GENERIC, args, 4, 4, lane, ACCESS_READ);
			if (!p) return -1;
			memcpy(&width[widths++], p, 4);
			args += 4;
			count++;
		}
		char kind = *c ? *c++ : 0;
		size_t k = 0;
		int stars = 0;
		for (const char *s = begin; s < c - (kind != 0) && k + 16 < sizeof spec; s++) {
			if (*s == '*' && stars < widths) k += (size_t)snprintf(spec + k, sizeof spec - k, "%d", width[stars++]);
			else if (!strchr("lhjzt", *s)) spec[k++] = *s;
		}
		spec[k] = 0;
		int is_float = kind != 0 && strchr("fFeEgGaA", kind) != NULL, size = is_float || longs || kind == 'p' || kind == 's' ? 8 : 4;
		uint64_t v = 0;
		piece[0] = 0;
		if (kind) {
			args = (args + (uint64_t)size - 1) & ~(uint64_t)(size - 1);
			const uint8_t *p = ptx_pointer(x, in, f, SPACE_GENERIC, args, size, size, lane, ACCESS_READ);
			if (!p) return -1;
			memcpy(&v, p, (size_t)size);
			args += (uint64_t)size;
			count++;
		}
		char full[80];
		if (is_float) {
			double d;
			memcpy(&d, &v, 8);
			snprintf(full, sizeof full, "%s%c", spec, kind);
			snprintf(piece, sizeof piece, full, d);
		} else if (kind == 's') {
			char arg[MOST_TEXT];
			if (!read_text(x, in, f, v, lane, arg, sizeof arg)) return -1;
			snprintf(full, sizeof full, "%ss", spec);
			snprintf(piece, sizeof piece, full, arg);
		} else if (kind == 'p') {
			snprintf(piece, sizeof piece, "0x%llx", (unsigned long long)v);
		} else if (kind == 'c') {
			snprintf(full, sizeof full, "%sc", spec);
			snprintf(piece, sizeof piece, full, (int)v);
		} else if (kind == 'd' || kind == 'i') {
			snprintf(full, sizeof full, "%slld", spec);
			snprintf(piece, sizeof piece, full, size == 8 ? (long long)v : (long long)(int32_t)v);
		} else if (kind != 0 && strchr("uxXo", kind)) {
			snprintf(full, sizeof full, "%sll%c", spec, kind);
			snprintf(piece, sizeof piece, full, (unsigned long long)v);
		} else {
			snprintf(piece, sizeof piece, "%s%c", spec, kind);
		}
		for (const char *s = piece; *s && n + 1 < room; s++) line[n++] = *s;
	}
	pthread_mutex_lock(&x->launch->mutex);
	append(x->launch, line, n);
	pthread_mutex_unlock(&x->launch->mutex);
	return count;
}

/* vprintf(format, arguments): what it was given lies in local memory; the count of arguments goes to d. */
void ptx_print(Context *x, const Insn *in, Frame *f, Selection s) {
	static __thread char *line;
	if (!line && !(line = malloc(8192))) return;
	for (int i = s.lo; i < s.hi; i++) {
		if (!s.mask[i]) continue;
		uint64_t format = ((uint64_t *)(void *)reg(x, f, in->a))[i], args = ((uint64_t *)(void *)reg(x, f, in->b))[i];
		int n = print_lane(x, in, f, i, format, args, line, 8192);
		if (x->stopped) return;
		if (in->d >= 0) ((uint32_t *)reg(x, f, in->d))[i] = (uint32_t)n;
	}
}

/* __assertfail(message, file, line, function, size of a character). */
void ptx_assertion(Context *x, const Insn *in, Frame *f, Selection s) {
	int lane = s.lo;
	while (!s.mask[lane]) lane++;
	char message[160] = "", file[160] = "", function[120] = "";
	if (!read_text(x, in, f, ((uint64_t *)(void *)reg(x, f, in->a))[lane], lane, message, sizeof message)) return;
	if (!read_text(x, in, f, ((uint64_t *)(void *)reg(x, f, in->b))[lane], lane, file, sizeof file)) return;
	if (!read_text(x, in, f, ((uint64_t *)(void *)reg(x, f, in->e))[lane], lane, function, sizeof function)) return;
	Fault *fault = ptx_fault(x, in, lane, FAULT_ASSERT);
	snprintf(fault->text, sizeof fault->text, "%s:%u: %s: Assertion `%s` failed", file, ((uint32_t *)reg(x, f, in->c))[lane], function, message);
}

/* ---- the heap of kernels, which lives as long as the process, as a device's lives as long as its context ---- */

static pthread_mutex_t heap_mutex = PTHREAD_MUTEX_INITIALIZER;
static Range *heap;
static int heap_count, heap_room;

int ptx_heap_holds(uint64_t address, int size) {
	int found = 0;
	pthread_mutex_lock(&heap_mutex);
	for (int i = 0; i < heap_count && !found; i++) found = address >= heap[i].start && address + (uint64_t)size <= heap[i].end;
	pthread_mutex_unlock(&heap_mutex);
	return found;
}

void ptx_alloc(Context *x, const Insn *in, Frame *f, Selection s) {
	for (int i = s.lo; i < s.hi; i++) {
		if (!s.mask[i]) continue;
		uint64_t size = ((uint64_t *)(void *)reg(x, f, in->a))[i];
		void *p = size < (8ull << 20) ? calloc(1, (size_t)size + 16) : NULL; /* 8 MiB is a device's heap */
		pthread_mutex_lock(&heap_mutex);
		if (p && heap_count == heap_room) {
			Range *grown = realloc(heap, sizeof *heap * (size_t)(2 * heap_room + 16));
			if (grown) heap = grown, heap_room = 2 * heap_room + 16;
		}
		if (p && heap_count < heap_room) {
			heap[heap_count++] = (Range){(uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + size};
		} else {
			free(p);
			p = NULL;
		}
		pthread_mutex_unlock(&heap_mutex);
		((uint64_t *)(void *)reg(x, f, in->d))[i] = (uint64_t)(uintptr_t)p;
	}
}

void ptx_free_block(Context *x, const Insn *in, Frame *f, Selection s) {
	for (int i = s.lo; i < s.hi; i++) {
		if (!s.mask[i]) continue;
		uint64_t p = ((uint64_t *)(void *)reg(x, f, in->a))[i];
		int found = p == 0;
		pthread_mutex_lock(&heap_mutex);
		for (int k = 0; k < heap_count && !found; k++) {
			if (heap[k].start != p) continue;
			heap[k] = heap[--heap_count];
			free((void *)(uintptr_t)p);
			found = 1;
		}
		pthread_mutex_unlock(&heap_mutex);
		if (!found) {
			Fault *fault = ptx_fault(x, in, i, FAULT_BOUNDS);
			fault->address = p;
			fault->space = SPACE_GLOBAL;
			return;
		}
	}
}
