#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "frame.h"

hs_status hs_stream_new(CUcontext ctx, uint32_t flags, int priority, CUstream *stream)
{
    HS_RELAXED(ctx, cuStreamCreateWithPriority, stream, flags, priority);
}

hs_status hs_stream_destroy(CUcontext ctx, CUstream stream) { HS_RELAXED(ctx, cuStreamDestroy_v2, stream); }

hs_status hs_stream_query(CUcontext ctx, CUstream stream) { HS_RELAXED(ctx, cuStreamQuery, stream); }

hs_status hs_stream_look(CUcontext ctx, CUstream stream, int *captured)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    if (status != 0) return hs_leave(&frame, status);
    CUresult code = HS_CALL(cuStreamIsCapturing, stream, captured);
    if (code == HS_CAPTURE_IMPLICIT) { /* the legacy default stream, while a stream ordered with it captures */
        *captured = 1;
        return hs_leave(&frame, 0);
    }
    if (code != 0) status = HS_STATUS(cuStreamIsCapturing, code);
    if (!*captured) HS_STEP(status, cuStreamQuery, stream);
    return hs_leave(&frame, status);
}

hs_status hs_stream_captured(CUcontext ctx, CUstream stream, int *captured)
{
    HS_ONE(ctx, cuStreamIsCapturing, stream, captured);
}

/* Refuses what cannot be a node of another library's graph; a driver without captures has no such graph. */
static hs_status not_captured(CUcontext ctx, CUstream stream)
{
    int captured = 0;
    hs_status status = hs_stream_captured(ctx, stream, &captured);
    return status == 0 && captured ? HS_STATUS(cuStreamIsCapturing, HS_CAPTURE_UNSUPPORTED) : 0;
}

hs_status hs_stream_facts(CUcontext ctx, CUstream stream, CUcontext *of, uint32_t *flags, int *priority)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    HS_STEP(status, cuStreamGetCtx, stream, of);
    HS_STEP(status, cuStreamGetFlags, stream, flags);
    HS_STEP(status, cuStreamGetPriority, stream, priority);
    return hs_leave(&frame, status);
}

hs_status hs_event_new(CUcontext ctx, uint32_t flags, CUevent *event) { HS_RELAXED(ctx, cuEventCreate, event, flags); }

hs_status hs_event_destroy(CUcontext ctx, CUevent event) { HS_RELAXED(ctx, cuEventDestroy_v2, event); }

hs_status hs_event_query(CUcontext ctx, CUevent event) { HS_RELAXED(ctx, cuEventQuery, event); }

hs_status hs_record(CUcontext ctx, CUevent event, CUstream stream) { HS_ONE(ctx, cuEventRecord, event, stream); }

hs_status hs_record_behind(CUcontext ctx, CUevent event, CUstream stream, int *captured)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    HS_STEP(status, cuStreamIsCapturing, stream, captured);
    if (!*captured) HS_STEP(status, cuEventRecord, event, stream);
    return hs_leave(&frame, status);
}

hs_status hs_record_context(CUcontext ctx, CUevent event) { HS_ONE(ctx, cuCtxRecordEvent, ctx, event); }

hs_status hs_wait(CUcontext ctx, CUstream stream, CUevent event) { HS_ONE(ctx, cuStreamWaitEvent, stream, event, 0); }

hs_status hs_wait_stream(CUcontext ctx, CUstream stream, CUcontext of, CUstream other, CUevent event)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, of);
    HS_STEP(status, cuEventRecord, event, other);
    if (of == ctx) {
        HS_STEP(status, cuStreamWaitEvent, stream, event, 0);
        return hs_leave(&frame, status);
    }
    hs_leave(&frame, 0);
    if (status != 0) return status;
    HS_ONE(ctx, cuStreamWaitEvent, stream, event, 0);
}

hs_status hs_elapsed(CUcontext ctx, CUevent start, CUevent end, float *ms)
{
    HS_ONE(ctx, cuEventElapsedTime, ms, start, end);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Lets short sleeps of this thread end in time: Linux adds up to 50 us of slack to each. Returns
 * the slack to put back, 0 if there is nothing to do. */
static int less_slack(int64_t ns)
{
#ifdef __linux__
    enum { MOST = 1000, LONG_SLEEP = 500000 };
    int before = ns < LONG_SLEEP ? prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) : 0;
    if (before > MOST && prctl(PR_SET_TIMERSLACK, MOST, 0, 0, 0) == 0) return before;
#else
    (void)ns;
#endif
    return 0;
}

/* Returns 1 if a signal ended the sleep early. */
static int sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    int slack = less_slack(ns);
    int woken = nanosleep(&t, NULL) != 0 && errno == EINTR;
#ifdef __linux__
    if (slack > 0) (void)prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
#endif
    return woken;
}

/* Of package park, which is part of every program that links this package. */
extern int hs_park_signaled(void) __attribute__((weak));

/* The pauses between two queries grow with the time waited, so that a long wait uses
 * little processor time and ends late by a small part of its length at most. */
static int64_t pause_after(int64_t waited, int64_t most)
{
    int64_t ns = waited / 16;
    if (ns < 5000) ns = 5000;
    return ns < most ? ns : most;
}

enum { LONGEST_PAUSE = 200000 };

int hs_pause(void)
{
    void *lock = hs_unlock();
    int ended = sleep_ns(5000) && hs_park_signaled && hs_park_signaled();
    hs_relock(lock);
    return ended;
}

/* Queries an event, or a stream, until it is done; see hs_await. */
static hs_status await(CUcontext ctx, CUevent event, CUstream stream, int64_t limit, int64_t spin)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    if (status != 0) return hs_leave(&frame, status);
    int64_t start = now_ns();
    int limited = limit >= 0; /* only the callers of these expect an early end */
    if (!limited) limit = 100000000;
    for (;;) {
        CUresult code = event ? HS_CALL(cuEventQuery, event) : HS_CALL(cuStreamQuery, stream);
        status = code == 0 ? 0 : event ? HS_STATUS(cuEventQuery, code) : HS_STATUS(cuStreamQuery, code);
        if (code != HS_NOT_READY) break;
        int64_t waited = now_ns() - start;
        if (waited >= limit) break;
        if (waited < spin) {
            relax();
            continue;
        }
        int64_t ns = pause_after(waited, LONGEST_PAUSE);
        if (sleep_ns(ns < limit - waited ? ns : limit - waited) && limited && hs_park_signaled && hs_park_signaled())
            break;
    }
    return hs_leave(&frame, status);
}

hs_status hs_await(CUcontext ctx, CUevent event, int64_t limit, int64_t spin)
{
    return await(ctx, event, 0, limit, spin);
}

hs_status hs_await_stream(CUcontext ctx, CUstream stream, int64_t limit, int64_t spin)
{
    return await(ctx, 0, stream, limit, spin);
}

/* The argument of do_hold. The slot may have another user by the time that runs, so
 * it holds the value as well. */
typedef struct {
    hs_guard *guard;
    hs_slot *slot;
    uint32_t value;
    int what;
} hs_visit;

hs_guard *hs_guard_new(void)
{
    hs_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL) abort();
    return guard;
}

void hs_guard_close(hs_guard *guard)
{
    atomic_store(&guard->closed, 1);
    while (atomic_load(&guard->inside) > 0) sleep_ns(5000);
}

/* Called once by the driver, on its own thread, where no cu* call is legal. It
 * blocks on purpose: later work on the stream starts when it returns. */
static void do_hold(void *data)
{
    hs_visit visit = *(hs_visit *)data;
    free(data);
    atomic_fetch_add(&visit.guard->inside, 1);
    if (!atomic_load(&visit.guard->closed)) {
        if (visit.what != HS_GATE) atomic_store_explicit(&visit.slot->reached, visit.value, memory_order_release);
        int64_t start = now_ns();
        while (visit.what != HS_PASS && !atomic_load(&visit.guard->closed) &&
               (int32_t)(atomic_load_explicit(&visit.slot->hold, memory_order_acquire) - visit.value) < 0)
            sleep_ns(pause_after(now_ns() - start, LONGEST_PAUSE));
    }
    atomic_fetch_sub(&visit.guard->inside, 1);
}

static hs_status visit(CUcontext ctx, CUstream stream, hs_visit *data)
{
    HS_ONE(ctx, cuLaunchHostFunc, stream, do_hold, data);
}

hs_status hs_hold(CUcontext ctx, CUstream stream, hs_guard *guard, int what, hs_slot *slot, CUdeviceptr dev, uint32_t value)
{
    hs_status refused = not_captured(ctx, stream);
    if (refused != 0) return refused;
    if (guard != NULL) {
        hs_visit *data = malloc(sizeof *data);
        if (data == NULL) abort();
        *data = (hs_visit){guard, slot, value, what};
        hs_status status = visit(ctx, stream, data);
        if (status != 0) free(data);
        return status;
    }
    CUstreamBatchMemOpParams ops[2] = {0};
    unsigned n = 0;
    if (what != HS_GATE) {
        ops[n].word.operation = HS_OP_WRITE_32;
        ops[n].word.address = dev + offsetof(hs_slot, reached);
        ops[n++].word.value = value;
    }
    if (what != HS_PASS) {
        ops[n].word.operation = HS_OP_WAIT_32;
        ops[n].word.address = dev + offsetof(hs_slot, hold);
        ops[n].word.flags = HS_WAIT_GEQ;
        ops[n++].word.value = value;
    }
    HS_ONE(ctx, cuStreamBatchMemOp_v2, stream, n, ops, 0);
}

hs_status hs_word_write(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint32_t value)
{
    CUstreamBatchMemOpParams op = {0};
    op.word.operation = HS_OP_WRITE_32;
    op.word.address = dev;
    op.word.value = value;
    HS_ONE(ctx, cuStreamBatchMemOp_v2, stream, 1, &op, 0);
}

hs_status hs_word_wait(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint32_t value)
{
    CUstreamBatchMemOpParams op = {0};
    op.word.operation = HS_OP_WAIT_32;
    op.word.address = dev;
    op.word.flags = HS_WAIT_GEQ;
    op.word.value = value;
    HS_ONE(ctx, cuStreamBatchMemOp_v2, stream, 1, &op, 0);
}

hs_status hs_value(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint64_t value, int condition)
{
    CUstreamBatchMemOpParams op = {0};
    op.word.operation = condition < 0 ? HS_OP_WRITE_64 : HS_OP_WAIT_64;
    op.word.address = dev;
    op.word.flags = condition < 0 ? 0 : (uint32_t)condition;
    op.word.value = value;
    HS_ONE(ctx, cuStreamBatchMemOp_v2, stream, 1, &op, 0);
}

void hs_open(hs_slot *slot, uint32_t value)
{
    if (!hs_begin_pinned()) return;
    atomic_store_explicit(&slot->hold, value, memory_order_release);
    hs_end_pinned();
}

uint32_t hs_reached(hs_slot *slot)
{
    if (!hs_begin_pinned()) return 0;
    uint32_t value = atomic_load_explicit(&slot->reached, memory_order_acquire);
    hs_end_pinned();
    return value;
}

/* The index of a slot that its stream has reached, -1 if there is none, also when the process ends. */
static int find_reached(const hs_watch *list, int n)
{
    int found = -1;
    if (n == 0 || !hs_begin_pinned()) return -1;
    for (int i = 0; i < n && found < 0; i++)
        if (atomic_load_explicit(&list[i].slot->reached, memory_order_acquire) == list[i].value) found = i;
    hs_end_pinned();
    return found;
}

int hs_poll(const hs_watch *list, int n, const uint32_t *wakeups, uint32_t seen_wakeups, int64_t limit)
{
    int64_t start = now_ns();
    for (;;) {
        int found = find_reached(list, n);
        if (found >= 0) return found;
        if (__atomic_load_n(wakeups, __ATOMIC_ACQUIRE) != seen_wakeups) return -1;
        int64_t waited = now_ns() - start;
        if (waited >= limit) return -1;
        if (waited < HS_POLL_SPIN) relax();
        else sleep_ns(pause_after(waited, LONGEST_PAUSE));
    }
}
