/* Calls: what happens at the beginning and at the end of each, and how they find objects by handles. */
#ifndef FAKECUDA_CALL_H
#define FAKECUDA_CALL_H

#include "fakecuda.h"

enum {
#define FUNCTION(name, base, version) FN_##name,
#include "functions.h"
#undef FUNCTION
    FN_COUNT
};

#define MAX_DEVICES 16
#define STACK_DEPTH 32

/* ---- What all calls share ---- */

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
    uint64_t next_id;
    uint64_t resets;
};

extern struct state state;
extern atomic_bool ended; /* the process is ending: no thread may do more */
extern atomic_bool forked; /* it is the child of a process that had initialized the driver */

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

struct thread *this_thread(void);
uint64_t now(void); /* nanoseconds */
int start_thread(void *(*body)(void *), void *argument, size_t stack);

/* ---- Calls ---- */

/* What objects have to do with calls. The functions are called with the lock held. */
struct rules {
    struct context *(*context_of)(uint64_t handle); /* to which an object belongs; the current one for other numbers */
    void (*fail)(uint64_t handle, CUresult code); /* a call on an object fails with a sticky code */
    CUresult (*permits)(int function, uint64_t handle); /* a code other than success fails the call */
    void (*enter)(int function, uint64_t handle); /* may let go of the lock */
    void (*leave)(void);
};

extern const struct rules rules; /* of control.c */

CUresult begin(int function, uint64_t handle);
CUresult end(CUresult code);

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

/* The handle of a stream that a call names, 0 for predefined ones. */
#define HINT(stream) ((stream) > STREAM_PER_THREAD ? (stream) : 0)

int number_of(const char *name); /* of a function; -1 without such a one */

/* ---- What tests set and count; called with the lock held ---- */

int add_fault(const char *name, const char *at, const char *code);
void drop_faults(void);
int make_slow(const char *name, const char *microseconds);
void make_none_slow(void);
int log_calls(const char *path);
void drop_counts(void);
bool count_of(const char *name, unsigned long long *count);

/* ---- Objects by their handles ---- */

/* A table of objects. A handle consists of the table's kind and a slot; the slot freed
 * last is used next, so that handles of closed objects are reused as soon as possible. */
struct table {
    uint64_t kind;
    const char *name; /* of its objects, in messages */
    void **items;
    uint32_t *unused;
    size_t count, room, unused_count;
};

/* Handles are addresses that are reserved and not readable: a caller that dereferences one crashes. */
#define SLOT_SHIFT 6
#define KIND_SHIFT 40
#define RESERVED_HANDLES (1ul << 20)
uint64_t table_put(struct table *table, void *item);
void *table_get(const struct table *table, uint64_t handle);
void *table_find(const struct table *table, uint64_t handle);
void table_drop(struct table *table, uint64_t handle);
size_t table_live(const struct table *table);
void table_clear(struct table *table);

#endif
