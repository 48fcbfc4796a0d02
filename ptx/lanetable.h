/* The lane loops of one instruction set. */
#ifndef PTX_LANETABLE_H
#define PTX_LANETABLE_H

#include "program.h"

/* Runs over n lanes, a multiple of LANES; all pointers are aligned to 32 bytes. */
typedef void LaneLoop(const Insn *in, int n, void *d, const void *a, const void *b, const void *c, const void *e);

enum {
#define LANE1(name, ...) LANE_##name,
#define LANE2 LANE1
#define LANE3 LANE1
#define LANE4 LANE1
#include "lanes.def"
#undef LANE1
#undef LANE2
#undef LANE3
#undef LANE4
	LANE_COUNT
};

/* What the addresses of the lanes of a memory access have in common. */
typedef struct {
	uint64_t low, high; /* the least and the greatest */
	uint64_t bits;      /* all of them or-ed */
	int run;            /* each one is the one before plus the size of an access */
} Span;

/* Records of the shared-memory check: an epoch, which begins with a barrier, and a lane of the block. 0 is none, and epoch 0
 * none of a block. */
enum { SHADOW_SEVERAL = MAX_LANES, SHADOW_EPOCH = 2 * MAX_LANES, SHADOW_EPOCHS = 1 << 21 };

/* Whether a record is of the epoch of another one, and of another warp, or of several. */
static inline int shadow_meets(uint32_t record, uint32_t now) { return (record ^ now) - 32 < SHADOW_EPOCH - 32; }

/* Notes that a lane reads n words; returns whether nobody wrote some of them, or another warp in this epoch. */
static inline int shadow_read(const uint32_t *writer, uint32_t *reader, int32_t *reader_pc, int n, uint32_t now, int32_t pc) {
	uint32_t odd = 0;
	for (int i = 0; i < n; i++) {
		uint32_t differs = reader[i] ^ now;
		odd |= (uint32_t)(writer[i] == 0) | (uint32_t)shadow_meets(writer[i], now);
		reader_pc[i] = differs < SHADOW_EPOCH ? reader_pc[i] : pc;
		reader[i] = differs < 32 ? reader[i] : differs < SHADOW_EPOCH ? reader[i] | SHADOW_SEVERAL : now;
	}
	return odd != 0;
}

typedef struct {
	LaneLoop *loops[LANE_COUNT];
	/* Writes base[i] + offset into out and describes it, for n lanes. `base` is null for 0, of 4 or 8 bytes else. */
	Span (*addresses)(uint64_t *out, const void *base, int base_size, uint64_t offset, int n, int stride);
	/* d[i] = mask[i] ? t[i] : d[i] for elements of `size` bytes. */
	void (*blend)(void *d, const void *t, const uint8_t *mask, int n, int size);
	/* Writes mask[i] & (p[i] ^ invert) into out, for n lanes; returns how many are 1. */
	int (*masked)(uint8_t *out, const uint8_t *mask, const uint8_t *p, int invert, int n);
	/* c += a b for rows of a (rows by k) and b (k by 8), all f32. */
	void (*multiply)(float *c, const float *a, const float *b, int rows, int k);
	/* The greatest of n offsets; *bits is all of them or-ed. */
	uint32_t (*reach)(const uint32_t *base, int n, uint32_t *bits);
	/* Words at p + base[i], one or four for each lane; n is a multiple of LANES. */
	void (*gather)(uint32_t *d, const uint8_t *p, const uint32_t *base, int n);
	void (*gather4)(uint32_t *d0, uint32_t *d1, uint32_t *d2, uint32_t *d3, const uint8_t *p, const uint32_t *base, int n);
	/* Between four registers and the words of memory that follow each other. */
	void (*split)(uint32_t *d0, uint32_t *d1, uint32_t *d2, uint32_t *d3, const uint32_t *p, int n);
	void (*join)(uint32_t *p, const uint32_t *d0, const uint32_t *d1, const uint32_t *d2, const uint32_t *d3, int n);
	int (*shadow_read)(const uint32_t *writer, uint32_t *reader, int32_t *reader_pc, int n, uint32_t now, int32_t pc);
	/* Whether another warp used some of n words in this epoch. */
	int (*shadow_used)(const uint32_t *writer, const uint32_t *reader, int n, uint32_t now);
	void (*widen_f16)(float *out, const uint16_t *in, int n);
	void (*widen_bf16)(float *out, const uint16_t *in, int n);
	void (*narrow_f16)(uint16_t *out, const float *in, int n);
} LaneTable;

extern const LaneTable ptx_lanes_base;
#if defined(__x86_64__)
extern const LaneTable ptx_lanes_avx2, ptx_lanes_avx512;
#endif

#endif
