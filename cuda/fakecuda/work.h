/* Where work is: devices, contexts, streams, and the operations that are enqueued on them. */
#ifndef FAKECUDA_WORK_H
#define FAKECUDA_WORK_H

#include "call.h"

#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)

struct block;
struct capture;
struct conditional;
struct event;
struct hole;
struct kernel;
struct operation;
struct pool;
struct program;

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

/* ---- Operations ---- */

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

extern const struct kind wait_kind; /* it only waits for what it comes after */

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

/* ---- Captures ---- */

/* What takes the calls on a stream that captures, in place of its thread and its memory. */
struct recorder {
    CUresult (*take)(struct stream *stream, struct operation *operation); /* and its ownership */
    CUresult (*allocate)(struct stream *stream, struct context *context, size_t size, CUdeviceptr *address);
    CUresult (*free)(struct stream *stream, const struct block *block);
};

/* A capture that is in progress. Streams join it by waiting for its events. */
struct capture {
    const struct recorder *recorder;
    struct capture *next;
    const struct thread *thread; /* that began it */
    struct stream *origin;
    uint64_t id;
    int mode;
    bool invalid;
    struct program *program;
    uint64_t graph; /* that it becomes; 0 for a node that is added to one */
    size_t first;   /* node of the capture in the graph */
    bool borrowed;  /* the graph is the caller's */
};

/* ---- Functions; called with the lock held unless they say otherwise ---- */

extern struct table contexts, streams;
extern struct device devices[MAX_DEVICES];
extern int device_count;
extern uint64_t moves; /* changes whenever something goes on on a device */

CUresult check_device(CUdevice device);

CUresult current_context(struct context **context);
CUresult healthy_context(CUcontext handle, struct context **context);
struct context *context_new(int device);
void context_unref(struct context *context);
void poison(struct context *context, CUresult code);
void wake_all(struct context *context);
CUresult synchronize_context(struct context *context);

CUresult find_stream(CUstream handle, struct stream **stream);
struct stream *stream_new(struct context *context, unsigned flags, int priority, bool blocking);
void stream_deal(struct stream *stream);
void stream_ref(struct stream *stream);
void stream_unref(struct stream *stream);
void stream_close(struct stream *stream);
bool stream_idle(const struct stream *stream);
bool stream_done(const struct stream *stream);
bool held_up_by_order(const struct stream *stream);

struct operation *operation_new(const struct kind *kind);
void operation_free(struct operation *operation);
void operation_after(struct operation *operation, struct stream *stream, uint64_t seq);
CUresult make_room(struct stream *stream);
CUresult submit(struct stream *stream, struct operation *operation, bool wait);
CUresult execute(struct stream *stream, struct operation *operation); /* without the lock */
bool anything_executes(void);

CUresult wait_point(struct stream *stream, uint64_t seq);
CUresult wait_streams(struct context *context, bool only_blocking);
void wait_begins(struct stream *stream);
void wait_ends(struct stream *stream);

bool capture_conflicts(const struct context *context, bool only_blocking);
void set_tips(size_t **tips, size_t *count, const size_t *from, size_t from_count);

int control_queues(const char *command, const char *value);
uint64_t looks_in_vain(void);
void work_reset(void);

#endif
