/* The state of one block while it runs, and what the files of the executor call of each other. */
#ifndef PTX_CONTEXT_H
#define PTX_CONTEXT_H

#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "lanetable.h"

#define LIKELY(c) __builtin_expect(!!(c), 1)
#define UNLIKELY(c) __builtin_expect(!!(c), 0)

/* One call of a function, with its registers. Lanes that were called together share it until they return. */
typedef struct Frame {
	const Func *func;
	struct Frame *parent;
	const CallSite *site;
	int32_t return_pc, depth;
	int32_t lanes;        /* how many have not returned */
	uint32_t local_base;  /* where its part of each lane's local memory begins */
	int64_t serial;       /* of the block that its fills are for */
	uint8_t *regs;
	struct Frame *next;   /* of a free list */
} Frame;

enum { WAIT_NONE, WAIT_BARRIER, WAIT_WARP };

/* Lanes that are at one instruction in one frame. */
typedef struct Group {
	int32_t pc;
	uint8_t wait, barrier, waited;
	int32_t lo, hi;       /* its lanes lie in [lo, hi), multiples of LANES */
	int32_t count;
	uint8_t direct;       /* no lane of another group lies in [lo, hi): results may be written without a mask */
	uint8_t dense;        /* every lane in [lo, hi) belongs to it */
	int64_t stamp;        /* when it last ran */
	Frame *frame;
	uint8_t *mask;        /* a byte for each lane, 0 or 1 */
} Group;

/* The lanes that execute an instruction: a group, or those of it whose guard holds. */
typedef struct {
	const uint8_t *mask;
	int32_t lo, hi, count;
	uint8_t direct, dense;
} Selection;

/* What the lanes of a block access of shared memory by one instruction, if they follow each other: words without gaps, each
 * of one warp. Most instructions do so again and again, and by the offsets of a few registers. */
typedef struct {
	const uint32_t *of;        /* the register, null for another list of offsets; null offsets: nothing is known */
	int32_t lane0, count, size;
	int32_t pieces;            /* -1: some offsets are not those of words */
	uint32_t offset[MAX_LANES];
	struct {
		int32_t lane;
		uint32_t first, count; /* words */
	} piece[MAX_LANES];
} Footprint;
enum { FOOTPRINTS = 16 };

/* What the shared-memory check knows of each 4-byte word: the records of a lane that wrote it and of one that read it, and
 * their instructions. The reader is the first one since the last barrier, with a bit that says whether another warp has read
 * it, too. */
typedef struct {
	uint32_t *writer, *reader;
	int32_t *writer_pc, *reader_pc;
	Footprint *footprints;
	int32_t next; /* of footprints, which are replaced in turns */
} Shadow;

struct Bitmap {
	uint64_t **bits;      /* one bit a byte, by range of the launch's memory */
	uint64_t *low, *high; /* words touched, [low, high) */
};

struct Context {
	Launch *launch;
	const Program *program;
	const LaneTable *table;
	Context *next;         /* of a list */
	int32_t lanes, padded, block_dim[3], shared_size, warps;
	int64_t block;         /* index in the grid, or -1 */
	int32_t block_id[3];
	int64_t serial;        /* counts the blocks that ran here */
	Group *groups[MAX_LANES + 1];
	int32_t group_count;
	Group *spare[MAX_LANES + 1];
	int32_t spare_count;
	uint8_t *alive;
	int32_t alive_count;
	int32_t arrived[16], wanted[16]; /* barriers */
	Frame *root;
	Frame **free_frames;   /* by function */
	uint8_t *shared;
	int32_t shared_room;
	uint8_t *local;
	uint32_t local_stride; /* bytes per lane */
	uint8_t *temp[5];      /* 16 bytes for each lane, twice */
	uint64_t *address;
	int32_t *lane_list;
	uint8_t *guard_mask;
	uint8_t *matrices;     /* room for matrix products */
	uint8_t *rows;         /* registers of lanes that meet from several places */
	int32_t range;         /* index of the range of memory that was hit last */
	uint64_t stamp;
	int64_t effort;        /* instructions, and a surcharge for what spinning loops do */
	int64_t check_at;      /* when a backward jump looks around */
	int64_t run_until;     /* when another block may run */
	int64_t steps, counted, lane_steps;
	int64_t rotation;      /* > 0: the group that runs is not the lowest; instructions left to it */
	int stopped;           /* a fault, or told to stop */
	Shadow shadow;
	uint32_t epoch;
	Bitmap *reads, *writes, *inputs; /* of the worker */
};

static inline uint8_t *reg(const Context *x, const Frame *f, int32_t slot) {
	return f->regs + (size_t)slot * (size_t)x->padded;
}

static inline Selection group_selection(const Group *g) {
	return (Selection){g->mask, g->lo, g->hi, g->count, g->direct, g->dense};
}

/* context.c */
Fault *ptx_fault(Context *x, const Insn *in, int lane, int kind);
void ptx_finding(Context *x, int kind, int access, int pc, int lane, int other_pc, int other_lane, uint64_t address);

/* memory.c */
void ptx_load(Context *x, const Insn *in, Frame *f, Selection s);
void ptx_store(Context *x, const Insn *in, Frame *f, Selection s);
void ptx_atomic(Context *x, const Insn *in, Frame *f, Selection s);
void ptx_copy_async(Context *x, const Insn *in, Frame *f, Selection s);
/* The host address of one lane's access, or null after a fault. */
/* The check of shared memory for bytes inside it, where it is wanted. */
void ptx_shared_access(Context *x, const Insn *in, int lane, uint64_t address, int size, int access);
uint8_t *ptx_pointer(Context *x, const Insn *in, Frame *f, int space, uint64_t address, int size, int align, int lane,
                     int access);
int ptx_is_space(Context *x, uint64_t address, int space);
Bitmap *ptx_bitmap_new(const Launch *l);
void ptx_bitmap_merge(const Launch *l, Bitmap **into, Bitmap *from);
void ptx_bitmap_subtract(const Launch *l, Bitmap *from, const Bitmap *what);
void ptx_bitmap_free(const Launch *l, Bitmap *b);

/* warp.c: executes an instruction of a warp for `lanes` of it, with registers in rows of 32 lanes from `lane0` on. */
void ptx_warp(Context *x, const Insn *in, Frame *f, int warp, uint32_t lanes);

/* output.c */
void ptx_print(Context *x, const Insn *in, Frame *f, Selection s);
void ptx_assertion(Context *x, const Insn *in, Frame *f, Selection s);
void ptx_alloc(Context *x, const Insn *in, Frame *f, Selection s);
void ptx_free_block(Context *x, const Insn *in, Frame *f, Selection s);
int ptx_heap_holds(uint64_t address, int size);

#endif
