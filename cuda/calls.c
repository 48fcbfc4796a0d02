/* The calls of the driver; calls.h says what each does. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "calls.h"
#include "gil.h"

/* ---- The frame of a call: Python's lock released, the device's context current ---- */

typedef struct {
    void *lock;
    CUcontext before;
    int changed;
    int exchanged; /* whether mode is the thread's capture mode from before */
    int mode;
} hs_frame;

#define HS_STATUS(name, code) ((hs_status)(uint32_t)(code) | (hs_status)HS_##name << 32)

/* Begins a call in a context; 0 where none is needed. */
static inline hs_status hs_enter(hs_frame *f, CUcontext ctx)
{
    f->lock = hs_unlock();
    f->changed = f->exchanged = 0;
    if (ctx == 0) return 0;
    CUresult code = HS_CALL(cuCtxGetCurrent, &f->before);
    if (code != 0) return HS_STATUS(cuCtxGetCurrent, code);
    if (f->before == ctx) return 0;
    code = HS_CALL(cuCtxSetCurrent, ctx);
    if (code != 0) return HS_STATUS(cuCtxSetCurrent, code);
    f->changed = 1;
    return 0;
}

/* Begins a call that the driver refuses while another thread of the process captures a
 * stream in global mode, and for which it makes that capture invalid. None of these calls
 * concerns work that is captured, so the thread may make them. */
static inline hs_status hs_enter_relaxed(hs_frame *f, CUcontext ctx)
{
    hs_status status = hs_enter(f, ctx);
    f->mode = HS_CAPTURE_RELAXED;
    f->exchanged = status == 0 && HS_CALL(cuThreadExchangeStreamCaptureMode, &f->mode) == 0;
    return status;
}

/* Ends it: restores the context that was current, and takes Python's lock again. */
static inline hs_status hs_leave(hs_frame *f, hs_status status)
{
    if (f->exchanged) HS_CALL(cuThreadExchangeStreamCaptureMode, &f->mode);
    if (f->changed) {
        /* The result of the call counts, unless this failure means a lost device. */
        CUresult code = HS_CALL(cuCtxSetCurrent, f->before);
        if (status == 0 && hs_lasting(code)) status = HS_STATUS(cuCtxSetCurrent, code);
    }
    hs_relock(f->lock);
    return status;
}

/* Calls one function of the driver in a frame, and returns its status. HS_RELAXED does so
 * for calls that captures of other threads forbid. */
#define HS_ONE(ctx, name, ...) HS_FRAMED(hs_enter, ctx, name, __VA_ARGS__)
#define HS_RELAXED(ctx, name, ...) HS_FRAMED(hs_enter_relaxed, ctx, name, __VA_ARGS__)
#define HS_FRAMED(enter, ctx, name, ...) \
    do { \
        hs_frame frame; \
        hs_status status = enter(&frame, ctx); \
        if (status == 0) { \
            CUresult code = HS_CALL(name, __VA_ARGS__); \
            if (code != 0) status = HS_STATUS(name, code); \
        } \
        return hs_leave(&frame, status); \
    } while (0)

/* Within a frame: calls a function of the driver if all before it have succeeded. */
#define HS_STEP(status, name, ...) \
    do { \
        if ((status) == 0) { \
            CUresult code = HS_CALL(name, __VA_ARGS__); \
            if (code != 0) (status) = HS_STATUS(name, code); \
        } \
    } while (0)

/* ---- Devices ---- */

int hs_lasting(int32_t code)
{
    switch (code) {
    case HS_ECC_UNCORRECTABLE: case HS_NVLINK_UNCORRECTABLE: case HS_ILLEGAL_ADDRESS: case HS_LAUNCH_TIMEOUT:
    case HS_ASSERT: case HS_HARDWARE_STACK_ERROR: case HS_ILLEGAL_INSTRUCTION: case HS_MISALIGNED_ADDRESS:
    case HS_INVALID_ADDRESS_SPACE: case HS_INVALID_PC: case HS_LAUNCH_FAILED: case HS_TENSOR_MEMORY_LEAK:
    case HS_MPS_CLIENT_TERMINATED: case HS_EXTERNAL_DEVICE: case HS_CONTAINED:
        return 1;
    }
    return 0;
}

/* Whether any memory is mapped at an address, readable or not. */
int hs_mapped(uint64_t address)
{
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;
    return msync((void *)page, 1, MS_ASYNC) == 0;
}

uintptr_t hs_self(void)
{
    static _Thread_local char self;
    return (uintptr_t)&self;
}

hs_status hs_init(int *count)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, 0);
    HS_STEP(status, cuInit, 0);
    if (status == 0) hs_watch_exit();
    HS_STEP(status, cuDeviceGetCount, count);
    return hs_leave(&frame, status);
}

hs_status hs_device(int ordinal, CUdevice *device, char *name, int size)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, 0);
    HS_STEP(status, cuDeviceGet, device, ordinal);
    HS_STEP(status, cuDeviceGetName, name, size, *device);
    return hs_leave(&frame, status);
}

hs_status hs_retain(CUdevice device, CUcontext *ctx) { HS_ONE(0, cuDevicePrimaryCtxRetain, ctx, device); }

hs_status hs_release(CUdevice device) { HS_ONE(0, cuDevicePrimaryCtxRelease_v2, device); }

hs_status hs_priorities(CUcontext ctx, int *least, int *greatest)
{
    HS_ONE(ctx, cuCtxGetStreamPriorityRange, least, greatest);
}

hs_status hs_attribute(CUdevice device, int attribute, int *value)
{
    HS_ONE(0, cuDeviceGetAttribute, value, attribute, device);
}

hs_status hs_uuid(CUdevice device, unsigned char *uuid)
{
    /* The newer form names the part of a device that a process was given. */
    if (hs_api.cuDeviceGetUuid_v2 != NULL) HS_ONE(0, cuDeviceGetUuid_v2, uuid, device);
    HS_ONE(0, cuDeviceGetUuid, uuid, device);
}

hs_status hs_bus(CUdevice device, char *id, int size) { HS_ONE(0, cuDeviceGetPCIBusId, id, size, device); }

hs_status hs_total(CUdevice device, uint64_t *bytes)
{
    size_t total = 0;
    hs_frame frame;
    hs_status status = hs_enter(&frame, 0);
    HS_STEP(status, cuDeviceTotalMem_v2, &total, device);
    *bytes = total;
    return hs_leave(&frame, status);
}

hs_status hs_can_access(CUdevice from, CUdevice to, int *can) { HS_ONE(0, cuDeviceCanAccessPeer, can, from, to); }

hs_status hs_enable_peer(CUcontext from, CUcontext to) { HS_ONE(from, cuCtxEnablePeerAccess, to, 0); }

void hs_error_text(int32_t code, const char **name, const char **text)
{
    *name = *text = NULL;
    if (HS_CALL(cuGetErrorName, code, name) != 0) *name = NULL;
    if (HS_CALL(cuGetErrorString, code, text) != 0) *text = NULL;
}

/* ---- The end of the process ---- */

/* At the end of the process the driver unmaps its pinned memory. What it has registered for
 * that runs after what is registered here, and threads of this package may still run. */
static atomic_int leaving, inside;
static pid_t watched;

int hs_begin_pinned(void)
{
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&leaving)) return 1;
    atomic_fetch_sub(&inside, 1);
    return 0;
}

void hs_end_pinned(void) { atomic_fetch_sub(&inside, 1); }

/* No thread begins to use pinned memory any more. Those that do end soon. */
static void leave(void)
{
    enum { LONGEST_MS = 2000 };
    if (getpid() != watched) return; /* in a forked child, which has none of the threads */
    atomic_store(&leaving, 1);
    for (int i = 0; i < LONGEST_MS && atomic_load(&inside) > 0; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

void hs_watch_exit(void)
{
    if (watched != getpid() && atexit(leave) == 0) watched = getpid();
}

/* ---- Streams, events and waits ---- */

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

/* ---- Memory and copies ---- */

hs_status hs_pool_new(CUdevice device, CUcontext ctx, CUmemoryPool *pool)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = HS_ALLOCATION_PINNED;
    props.location.type = HS_LOCATION_DEVICE;
    props.location.id = device;
    *pool = 0;
    HS_STEP(status, cuMemPoolCreate, pool, &props);
    /* With the default threshold each synchronize would release unused memory. */
    uint64_t all = UINT64_MAX;
    HS_STEP(status, cuMemPoolSetAttribute, *pool, HS_POOL_RELEASE_THRESHOLD, &all);
    if (status != 0 && *pool != 0) {
        HS_CALL(cuMemPoolDestroy, *pool);
        *pool = 0;
    }
    return hs_leave(&frame, status);
}

hs_status hs_pool_destroy(CUcontext ctx, CUmemoryPool pool) { HS_RELAXED(ctx, cuMemPoolDestroy, pool); }

hs_status hs_pool_trim(CUcontext ctx, CUmemoryPool pool) { HS_RELAXED(ctx, cuMemPoolTrimTo, pool, 0); }

hs_status hs_pool_access(CUcontext ctx, CUmemoryPool pool, CUdevice device)
{
    CUmemAccessDesc access = {{HS_LOCATION_DEVICE, device}, HS_ACCESS_READ_WRITE};
    HS_RELAXED(ctx, cuMemPoolSetAccess, pool, &access, 1);
}

hs_status hs_pool_kept(CUcontext ctx, CUmemoryPool pool, uint64_t *bytes)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    uint64_t reserved = 0, used = 0;
    HS_STEP(status, cuMemPoolGetAttribute, pool, HS_POOL_RESERVED, &reserved);
    HS_STEP(status, cuMemPoolGetAttribute, pool, HS_POOL_USED, &used);
    *bytes = reserved - used;
    return hs_leave(&frame, status);
}

hs_status hs_alloc(CUcontext ctx, uint64_t size, CUdeviceptr *address) { HS_RELAXED(ctx, cuMemAlloc_v2, address, size); }

hs_status hs_alloc_pool(CUcontext ctx, uint64_t size, CUmemoryPool pool, CUstream stream, CUdeviceptr *address)
{
    HS_ONE(ctx, cuMemAllocFromPoolAsync, address, size, pool, stream);
}

hs_status hs_free(CUcontext ctx, CUdeviceptr address) { HS_RELAXED(ctx, cuMemFree_v2, address); }

hs_status hs_free_pool(CUcontext ctx, CUdeviceptr address, CUstream stream)
{
    HS_ONE(ctx, cuMemFreeAsync, address, stream);
}

hs_status hs_info(CUcontext ctx, uint64_t *free, uint64_t *total)
{
    size_t unused = 0, all = 0;
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuMemGetInfo_v2, &unused, &all);
    *free = unused;
    *total = all;
    return hs_leave(&frame, status);
}

hs_status hs_host_alloc(CUcontext ctx, uint64_t size, uint64_t *address)
{
    void *found = NULL;
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuMemHostAlloc, &found, size, HS_HOST_PORTABLE | HS_HOST_MAPPED);
    *address = (uint64_t)(uintptr_t)found;
    return hs_leave(&frame, status);
}

hs_status hs_host_free(CUcontext ctx, uint64_t address)
{
    HS_RELAXED(ctx, cuMemFreeHost, (void *)(uintptr_t)address);
}

hs_status hs_host_device(CUcontext ctx, uint64_t address, CUdeviceptr *device)
{
    HS_RELAXED(ctx, cuMemHostGetDevicePointer_v2, device, (void *)(uintptr_t)address, 0);
}

hs_status hs_register(CUcontext ctx, uint64_t address, uint64_t size)
{
    HS_RELAXED(ctx, cuMemHostRegister_v2, (void *)(uintptr_t)address, size, HS_REGISTER_PORTABLE | HS_REGISTER_MAPPED);
}

hs_status hs_unregister(CUcontext ctx, uint64_t address)
{
    HS_RELAXED(ctx, cuMemHostUnregister, (void *)(uintptr_t)address);
}

hs_status hs_probe(CUcontext ctx, CUdeviceptr address, uint32_t *type, int *ordinal, uint64_t *start, uint64_t *size,
                   CUmemoryPool *pool)
{
    int attributes[] = {HS_POINTER_TYPE, HS_POINTER_DEVICE, HS_POINTER_START, HS_POINTER_SIZE, HS_POINTER_POOL};
    CUdeviceptr base = 0;
    size_t bytes = 0;
    *type = 0;
    *ordinal = -1;
    *pool = 0;
    void *data[] = {type, ordinal, &base, &bytes, pool};
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    /* For memory that the driver does not know it writes zeros and returns success. */
    HS_STEP(status, cuPointerGetAttributes, hs_api.cuMemPoolCreate != NULL ? 5 : 4, attributes, data, address);
    *start = base;
    *size = bytes;
    return hs_leave(&frame, status);
}

/* The greatest distance between rows that the driver's copies of rows take, in bytes. */
#define MAX_PITCH 0x7fffffffu

/* A copy of bytes that lie one after the other. */
static hs_status copy_line(hs_status status, CUstream stream, const hs_copy *c, uint64_t dst, uint64_t src, size_t n)
{
    if (c->to != c->from) HS_STEP(status, cuMemcpyPeerAsync, dst, c->to, src, c->from, n, stream);
    else if (c->direction == HS_HOST_TO_DEVICE)
        HS_STEP(status, cuMemcpyHtoDAsync_v2, dst, (const void *)(uintptr_t)src, n, stream);
    else if (c->direction == HS_DEVICE_TO_HOST)
        HS_STEP(status, cuMemcpyDtoHAsync_v2, (void *)(uintptr_t)dst, src, n, stream);
    else HS_STEP(status, cuMemcpyDtoDAsync_v2, dst, src, n, stream);
    return status;
}

/* Rows of two devices: cuMemcpy2D needs peer access, this does not. */
static hs_status copy_peer_rows(hs_status status, CUstream stream, const hs_copy *c)
{
    CUDA_MEMCPY3D_PEER rows;
    memset(&rows, 0, sizeof rows);
    rows.srcMemoryType = rows.dstMemoryType = HS_MEMORY_DEVICE;
    rows.srcDevice = c->src;
    rows.dstDevice = c->dst;
    rows.srcContext = c->from;
    rows.dstContext = c->to;
    rows.srcPitch = c->spitch;
    rows.dstPitch = c->dpitch;
    rows.srcHeight = rows.dstHeight = rows.Height = c->height;
    rows.WidthInBytes = c->width;
    rows.Depth = 1;
    HS_STEP(status, cuMemcpy3DPeerAsync, &rows, stream);
    return status;
}

static hs_status copy_rows(hs_status status, CUstream stream, const hs_copy *c)
{
    CUDA_MEMCPY2D rows;
    memset(&rows, 0, sizeof rows);
    rows.srcMemoryType = c->direction == HS_HOST_TO_DEVICE ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    rows.dstMemoryType = c->direction == HS_DEVICE_TO_HOST ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    if (rows.srcMemoryType == HS_MEMORY_HOST) rows.srcHost = (const void *)(uintptr_t)c->src;
    else rows.srcDevice = c->src;
    if (rows.dstMemoryType == HS_MEMORY_HOST) rows.dstHost = (void *)(uintptr_t)c->dst;
    else rows.dstDevice = c->dst;
    rows.srcPitch = c->spitch;
    rows.dstPitch = c->dpitch;
    rows.WidthInBytes = c->width;
    rows.Height = c->height;
    HS_STEP(status, cuMemcpy2DAsync_v2, &rows, stream);
    return status;
}

hs_status hs_copy_async(CUcontext ctx, CUstream stream, const hs_copy *c)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    bool peers = c->to != c->from;
    if (c->height == 1 || (c->dpitch == c->width && c->spitch == c->width))
        status = copy_line(status, stream, c, c->dst, c->src, c->width * c->height);
    else if (c->dpitch > MAX_PITCH || c->spitch > MAX_PITCH || (peers && hs_api.cuMemcpy3DPeerAsync == NULL))
        for (uint64_t i = 0; i < c->height; i++)
            status = copy_line(status, stream, c, c->dst + i * c->dpitch, c->src + i * c->spitch, c->width);
    else status = peers ? copy_peer_rows(status, stream, c) : copy_rows(status, stream, c);
    return hs_leave(&frame, status);
}

hs_status hs_fill(CUcontext ctx, CUstream stream, uint64_t dst, uint64_t count, uint32_t value, int size)
{
    if (size == 1) HS_ONE(ctx, cuMemsetD8Async, dst, (unsigned char)value, count, stream);
    if (size == 2) HS_ONE(ctx, cuMemsetD16Async, dst, (unsigned short)value, count, stream);
    HS_ONE(ctx, cuMemsetD32Async, dst, value, count, stream);
}

static void copy_on_host(const hs_copy *c)
{
    char *to = (char *)(uintptr_t)c->dst;
    const char *from = (const char *)(uintptr_t)c->src;
    if (c->height == 1 || (c->dpitch == c->width && c->spitch == c->width)) {
        memcpy(to, from, c->width * c->height);
        return;
    }
    for (uint64_t i = 0; i < c->height; i++) memcpy(to + i * c->dpitch, from + i * c->spitch, c->width);
}

void hs_host_copy(const hs_copy *copy)
{
    if (!hs_begin_pinned()) return;
    copy_on_host(copy);
    hs_end_pinned();
}

static void fill_on_host(char *to, uint64_t count, uint32_t value, int size)
{
    if (size == 1) {
        memset(to, (int)value, count);
        return;
    }
    uint16_t half = (uint16_t)value;
    for (uint64_t i = 0; i < count; i++, to += size) memcpy(to, size == 2 ? (void *)&half : (void *)&value, (size_t)size);
}

void hs_host_fill(uint64_t dst, uint64_t count, uint32_t value, int size)
{
    if (!hs_begin_pinned()) return;
    fill_on_host((char *)(uintptr_t)dst, count, value, size);
    hs_end_pinned();
}

void hs_host_native(uint64_t fn, uint64_t arg) { ((void (*)(void *))(uintptr_t)fn)((void *)(uintptr_t)arg); }

/* ---- Programs ---- */

hs_status hs_module_load(CUcontext ctx, const void *image, CUmodule *module, char *log, uint32_t size)
{
    int options[] = {HS_JIT_ERROR_LOG, HS_JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)size};
    log[0] = 0;
    HS_RELAXED(ctx, cuModuleLoadDataEx, module, image, 2, options, values);
}

hs_status hs_module_unload(CUcontext ctx, CUmodule module) { HS_RELAXED(ctx, cuModuleUnload, module); }

/* The kernel may have as much dynamic shared memory as the device has beside its static
 * one. It is set here and not at a launch, where another thread could set less. */
static hs_status allow_shared(hs_status status, CUdevice device, hs_kernel *k)
{
    int fixed = 0, most = 0;
    HS_STEP(status, cuFuncGetAttribute, &k->shared, HS_FUNCTION_MAX_DYNAMIC, k->function);
    HS_STEP(status, cuFuncGetAttribute, &fixed, HS_FUNCTION_SHARED, k->function);
    HS_STEP(status, cuDeviceGetAttribute, &most, HS_ATTRIBUTE_MAX_SHARED, device);
    if (status == 0 && most - fixed > k->shared && hs_api.cuFuncSetAttribute != NULL &&
        HS_CALL(cuFuncSetAttribute, k->function, HS_FUNCTION_MAX_DYNAMIC, most - fixed) == 0)
        k->shared = most - fixed;
    return status;
}

/* The sizes of the parameters. The driver refuses each index behind the last one: a single
 * refusal may be a failure, after which the parameters are unknown. */
static void read_parameters(hs_kernel *k)
{
    size_t at, size;
    k->count = -1;
    for (int i = 0; i <= HS_PARAMETERS && hs_api.cuFuncGetParamInfo != NULL; i++) {
        CUresult code = HS_CALL(cuFuncGetParamInfo, k->function, (size_t)i, &at, &size);
        if (code == HS_INVALID_VALUE &&
            HS_CALL(cuFuncGetParamInfo, k->function, (size_t)i, &at, &size) == HS_INVALID_VALUE)
            k->count = i;
        if (code != 0 || i == HS_PARAMETERS) return;
        k->sizes[i] = size < UINT16_MAX ? (uint16_t)size : UINT16_MAX;
    }
}

hs_status hs_function(CUcontext ctx, CUdevice device, CUmodule module, const char *name, hs_kernel *k)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuModuleGetFunction, &k->function, module, name);
    /* Else its first launch loads it, and may wait for the device with a lock held. */
    if (hs_api.cuFuncLoad != NULL) HS_STEP(status, cuFuncLoad, k->function);
    HS_STEP(status, cuFuncGetAttribute, &k->threads, HS_FUNCTION_MAX_THREADS, k->function);
    status = allow_shared(status, device, k);
    if (status == 0) read_parameters(k);
    return hs_leave(&frame, status);
}

hs_status hs_module_global(CUcontext ctx, CUmodule module, const char *name, uint64_t *address, uint64_t *size)
{
    CUdeviceptr at = 0;
    size_t bytes = 0;
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuModuleGetGlobal_v2, &at, &bytes, module, name);
    *address = at;
    *size = bytes;
    return hs_leave(&frame, status);
}

hs_status hs_function_attributes(CUcontext ctx, CUfunction function, hs_attributes *of)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuFuncGetAttribute, &of->shared, HS_FUNCTION_SHARED, function);
    HS_STEP(status, cuFuncGetAttribute, &of->constant, HS_FUNCTION_CONSTANT, function);
    HS_STEP(status, cuFuncGetAttribute, &of->local, HS_FUNCTION_LOCAL, function);
    HS_STEP(status, cuFuncGetAttribute, &of->registers, HS_FUNCTION_REGISTERS, function);
    HS_STEP(status, cuFuncGetAttribute, &of->ptx, HS_FUNCTION_PTX, function);
    HS_STEP(status, cuFuncGetAttribute, &of->binary, HS_FUNCTION_BINARY, function);
    return hs_leave(&frame, status);
}

hs_status hs_launch_kernel(CUcontext ctx, CUstream stream, const hs_launch *l, const void *args, int cell)
{
    /* The driver copies the values during the call. */
    void *params[l->count + 1];
    for (int i = 0; i < l->count; i++) params[i] = (char *)args + (size_t)i * (size_t)cell;
    if (hs_api.cuLaunchKernelEx != NULL) {
        CUlaunchAttribute attrs[2];
        uint32_t count = 0;
        memset(attrs, 0, sizeof attrs);
        if (l->cooperative) {
            attrs[count].id = HS_LAUNCH_COOPERATIVE;
            attrs[count++].value.cooperative = 1;
        }
        if (l->cluster[0] != 0) {
            attrs[count].id = HS_LAUNCH_CLUSTER;
            attrs[count].value.clusterDim.x = l->cluster[0];
            attrs[count].value.clusterDim.y = l->cluster[1];
            attrs[count++].value.clusterDim.z = l->cluster[2];
        }
        CUlaunchConfig config = {
            .gridX = l->grid[0], .gridY = l->grid[1], .gridZ = l->grid[2],
            .blockX = l->block[0], .blockY = l->block[1], .blockZ = l->block[2],
            .sharedBytes = l->shared, .stream = stream,
            .attrs = count > 0 ? attrs : NULL, .numAttrs = count,
        };
        HS_ONE(ctx, cuLaunchKernelEx, &config, l->function, params, NULL);
    }
    /* A driver without the function knows no clusters. */
    if (l->cluster[0] != 0) return HS_STATUS(cuLaunchKernelEx, HS_NOT_SUPPORTED);
    if (l->cooperative)
        HS_ONE(ctx, cuLaunchCooperativeKernel, l->function, l->grid[0], l->grid[1], l->grid[2],
               l->block[0], l->block[1], l->block[2], l->shared, stream, params);
    HS_ONE(ctx, cuLaunchKernel, l->function, l->grid[0], l->grid[1], l->grid[2],
           l->block[0], l->block[1], l->block[2], l->shared, stream, params, NULL);
}

/* ---- Graphs ---- */

int hs_graphs(void)
{
    return hs_api.cuGraphCreate != NULL && hs_api.cuGraphDestroy != NULL && hs_api.cuGraphAddEmptyNode != NULL &&
           hs_api.cuGraphAddMemcpyNode != NULL && hs_api.cuGraphAddMemsetNode != NULL &&
           hs_api.cuGraphAddKernelNode_v2 != NULL && hs_api.cuGraphInstantiateWithFlags != NULL &&
           hs_api.cuGraphLaunch != NULL && hs_api.cuGraphExecDestroy != NULL;
}

hs_status hs_graph_new(CUcontext ctx, CUgraph *graph) { HS_ONE(ctx, cuGraphCreate, graph, 0); }

/* The functions that add a node are called in a frame. */
static CUresult add_copy(CUcontext ctx, CUgraph graph, const hs_copy *c, const CUgraphNode *after, size_t count,
                         CUgraphNode *node)
{
    CUDA_MEMCPY3D rows;
    memset(&rows, 0, sizeof rows);
    rows.srcMemoryType = c->direction == HS_HOST_TO_DEVICE ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    rows.dstMemoryType = c->direction == HS_DEVICE_TO_HOST ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    rows.srcHost = (const void *)(uintptr_t)c->src;
    rows.dstHost = (void *)(uintptr_t)c->dst;
    rows.srcDevice = c->src;
    rows.dstDevice = c->dst;
    rows.srcPitch = c->spitch;
    rows.dstPitch = c->dpitch;
    rows.srcHeight = rows.dstHeight = rows.Height = c->height;
    rows.WidthInBytes = c->width;
    rows.Depth = 1;
    return HS_CALL(cuGraphAddMemcpyNode, node, graph, after, count, &rows, ctx);
}

static CUresult add_fill(CUcontext ctx, CUgraph graph, const hs_memset *f, const CUgraphNode *after, size_t count,
                         CUgraphNode *node)
{
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = f->dst, .value = f->value, .elementSize = f->size, .width = f->count, .height = 1};
    return HS_CALL(cuGraphAddMemsetNode, node, graph, after, count, &fill, ctx);
}

static CUresult add_launch(CUcontext ctx, CUgraph graph, const hs_launch *l, const char *args, int cell,
                           const CUgraphNode *after, size_t count, CUgraphNode *node)
{
    void *params[l->count + 1];
    for (int i = 0; i < l->count; i++) params[i] = (char *)args + (size_t)i * (size_t)cell;
    CUDA_KERNEL_NODE_PARAMS launch = {
        .func = l->function, .gridX = l->grid[0], .gridY = l->grid[1], .gridZ = l->grid[2],
        .blockX = l->block[0], .blockY = l->block[1], .blockZ = l->block[2],
        .sharedBytes = l->shared, .params = params, .ctx = ctx,
    };
    return HS_CALL(cuGraphAddKernelNode_v2, node, graph, after, count, &launch);
}

static hs_status add_node(CUcontext ctx, CUgraph graph, const hs_node *n, const char *args, int cell, const CUgraphNode *after,
                          CUgraphNode *node)
{
    CUresult code;
    switch (n->kind) {
    case HS_NODE_COPY:
        code = add_copy(ctx, graph, &n->work.copy, after, n->count, node);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddMemcpyNode, code);
    case HS_NODE_FILL:
        code = add_fill(ctx, graph, &n->work.fill, after, n->count, node);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddMemsetNode, code);
    case HS_NODE_LAUNCH:
        code = add_launch(ctx, graph, &n->work.launch, args + n->args, cell, after, n->count, node);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddKernelNode_v2, code);
    default:
        code = HS_CALL(cuGraphAddEmptyNode, node, graph, after, n->count);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddEmptyNode, code);
    }
}

hs_status hs_graph_add(CUcontext ctx, CUgraph graph, const hs_node *nodes, size_t n, const uint32_t *after, const void *args,
                       int cell, CUgraphNode *handles, size_t made)
{
    uint32_t most = 1;
    for (size_t i = 0; i < n; i++) most = nodes[i].count > most ? nodes[i].count : most;
    CUgraphNode few[16], *deps = most <= sizeof few / sizeof *few ? few : malloc(most * sizeof *deps);
    if (deps == NULL) return HS_STATUS(cuGraphAddEmptyNode, HS_OUT_OF_MEMORY);
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    for (size_t i = 0; i < n && status == 0; i++) {
        for (uint32_t k = 0; k < nodes[i].count; k++) deps[k] = handles[after[nodes[i].after + k]];
        status = add_node(ctx, graph, &nodes[i], args, cell, deps, &handles[made + i]);
    }
    status = hs_leave(&frame, status);
    if (deps != few) free(deps);
    return status;
}

int hs_conditions(void)
{
    return hs_graphs() && hs_api.cuGraphConditionalHandleCreate != NULL && hs_api.cuGraphAddNode_v2 != NULL;
}

hs_status hs_graph_condition(CUcontext ctx, CUgraph graph, uint64_t *condition)
{
    HS_ONE(ctx, cuGraphConditionalHandleCreate, condition, graph, ctx, 0, 0);
}

hs_status hs_graph_add_condition(CUcontext ctx, CUgraph graph, uint64_t condition, int type, CUgraph *bodies, int count,
                                 CUgraphNode after, CUgraphNode *node)
{
    CUgraphNodeParams params;
    memset(&params, 0, sizeof params);
    params.type = HS_NODE_CONDITIONAL;
    params.conditional.handle = condition;
    params.conditional.type = type;
    params.conditional.size = (uint32_t)count;
    params.conditional.ctx = ctx;
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    HS_STEP(status, cuGraphAddNode_v2, node, graph, &after, NULL, 1, &params);
    if (status == 0) memcpy(bodies, params.conditional.phGraph_out, (size_t)count * sizeof *bodies);
    return hs_leave(&frame, status);
}

hs_status hs_graph_exec(CUcontext ctx, CUgraph graph, CUgraphExec *exec)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuGraphInstantiateWithFlags, exec, graph, 0);
    HS_CALL(cuGraphDestroy, graph);
    return hs_leave(&frame, status);
}

void hs_graph_drop(CUcontext ctx, CUgraph graph)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    if (status == 0) HS_CALL(cuGraphDestroy, graph);
    hs_leave(&frame, status);
}

hs_status hs_graph_launch(CUcontext ctx, CUgraphExec exec, CUstream stream) { HS_ONE(ctx, cuGraphLaunch, exec, stream); }

hs_status hs_graph_end(CUcontext ctx, CUgraphExec exec) { HS_RELAXED(ctx, cuGraphExecDestroy, exec); }
