/* A look-alike of the CUDA driver library for tests, with no device behind it.
 *
 * It keeps the contract of the driver API and is never friendlier: device
 * memory cannot be touched by the host, handles of closed objects come back for
 * new ones, work runs late, and errors of a device stay. What a GPU may do in
 * several ways, it does in the way that is harder for the caller.
 *
 * One lock guards everything. It is never held while a host function or a
 * kernel runs, nor while bytes are copied. Functions whose comment says so
 * expect it held; they may let go of it while they wait. */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUmemoryPool; /* streams: 0, 1, 2 in no table */

#define API __attribute__((visibility("default"))) CUresult
#define CONTROL __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    OPERATING_SYSTEM = 304,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    CONTEXT_IS_DESTROYED = 709,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    MISALIGNED_ADDRESS = 716,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_MERGE = 902, CAPTURE_UNMATCHED = 903, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906, CAPTURED_EVENT = 907, CAPTURE_WRONG_THREAD = 908,
    EXEC_UPDATE_FAILURE = 910, INVALID_CLUSTER_SIZE = 912,
    UNKNOWN = 999,
};

enum {
#define FUNCTION(name, base, version) FN_##name,
#include "functions.h"
#undef FUNCTION
    FN_COUNT
};

#define MAX_DEVICES 16
#define STACK_DEPTH 32
#define STREAM_LEGACY 1
#define STREAM_PER_THREAD 2
#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)
#define MAX_THREADS 1024
#define PROCESSORS 8
#define MOST_CONNECTIONS 32
#define STAGED_MOST (1 << 20)
#define GRANULE 512
/* Calls that wait for the device with the silicon profile. A driver of CUDA 13 was measured to wait in all but the first two. */
#define SILICON_WAITS "first_launch,cuMemHostAlloc,cuMemFree_v2,cuMemFreeHost,cuMemHostUnregister,cuMemPoolTrimTo," \
                      "cuModuleLoadData,cuModuleLoadDataEx,cuModuleUnload"

/* ---- Objects ---- */

#include "table.h"

struct stream;
struct thread;

/* A place in a stream: reached when that many of its operations are done. */
struct point {
    struct stream *stream;
    uint64_t seq;
};

/* A host function that waits for a thread of its context, or runs there. */
struct job {
    struct job *next;
    void (*function)(void *);
    void *argument;
    struct stream *stream;
    bool started, done;
};

struct context {
    CUcontext handle;
    uint64_t id;
    int device, refs;
    unsigned peers; /* bit per device whose memory its kernels may use */
    atomic_int error; /* the first sticky code, or the code of calls after it was destroyed */
    struct stream *streams; /* all that are open or still have work */
    struct stream *legacy, *fence, *gate;
    struct job *jobs, *last_job;
    pthread_cond_t job_added;
    int host_threads, idle_host_threads;
    struct thread *locked_by; /* the thread whose call holds the context's lock */
    pthread_cond_t unlocked;
    struct hardware_queue *queues;
    size_t queue_count, dealt[LEAST_PRIORITY - GREATEST_PRIORITY + 1];
};

struct stream {
    CUstream handle;
    uint64_t id;
    struct context *context;
    unsigned flags;
    int priority, refs, host_waiters;
    bool blocking, closed, started, touching; /* touching: its thread uses memory */
    bool moves_apart; /* used by move_all_apart alone */
    uint64_t enqueued, completed;
    uint64_t counted; /* the latest operation for which a query or a wait of the host waits */
    struct operation *head, *tail, *current; /* current: its thread has taken it off the list */
    const struct point *waits_for; /* the place of another stream that current waits for */
    int host_waits; /* waits for values and functions of the host in current */
    pthread_cond_t work, done;
    struct stream *waiters, *next_waiter; /* streams whose threads wait for this one */
    struct stream *next, *previous; /* in the list of the context */
    struct hardware_queue *queue, *dealt; /* NULL: one of its own; dealt: from when it was made */
    struct capture *capture; size_t *tips, tip_count; /* the nodes its next one waits for */
    uint64_t *tip_handles; /* what the latest question for them gave */
};

struct event {
    CUevent handle;
    struct context *context;
    unsigned flags;
    int refs;
    bool recorded;
    struct capture *capture; size_t *tips, tip_count; /* where it was recorded last, and after which nodes */
    bool stale; /* that capture has ended */
    struct stream *on; /* NULL when what was recorded is done */
    uint64_t seq, nanoseconds;
};

enum where { UNKNOWN_MEMORY, DEVICE_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY };

struct pool;

/* An allocation. The table of blocks is ordered by address. */
struct block {
    uint64_t address, size; /* of registered memory: as the caller gave them */
    uint64_t start, asked; /* as the caller gave them */
    uint64_t id;
    enum where where;
    int device;
    struct context *context;
    struct pool *pool;
    bool freeing; /* freed in stream order, and the stream has not reached the free */
    bool freed; /* free, in its pool */
    struct point freed_at;
    unsigned flags;
    bool managed; /* pinned memory that is freed as device memory is */
    struct program *program; /* whose memory it is; NULL once the graph is gone */
    bool of_graph, held; /* held: a launch has allocated it for the caller, who has not freed it */
    int frees; /* in stream order that have not run */
    bool unmapped, backed; /* no work reaches it now; its device holds memory for it */
};

struct device {
    int number; /* before CUDA_VISIBLE_DEVICES */
    int error; /* outlives the context: a lost device stays lost */
    int retained;
    struct context *context;
    uint64_t base, size, used; /* the range that callers see, which is inaccessible */
    char *bytes; /* the same memory, mapped for this library */
    struct hole *holes;
    size_t hole_count, hole_room;
    struct pool *pool;
};

struct hole { uint64_t offset, size; };

/* ---- Work ---- */

struct operation;

/* What operations of one kind do. NULL: nothing is to be done. */
struct kind {
    int node; /* CUDA's number of a node of a graph that does it */
    bool of_host; /* code of the host runs, for which the stream waits */
    bool leaves_early; /* its hardware queue, when it starts; others leave when they are done */
    bool not_in_bodies; /* of nodes with conditions, which have work of the device only */
    CUresult (*run)(struct stream *stream, struct operation *operation); /* without the lock; returns a sticky code if it failed */
    void (*reached)(struct stream *stream, struct operation *operation); /* with the lock, when the stream is behind it */
    void (*drop)(struct operation *operation); /* with the lock: frees what the operation owns */
};

extern const struct kind wait_kind, record_kind, free_kind; /* of work.c, event.c and memory.c */

struct memory_op {
    int operation; /* 1 wait, 2 write; 4 and 5 the same with 64 bits; 3 and 6 do nothing */
    uint64_t address, value;
    unsigned flags;
};

struct copy {
    uint64_t to, from;
    bool to_pageable, from_pageable;
    uint64_t width, height, to_pitch, from_pitch;
    void *staged;
};

struct fill {
    uint64_t to, count, pitch, height;
    uint32_t value, width;
};

struct kernel;

struct launch {
    const struct kernel *kernel;
    uint64_t arguments[8];
};

struct operation {
    struct operation *next;
    const struct kind *kind;
    uint64_t seq;
    struct hardware_queue *queue; /* where it is; NULL when it has left */
    struct operation *ahead, *behind; /* in that queue */
    struct stream *stream;
    bool of_memory; /* it is the turn of an allocation, or frees */
    bool unseen; /* it is no work of the stream: only what comes behind it waits for it */
    bool optional; /* nobody waits for it when "optional 0" has come */
    struct point *after;
    size_t after_count, after_room;
    union {
        struct event *event;
        struct job job;
        struct copy copy;
        struct fill fill;
        struct { struct memory_op *ops; unsigned count; } memory;
        struct launch launch;
        struct { struct program *program; uint64_t child; } graph; /* child: the handle of a node's graph, or 0 */
        struct conditional *conditional;
        uint64_t block; /* its id, as its address may be in use again */
    };
};

/* ---- State ---- */

struct settings {
    int devices, version, memops, pools, host_threads, context_lock, connections, priority_queues, strict, unmap_at_exit;
    unsigned queue;
    uint64_t memory;
    char *apart; /* the file of streams that were moved apart; NULL: none is */
};

struct state {
    pthread_mutex_t lock;
    struct settings settings;
    bool initialized;
    int device_count;
    uint64_t next_id;
    struct device devices[MAX_DEVICES];
    struct table contexts, streams, events, modules, functions, pools, libraries, kernels;
    struct block **blocks;
    size_t block_count, block_room;
    uint64_t dead_handles; /* that callers have passed */
    bool optional; /* what is enqueued now is */
    uint64_t looks; /* in vain, of streams that wait in a hardware queue */
    uint64_t moves; /* changes whenever something goes on on a device */
    uint32_t launched_shared, launched_cluster; /* of the last launch: bytes, and blocks of a cluster or 0 */
    size_t live_memory, live_pinned, live_registered;
};

extern struct state state;
extern atomic_bool ended; /* the process is ending: no thread may do more */

/* exit.c: around what the thread of a stream executes, and for the first call of cuInit. */
void begin_executing(void), end_executing(void), watch_exit(void);
bool in_forked_child(void); /* control.c */

/* The state of a thread. */
struct thread {
    CUcontext stack[STACK_DEPTH];
    int depth;
    uint64_t generation; /* of reset; the fields above are invalid if it differs */
    bool hosting; /* it runs a host function */
    struct stream *own[MAX_DEVICES]; /* its default streams */
    struct context *locked; /* whose lock the present call holds */
    int capture_mode;
    int function; /* the latest call */
};

/* control.c: counts, faults, settings. */
CUresult begin(int function, uint64_t handle);
void read_settings(void);
bool is_sticky(CUresult code);
int number_of(const char *name);
const char *name_of(int function);
uint64_t reset_count(void);

/* contention.c: called with the lock held. end lets go of it. */
CUresult end(CUresult code);
void enter_context(int function, uint64_t handle);
void enter_first_launch(struct context *context);
void enter_trim(int device);
int make_draining(const char *name, bool on);
int make_stopping(const char *name, bool on);
void stop_calls_no_more(void);
unsigned long long stopped_calls(void);
void read_draining(const char *otherwise);

/* queues.c: called with the lock held. */
void queues_new(struct context *context);
void queues_free(struct context *context);
void queues_wake(struct context *context);
int control_queues(const char *command, const char *value);
void wait_begins(struct stream *stream);
void wait_ends(struct stream *stream);
void queue_deal(struct stream *stream);
void queue_enter(struct stream *stream, struct operation *operation);
void queue_wait(struct stream *stream, const struct operation *operation);
void queue_leave(struct operation *operation);

/* capture.c: called with the lock held. */
CUresult capture_permits(int function, uint64_t handle);
bool capture_conflicts(const struct context *context, bool only_blocking);
CUresult capture_take(struct stream *stream, struct operation *operation);
CUresult capture_join(struct stream *stream, const struct event *event);
CUresult capture_refuses(struct stream *stream);
CUresult capture_asked(const struct event *event);
void capture_leave(struct stream *stream);
void drop_captures(void);

/* Begins a call: takes the lock, counts the call, and fails it if a test has requested
 * that. handle is an object whose context a sticky fault poisons, or 0. */
#define BEGIN(name, handle) \
    do { \
        CUresult begun_ = begin(FN_##name, (uint64_t)(handle)); \
        if (begun_ != SUCCESS) \
            return begun_; \
    } while (0)

/* Returns from a call that has begun if code is not success. */
#define TRY(code) \
    do { \
        CUresult tried_ = (code); \
        if (tried_ != SUCCESS) \
            return end(tried_); \
    } while (0)

/* context.c: called with the lock held. */
struct thread *this_thread(void);
CUresult current_context(struct context **context);
CUresult healthy_context(CUcontext handle, struct context **context);
struct context *context_of(uint64_t handle);
void poison(struct context *context, CUresult code);
CUresult synchronize_context(struct context *context);
void wake_all(struct context *context);
void drop_contexts(void);
void context_unref(struct context *context);

/* work.c: queues of streams and their threads; called with the lock held. */
struct stream *stream_new(struct context *context, unsigned flags, int priority, bool blocking);
void stream_ref(struct stream *stream);
void stream_unref(struct stream *stream);
void stream_close(struct stream *stream);
bool stream_idle(const struct stream *stream);
bool stream_done(const struct stream *stream);
struct operation *operation_new(const struct kind *kind);
CUresult execute(struct stream *stream, struct operation *operation); /* without the lock */
bool held_up_by_order(const struct stream *stream);
void operation_after(struct operation *operation, struct stream *stream, uint64_t seq);
CUresult make_room(struct stream *stream);
CUresult submit(struct stream *stream, struct operation *operation, bool wait);
CUresult wait_point(struct stream *stream, uint64_t seq);
CUresult wait_streams(struct context *context, bool only_blocking);
void drop_operations(struct stream *stream);
int start_thread(void *(*body)(void *), void *argument, size_t stack);

/* stream.c: called with the lock held. */
CUresult find_stream(CUstream handle, struct stream **stream);

/* device.c */
CUresult check_device(CUdevice device);

/* event.c: called with the lock held. */
void event_unref(struct event *event);
uint64_t now(void);

/* memory.c: called with the lock held. */
CUresult open_devices(void);
void close_devices(void);
struct block *find_block(uint64_t address, uint64_t size);
struct block *block_by_id(uint64_t id);
enum where classify(uint64_t address, uint64_t size, bool *bad);
void *reach(struct context *context, uint64_t address, uint64_t size);
CUresult allocate(struct context *context, uint64_t size, struct pool *pool, struct block **block);
void release(struct block *block);
void add_block(struct block *block);
void remove_block(struct block *block);
uint64_t bytes_in_use(void);

/* pool.c: called with the lock held. */
CUresult pool_new(int device, struct pool **pool);
size_t live_pools(void);
void pool_drop_all(void);
bool pools_give_back(int device);
void pools_synchronized(int device);
int pool_device(const struct pool *pool);
bool pool_reaches(const struct pool *pool, int device); /* for kernels of a device */
CUmemoryPool pool_handle(const struct pool *pool);

/* module.c and library.c: called with the lock held. */
void drop_libraries(void);
void drop_modules(struct context *context);

/* kernels.c */
const struct kernel *find_kernel(const char *name);

#endif
