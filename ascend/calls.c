#include <errno.h>
#include <pthread.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "calls.h"
#include "frame.h"

#define PLACE(address) ((void *)(uintptr_t)(address))

/* ---- Devices ---- */

na_status na_init(uint32_t *count, int32_t *major, int32_t *minor)
{
    int32_t patch;
    na_frame frame;
    na_status status = na_enter(&frame, 0);
    aclError code = na_api.aclInit(NULL);
    /* Another library of the process may have started AscendCL: it counts its users. */
    if (code != ACL_SUCCESS && code != ACL_ERROR_REPEAT_INITIALIZE) status = na_result(NA_aclInit, code);
    if (status.code == 0 && (code = na_api.aclrtGetVersion(major, minor, &patch)) != ACL_SUCCESS)
        status = na_result(NA_aclrtGetVersion, code);
    if (status.code == 0 && (code = na_api.aclrtGetDeviceCount(count)) != ACL_SUCCESS)
        status = na_result(NA_aclrtGetDeviceCount, code);
    return na_leave(&frame, status);
}

na_status na_set_device(int32_t device, uintptr_t *ctx)
{
    na_frame frame;
    na_status status = na_enter(&frame, 0);
    aclrtContext made = NULL;
    if (na_api.aclrtGetCurrentContext(&frame.before) != ACL_SUCCESS) frame.before = NULL;
    aclError code = na_api.aclrtSetDevice(device);
    if (code != ACL_SUCCESS) status = na_result(NA_aclrtSetDevice, code);
    if (status.code == 0 && (code = na_api.aclrtGetCurrentContext(&made)) != ACL_SUCCESS) {
        status = na_result(NA_aclrtGetCurrentContext, code);
        (void)na_api.aclrtResetDevice(device);
    }
    *ctx = (uintptr_t)made;
    return na_leave(&frame, status);
}

na_status na_reset_device(int32_t device) { NA_ONE(0, aclrtResetDevice, device); }

const char *na_soc_name(void) { return na_api.aclrtGetSocName != NULL ? na_api.aclrtGetSocName() : NULL; }

na_status na_uuid(int32_t device, unsigned char *uuid) { NA_ONE(0, aclrtDeviceGetUuid, device, (aclrtUuid *)uuid); }

na_status na_device_info(int32_t device, int32_t attribute, int64_t *value)
{
    NA_ONE(0, aclrtGetDeviceInfo, (uint32_t)device, (aclrtDevAttr)attribute, value);
}

na_status na_can_access(uintptr_t ctx, int32_t device, int32_t peer, int32_t *can)
{
    NA_ONE(ctx, aclrtDeviceCanAccessPeer, can, device, peer);
}

na_status na_enable_peer(uintptr_t ctx, int32_t peer) { NA_ONE(ctx, aclrtDeviceEnablePeerAccess, peer, 0); }

/* ---- Streams and events ---- */

na_status na_stream_new(uintptr_t ctx, uint32_t priority, uintptr_t *stream)
{
    NA_ONE(ctx, aclrtCreateStreamWithConfig, (aclrtStream *)stream, priority, ACL_STREAM_FAST_LAUNCH);
}

na_status na_stream_destroy(uintptr_t ctx, uintptr_t stream) { NA_ONE(ctx, aclrtDestroyStream, PLACE(stream)); }

static aclError query_stream(uintptr_t stream)
{
    aclrtStreamStatus found;
    aclError code = na_api.aclrtStreamQuery(PLACE(stream), &found);
    return code != ACL_SUCCESS || found == ACL_STREAM_STATUS_COMPLETE ? code : NA_NOT_READY;
}

static aclError query_event(uintptr_t event)
{
    aclrtEventRecordedStatus found;
    aclError code = na_api.aclrtQueryEventStatus(PLACE(event), &found);
    return code != ACL_SUCCESS || found == ACL_EVENT_RECORDED_STATUS_COMPLETE ? code : NA_NOT_READY;
}

static na_status answer(int function, aclError code)
{
    return code == NA_NOT_READY ? (na_status){code, function, NULL} : na_result(function, code);
}

na_status na_stream_query(uintptr_t ctx, uintptr_t stream)
{
    na_frame frame;
    na_status status = na_enter(&frame, stream == 0 ? ctx : 0); /* only the default stream is a context's */
    if (status.code == 0) status = answer(NA_aclrtStreamQuery, query_stream(stream));
    return na_leave(&frame, status);
}

na_status na_event_query(uintptr_t event)
{
    na_frame frame;
    na_enter(&frame, 0);
    return na_leave(&frame, answer(NA_aclrtQueryEventStatus, query_event(event)));
}

na_status na_event_new(uintptr_t ctx, uint32_t flags, uintptr_t *event)
{
    NA_ONE(ctx, aclrtCreateEventExWithFlag, (aclrtEvent *)event, flags);
}

na_status na_old_event_new(uintptr_t ctx, uintptr_t *event)
{
    NA_ONE(ctx, aclrtCreateEventWithFlag, (aclrtEvent *)event, ACL_EVENT_SYNC);
}

na_status na_event_destroy(uintptr_t ctx, uintptr_t event) { NA_ONE(ctx, aclrtDestroyEvent, PLACE(event)); }

na_status na_record(uintptr_t ctx, uintptr_t event, uintptr_t stream)
{
    NA_ONE(ctx, aclrtRecordEvent, PLACE(event), PLACE(stream));
}

na_status na_wait(uintptr_t ctx, uintptr_t stream, uintptr_t event)
{
    NA_ONE(ctx, aclrtStreamWaitEvent, PLACE(stream), PLACE(event));
}

na_status na_reset_event(uintptr_t ctx, uintptr_t event, uintptr_t stream)
{
    NA_ONE(ctx, aclrtResetEvent, PLACE(event), PLACE(stream));
}

na_status na_elapsed(uintptr_t ctx, uintptr_t start, uintptr_t end, float *ms)
{
    NA_ONE(ctx, aclrtEventElapsedTime, ms, PLACE(start), PLACE(end));
}

na_status na_timestamp(uintptr_t ctx, uintptr_t event, uint64_t *us)
{
    NA_ONE(ctx, aclrtEventGetTimestamp, PLACE(event), us);
}

/* ---- Waits ---- */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns 1 if a signal ended the sleep early. Linux adds up to 50 us of slack to each sleep, so the
 * thread asks for less during short ones. */
static int sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
#ifdef __linux__
    enum { LEAST_SLACK = 1000, LONG_SLEEP = 500000 };
    int slack = ns < LONG_SLEEP ? prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) : 0;
    int less = slack > LEAST_SLACK && prctl(PR_SET_TIMERSLACK, LEAST_SLACK, 0, 0, 0) == 0;
#endif
    int woken = nanosleep(&t, NULL) != 0 && errno == EINTR;
#ifdef __linux__
    if (less) (void)prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
#endif
    return woken;
}

/* Of package park, which is part of every program that links this package. */
extern int hs_park_signaled(void) __attribute__((weak));
static int interrupted(int woken) { return woken && hs_park_signaled && hs_park_signaled(); }

int na_pause(void)
{
    void *lock = na_unlock();
    int ended = interrupted(sleep_ns(5000));
    na_relock(lock);
    return ended;
}

na_status na_await(uintptr_t event, int64_t limit, int64_t spin)
{
    enum { SHORTEST_PAUSE = 5000, LONGEST_PAUSE = 200000, ROUND = 100000000 };
    na_frame frame;
    na_enter(&frame, 0);
    int64_t start = now_ns();
    int limited = limit >= 0; /* only the callers of these expect an early end */
    if (!limited) limit = ROUND;
    aclError code;
    while ((code = query_event(event)) == NA_NOT_READY) {
        int64_t waited = now_ns() - start;
        if (waited >= limit) break;
        if (waited < spin) continue;
        int64_t ns = waited / 16; /* a wait ends late by a small part of its length at most */
        if (ns < SHORTEST_PAUSE) ns = SHORTEST_PAUSE;
        if (ns > LONGEST_PAUSE) ns = LONGEST_PAUSE;
        if (interrupted(sleep_ns(ns < limit - waited ? ns : limit - waited)) && limited) break;
    }
    return na_leave(&frame, answer(NA_aclrtQueryEventStatus, code));
}

uintptr_t na_self(void) { return (uintptr_t)pthread_self(); }

/* ---- Memory ---- */

na_status na_alloc(uintptr_t ctx, uint64_t size, uint64_t *address)
{
    NA_ONE(ctx, aclrtMalloc, (void **)address, size, ACL_MEM_MALLOC_HUGE_FIRST);
}

na_status na_free(uintptr_t ctx, uint64_t address) { NA_ONE(ctx, aclrtFree, PLACE(address)); }

na_status na_info(uintptr_t ctx, uint64_t *free, uint64_t *total)
{
    NA_ONE(ctx, aclrtGetMemInfo, ACL_HBM_MEM, (size_t *)free, (size_t *)total);
}

na_status na_host_alloc(uintptr_t ctx, uint64_t size, uint64_t *address)
{
    NA_ONE(ctx, aclrtMallocHost, (void **)address, size);
}

na_status na_host_free(uintptr_t ctx, uint64_t address) { NA_ONE(ctx, aclrtFreeHost, PLACE(address)); }

na_status na_register(uintptr_t ctx, uint64_t address, uint64_t size)
{
    NA_ONE(ctx, aclrtHostRegisterV2, PLACE(address), size, ACL_HOST_REG_PINNED);
}

na_status na_unregister(uintptr_t ctx, uint64_t address) { NA_ONE(ctx, aclrtHostUnregister, PLACE(address)); }

na_status na_copy(uintptr_t ctx, uintptr_t stream, const na_rows *r)
{
    if (r->height == 1)
        NA_ONE(ctx, aclrtMemcpyAsync, PLACE(r->dst), r->width, PLACE(r->src), r->width, (aclrtMemcpyKind)r->kind,
               PLACE(stream));
    NA_ONE(ctx, aclrtMemcpy2dAsync, PLACE(r->dst), r->dpitch, PLACE(r->src), r->spitch, r->width, r->height,
           (aclrtMemcpyKind)r->kind, PLACE(stream));
}

na_status na_memset(uintptr_t ctx, uintptr_t stream, uint64_t address, int32_t value, uint64_t size)
{
    NA_ONE(ctx, aclrtMemsetAsync, PLACE(address), size, value, size, PLACE(stream));
}

na_status na_value_write(uintptr_t ctx, uintptr_t stream, uint64_t address, uint64_t value)
{
    NA_ONE(ctx, aclrtValueWrite, PLACE(address), value, 0, PLACE(stream));
}

na_status na_value_wait(uintptr_t ctx, uintptr_t stream, uint64_t address, uint64_t value, uint32_t how)
{
    NA_ONE(ctx, aclrtValueWait, PLACE(address), value, how, PLACE(stream));
}

void na_host_copy(const na_rows *r)
{
    for (uint64_t row = 0; row < r->height; row++)
        memmove(PLACE(r->dst + row * r->dpitch), PLACE(r->src + row * r->spitch), r->width);
}

void na_host_fill(uint64_t dst, uint64_t count, uint32_t value, int size)
{
    uint16_t half = (uint16_t)value;
    if (size == 1) memset(PLACE(dst), (int)value, count);
    else if (size == 2)
        for (uint64_t i = 0; i < count; i++) memcpy(PLACE(dst + 2 * i), &half, 2);
    else
        for (uint64_t i = 0; i < count; i++) memcpy(PLACE(dst + 4 * i), &value, 4);
}

uint64_t na_host_load(uint64_t address) { return __atomic_load_n((uint64_t *)PLACE(address), __ATOMIC_ACQUIRE); }

void na_host_store(uint64_t address, uint64_t value)
{
    __atomic_store_n((uint64_t *)PLACE(address), value, __ATOMIC_RELEASE);
}

void na_host_native(uint64_t fn, uint64_t arg) { ((void (*)(void *))(uintptr_t)fn)(PLACE(arg)); }
