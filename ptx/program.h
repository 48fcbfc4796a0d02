/* What the decoder in Go and the executor in C share: the instructions of a kernel, the state of a launch.
 *
 * A register is an array with one element for each thread ("lane") of a block. Arrays of one call frame lie
 * one behind another; a slot is an array's place as bytes per lane, so that the array of slot s begins at
 * frame + s * lanes, with lanes rounded up to a multiple of LANES. */
#ifndef PTX_PROGRAM_H
#define PTX_PROGRAM_H

#include <pthread.h>
#include <stdint.h>

enum {
	LANES = 32,        /* lane loops always run over a multiple of this */
	MAX_LANES = 1024,  /* threads of a block */
	MAX_WARPS = MAX_LANES / 32,
	MAX_DIRECT = 8,    /* registers that a vector load or store names */
};

/* Kinds of instructions. */
enum {
	K_ALU,
	K_BRANCH,
	K_BRANCH_INDEX,
	K_EXIT,
	K_CALL,
	K_RETURN,
	K_BARRIER,
	K_LOAD,
	K_STORE,
	K_ATOMIC,
	K_COPY_ASYNC,
	K_SHUFFLE,
	K_VOTE,
	K_MATCH,
	K_REDUX,
	K_ELECT,
	K_WARP_SYNC,
	K_MMA,
	K_LOAD_MATRIX,
	K_STORE_MATRIX,
	K_WMMA_LOAD,
	K_WMMA_STORE,
	K_ACTIVE_MASK,
	K_LOCAL_ADDRESS,
	K_IS_SPACE,
	K_CLOCK,
	K_FENCE,
	K_PRINTF,
	K_ASSERT,
	K_TRAP,
	K_ALLOC,
	K_FREE,
	K_NOP,
};

/* What an ALU instruction does besides its lane loop; an instruction without any takes the short way. */
enum {
	MOD_FTZ = 1,       /* subnormal operands and results become zero */
	MOD_SAT = 2,       /* the result is clamped to [0, 1] */
	MOD_RELU = 4,      /* a negative result becomes zero */
	MOD_HALF = 8,      /* operands are f16: the loop works on f32 */
	MOD_BF16 = 16,     /* the same for bf16 */
	MOD_KEEP = 32,     /* the result is not narrowed (with MOD_HALF and MOD_BF16) */
	MOD_ROUND = 64,    /* rounds as `round` says */
};

enum { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP };

/* State spaces. Generic addresses of shared, local and parameter memory have a number in their top byte,
 * which no address of a host has. */
enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_CONST };
#define WINDOW_SHIFT 56
#define WINDOW(space) ((uint64_t)(space) << WINDOW_SHIFT)

typedef struct {
	uint8_t kind;
	uint8_t mods;
	uint8_t round;
	uint8_t pair;       /* two elements in each lane: f16x2 and its like */
	uint8_t guard_not;
	uint8_t mode;       /* which variant of the kind */
	uint8_t size_d, size_a, size_b, size_c, size_e; /* bytes per lane */
	uint8_t sources;    /* how many of a, b, c, e there are */
	uint16_t fn;        /* lane loop of K_ALU */
	int32_t guard;      /* slot of the predicate, or -1 */
	int32_t d, a, b, c, e;
	int32_t x;          /* target of a branch, index into a side table, or a second destination */
	int32_t loc;        /* index of the source line, or -1 */
	int64_t imm;
} Insn;

/* An operand in memory. */
typedef struct {
	uint8_t space, size, vec, base_size;
	uint8_t is_signed;   /* a narrow value is extended with its sign */
	uint8_t synchronizes; /* volatile, relaxed, acquire, release: it may be what a loop waits for */
	uint8_t whole_word;   /* it may reach behind the end of memory in which its word begins */
	uint8_t fence;       /* a fence in front (store) or behind (load) */
	uint8_t reg_size;
	int32_t base;        /* slot, or -1 */
	int64_t offset;
	int32_t regs[MAX_DIRECT]; /* slots, -1 for a sink */
	uint8_t live[MAX_DIRECT]; /* the loaded value is read by somebody */
} MemOperand;

/* A call: what is copied between the local memories of caller and callee. */
typedef struct {
	int32_t func;       /* or -1: slot `reg` has the address */
	int32_t reg;
	int32_t first, args, rets; /* rows of three in Program.table: offset in the caller, in the callee, size */
} CallSite;

/* How a frame's arrays that no instruction writes are filled. */
enum {
	FILL_CONST, FILL_TID, FILL_CTAID = FILL_TID + 3, FILL_NTID = FILL_CTAID + 3, FILL_NCTAID = FILL_NTID + 3,
	FILL_LANEID = FILL_NCTAID + 3, FILL_WARPID, FILL_NWARPID, FILL_MASK_EQ, FILL_MASK_LT, FILL_MASK_LE,
	FILL_MASK_GT, FILL_MASK_GE, FILL_DYNAMIC_SHARED, FILL_TOTAL_SHARED, FILL_COOP_LOW, FILL_COOP_HIGH,
	FILL_ZERO,          /* registers that may be read before they are written */
};

typedef struct {
	int32_t slot;
	uint8_t size, what;
	uint64_t bits;      /* of FILL_CONST */
} Fill;

typedef struct {
	int32_t entry;       /* index of the first instruction */
	int32_t frame_bytes; /* per lane */
	int32_t local_bytes; /* per lane */
	int32_t fills, fill_count; /* in Program.fills */
} Func;

typedef struct Context Context;

/* A decoded kernel with all functions that it may call. It does not change after it was made. */
typedef struct {
	const Insn *code;
	const MemOperand *mems;
	const CallSite *calls;
	const Func *funcs;
	const Fill *fills;
	const int32_t *table;
	int32_t code_count, func_count;
	int32_t shared_bytes, param_bytes;
	pthread_mutex_t mutex; /* of idle */
	Context *idle;         /* contexts of earlier launches */
	int32_t idle_count;
} Program;

typedef struct { uint64_t start, end; } Range;

/* Why a kernel ended. */
enum {
	FAULT_NONE,
	FAULT_BOUNDS,        /* address, size, mode: outside of all memory that the launch may touch */
	FAULT_MISALIGNED,
	FAULT_SHARED_BOUNDS,
	FAULT_LOCAL_BOUNDS,
	FAULT_PARAM_BOUNDS,
	FAULT_CONST_WRITE,
	FAULT_NO_SPACE,      /* the address belongs to no space */
	FAULT_BARRIER_STUCK,
	FAULT_WARP_STUCK,
	FAULT_BARRIER_BAD,   /* barrier number or thread count */
	FAULT_ASSERT,
	FAULT_TRAP,
	FAULT_BREAK,
	FAULT_LIMIT,
	FAULT_STACK,
	FAULT_BRANCH_INDEX,
	FAULT_CALL_TARGET,
	FAULT_MEMORY,        /* the host has no memory left */
	FAULT_STOPPED,
	FAULT_COPY_SIZE,
	/* findings of the optional checks; the kernel goes on */
	FIND_RACE_READ,      /* a read meets a write of another warp */
	FIND_RACE_WRITE,     /* two writes */
	FIND_RACE_OVERWRITE, /* a write meets a read */
	FIND_UNINITIALIZED,
	FIND_BARRIER_PLACES, /* threads of a block wait at one barrier at different places */
};

enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 };

typedef struct {
	int32_t kind, access, size, space;
	int32_t pc, other_pc;  /* the second place, or -1 */
	int32_t lane, other_lane;
	int32_t block[3], thread[3], other_thread[3];
	uint64_t address, value; /* value: what the text needs, by kind */
	uint64_t count;
	char text[512];        /* of an assertion */
} Fault;

enum { MAX_FINDINGS = 64 };

/* Bits of Launch.flags. */
enum { FLAG_RECORD = 1, FLAG_SHARED = 2, FLAG_SYNC = 4, FLAG_NO_BOUNDS = 8 };

typedef struct Bitmap Bitmap;

/* One launch. Any number of threads may run blocks of it at once. */
typedef struct {
	Program *program;
	int32_t grid[3], block[3];
	int32_t lanes;         /* threads of a block */
	int32_t padded;        /* rounded up to a multiple of LANES */
	int32_t dynamic_shared, shared; /* bytes; shared is all of it, rounded up */
	uint32_t flags;
	uint8_t *params;
	const Range *memory;   /* sorted, disjoint; shared with other launches, its owner keeps it */
	int32_t memory_count;
	Range module;          /* the variables of the module */
	int64_t blocks;        /* of the grid */
	int64_t limit;         /* instructions of all blocks */
	int64_t next;          /* atomic: the next block */
	int64_t executed;      /* atomic: instructions, roughly while it runs */
	int64_t lane_count;    /* atomic: instructions times threads */
	int32_t stop;          /* atomic: end soon */
	pthread_mutex_t mutex; /* of what follows */
	Fault fault;
	Fault findings[MAX_FINDINGS];
	int32_t finding_count;
	char *output;
	int64_t output_size, output_room;
	Bitmap *reads, *writes;
	Bitmap *inputs;        /* read before the launch wrote it */
	uint32_t cooperative[16]; /* workspace of a grid's barrier */
} Launch;

/* Runs blocks of a launch until none is left, for at most `most` of them. May be called by several threads at
 * once. Returns the number of blocks that ended. */
int64_t ptx_work(Launch *l, int64_t most);

Program *ptx_program_new(const Insn *code, int32_t code_count, const MemOperand *mems, int32_t mem_count,
                         const CallSite *calls, int32_t call_count, const Func *funcs, int32_t func_count,
                         const Fill *fills, int32_t fill_count, const int32_t *table, int32_t table_count,
                         int32_t shared_bytes, int32_t param_bytes);
void ptx_program_free(Program *p);

Launch *ptx_launch_new(Program *p, const int32_t *grid, const int32_t *block, int32_t dynamic_shared, uint32_t flags,
                       int64_t limit, const void *params, const Range *memory, int32_t memory_count, Range module);
void ptx_launch_reset(Launch *l);
void ptx_launch_free(Launch *l);
void ptx_stop(Launch *l);

/* Merged intervals of the bytes read (which = 0), written (1), or read before the launch wrote them (2), at most `room`;
 * returns how many there are. */
int64_t ptx_intervals(Launch *l, int which, Range *out, int64_t room);

/* Names of the lane loops, in the order of Insn.fn. */
const char *ptx_lane_name(int i);
int ptx_lane_count(void);
/* The instruction set that the lane loops use here; ptx_use chooses a lower one for tests and says whether it exists. */
const char *ptx_isa(void);
int ptx_use(const char *isa);

#endif
