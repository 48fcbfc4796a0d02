/* Functions on streams that follow each other: while the first of them runs C adds the next ones, and the thread
 * that runs them takes them, without entering Go. The word of a burst, which Go shares, says how far that is. */
#include <sched.h>
#include <stdlib.h>

#include "acl/acl_rt.h"
#include "known.h"
#include "thread.h"

/* Package hal has the same layout: Burst in burst.go. */
#define BITS 31
#define MOST ((UINT64_C(1) << BITS) - 1)
#define BEGIN (UINT64_C(1) << BITS)
#define CUT (UINT64_C(1) << 62)
#define SEALED (UINT64_C(1) << 63)

enum {
    ROOM = 2048,     /* functions of a stream that can wait here; further ones go through Go */
    LINGER_NS = 20000, /* for how long a thread looks for further functions before it ends a burst */
};

typedef struct task {
    uintptr_t function, argument;
} task;

struct lookalike_burst {
    uint64_t word; /* atomic */
    struct lookalike_queue *queue;
    uint64_t base;   /* how many functions the queue had taken before */
    uint32_t owners; /* of this memory: its maker and its runner; atomic */
    const uint32_t *pressure; /* not 0 while its runner is wanted elsewhere; Go writes it */
    int ended, kept; /* under the queue's lock */
    task first;
};

/* The functions of one stream. It stays with the place in the table, for later streams there. */
struct lookalike_queue {
    uint32_t lock;
    uint64_t handle; /* of the stream that `open` is of */
    uint64_t added;
    uint64_t skipped;      /* of these numbers, those that count as finished before functions that wait */
    lookalike_burst *open; /* takes more functions, unless its word says otherwise */
    task tasks[ROOM];      /* by their number, modulo ROOM */
    uint64_t apart[7];
    uint64_t finished; /* functions that have ended or were dropped; atomic */
};

uint32_t lookalike_pressure;

static void lock(lookalike_queue *q)
{
    while (__atomic_exchange_n(&q->lock, 1, __ATOMIC_ACQUIRE) != 0)
        for (int i = 0; __atomic_load_n(&q->lock, __ATOMIC_RELAXED) != 0; i++)
            if (i % 64 == 63) sched_yield();
            else lookalike_pause();
}

static void unlock(lookalike_queue *q) { __atomic_store_n(&q->lock, 0, __ATOMIC_RELEASE); }

static uint64_t finished(const lookalike_queue *q) { return __atomic_load_n(&q->finished, __ATOMIC_ACQUIRE); }

static void finish(lookalike_queue *q, uint64_t count) { __atomic_fetch_add(&q->finished, count, __ATOMIC_RELEASE); }

/* Whether a thread of the program runs its functions, which may call the library. */
static int reports(const lookalike_burst *b) { return b->pressure != &lookalike_pressure; }

/* The number of a function that does not run on the stream: it is done, but those before it may wait. */
static void skip(lookalike_queue *q)
{
    lock(q);
    q->skipped++;
    unlock(q);
    finish(q, 1);
}

int lookalike_functions_ended(lookalike_queue *q)
{
    /* In this order: a launch that fails counts as finished, too, and must not stand for a function that runs. */
    uint64_t ended = finished(q);
    return __atomic_load_n(&q->added, __ATOMIC_ACQUIRE) == ended;
}

/* Puts a function into the queue if there is room. Under the lock. */
static int put(lookalike_queue *q, uintptr_t function, uintptr_t argument)
{
    uint64_t left = q->added - finished(q);
    if (left == 0) q->skipped = 0;
    if (left + q->skipped >= ROOM) return 0;
    q->tasks[q->added % ROOM] = (task){function, argument};
    return 1;
}

int lookalike_queue_add(lookalike_queue *q, uint64_t stream, uintptr_t function, uintptr_t argument, int of_reports)
{
    int taken = 0;
    lock(q);
    lookalike_burst *b = q->handle == stream ? q->open : NULL;
    if (b != NULL && reports(b) == of_reports && put(q, function, argument)) {
        /* Counted first: who sees the function in the burst sees it here. */
        __atomic_store_n(&q->added, q->added + 1, __ATOMIC_RELEASE);
        uint64_t w = __atomic_load_n(&b->word, __ATOMIC_RELAXED);
        while (!taken && !(w & SEALED) && (w & MOST) != MOST)
            taken = __atomic_compare_exchange_n(&b->word, &w, w + 1, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        if (!taken) __atomic_store_n(&q->added, q->added - 1, __ATOMIC_RELEASE);
    }
    unlock(q);
    return taken;
}

lookalike_burst *lookalike_burst_new(uint64_t stream, uintptr_t function, uintptr_t argument, const uint32_t *pressure)
{
    lookalike_known *k = lookalike_entry(stream);
    if (k == NULL) return NULL;
    lookalike_queue *q = __atomic_load_n(&k->queue, __ATOMIC_ACQUIRE);
    if (q == NULL) {
        lookalike_queue *made = calloc(1, sizeof *made);
        if (made == NULL) return NULL;
        if (__atomic_compare_exchange_n(&k->queue, &q, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) q = made;
        else free(made);
    }
    lookalike_burst *b = malloc(sizeof *b);
    if (b == NULL) return NULL;
    lock(q);
    int there = put(q, function, argument);
    if (there) {
        *b = (lookalike_burst){.word = 1, .queue = q, .base = q->added, .owners = 2, .pressure = pressure,
                               .first = {function, argument}};
        q->open = NULL; /* the functions of a burst follow each other */
        q->handle = stream;
        __atomic_store_n(&q->added, q->added + 1, __ATOMIC_RELEASE);
    }
    unlock(q);
    if (there) return b;
    free(b);
    return NULL;
}

static void leave(lookalike_burst *b)
{
    if (__atomic_sub_fetch(&b->owners, 1, __ATOMIC_ACQ_REL) == 0) free(b);
}

/* Nobody adds to it any more. */
static void close_to_all(lookalike_burst *b)
{
    lookalike_queue *q = b->queue;
    lock(q);
    if (q->open == b) q->open = NULL;
    b->ended = 1;
    unlock(q);
}

void lookalike_burst_made(lookalike_burst *b, int grows, int failed)
{
    lookalike_queue *q = b->queue;
    if (failed) {
        skip(q);
        leave(b);
    } else if (grows) {
        lock(q);
        if (!b->ended && q->added == b->base + 1) q->open = b;
        unlock(q);
    }
    leave(b);
}

void lookalike_burst_keep(lookalike_burst *b)
{
    if (b->kept) return;
    b->kept = 1;
    close_to_all(b);
    skip(b->queue);
}

int lookalike_burst_kept(const lookalike_burst *b, uintptr_t *function, uintptr_t *argument)
{
    *function = b->first.function;
    *argument = b->first.argument;
    return b->kept;
}

void lookalike_burst_drop(lookalike_burst *b)
{
    uint64_t w = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
    if (w & CUT) return; /* it runs, and its runner ends it */
    close_to_all(b);
    if (!b->kept) finish(b->queue, w & MOST);
    leave(b);
}

/* Begins the next function of a burst: 1, or 0 where there is none now. It is read first: once a stream was
 * aborted, other functions may take its place in the queue. */
static int begin(lookalike_burst *b, task *next)
{
    uint64_t w = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
    while (!(w & CUT) && (w >> BITS & MOST) != (w & MOST)) {
        /* The first one was counted before its burst was enqueued: those of a burst that came to the stream before may
         * have used its place meanwhile. */
        uint64_t index = w >> BITS & MOST;
        *next = index == 0 ? b->first : b->queue->tasks[(b->base + index) % ROOM];
        if (__atomic_compare_exchange_n(&b->word, &w, w + BEGIN, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 1;
    }
    return 0;
}

/* Looks for another function for a while; 0 if the burst is sealed, by this thread or another one. */
static int linger(lookalike_burst *b)
{
    int64_t began = lookalike_now();
    for (;;) {
        for (int i = 0; i < 32; i++) {
            uint64_t w = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
            if (!(w & CUT) && (w >> BITS & MOST) != (w & MOST)) return 1;
            if (w & SEALED) return 0;
            lookalike_pause();
        }
        int wanted = __atomic_load_n(b->pressure, __ATOMIC_RELAXED) != 0;
        if (!wanted && lookalike_now() - began < LINGER_NS) continue;
        uint64_t w = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
        while (!(w & SEALED) && (w >> BITS & MOST) == (w & MOST))
            __atomic_compare_exchange_n(&b->word, &w, w | SEALED, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
}

void lookalike_run(uintptr_t function, uintptr_t argument, int may_call)
{
    lookalike_come_behind();
    lookalike_self.inside = !may_call;
    __atomic_store_n(&lookalike_running[ME % LOOKALIKE_RUNNERS], function, __ATOMIC_RELAXED);
    ((aclrtHostFunc)function)((void *)argument);
    lookalike_self.inside = 0;
    lookalike_come_before();
}

int lookalike_burst_run(lookalike_burst *b)
{
    lookalike_queue *q = b->queue;
    task next;
    do {
        while (begin(b, &next)) {
            lookalike_run(next.function, next.argument, reports(b));
            finish(q, 1);
            if (__atomic_load_n(b->pressure, __ATOMIC_RELAXED) != 0) return 0;
        }
    } while (linger(b));
    uint64_t w = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
    finish(q, (w & MOST) - (w >> BITS & MOST)); /* what was cut off */
    close_to_all(b);
    return 1;
}

void lookalike_burst_end(lookalike_burst *b) { leave(b); }
