/* The functions of halstream.h. Each one checks its pointers and calls Go, which decides. */
#include "capi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "caller.h"
#include "../hal/native/native.h"
#include "../hal/status/status.h"
#include "sites.h"

extern void halstreamRegister(void); /* of package python */
extern uint32_t halstreamGivenSite(char *file, uint32_t line, char *function);

_Thread_local halstream_kept *halstream_mine;
static pthread_key_t key;

static void thread_ends(void *kept)
{
    halstream_mine = NULL;
    free(kept);
}

__attribute__((constructor)) static void prepare(void) { pthread_key_create(&key, thread_ends); }

halstream_kept *halstream_keep_for_thread(void)
{
    halstream_mine = calloc(1, sizeof *halstream_mine);
    if (halstream_mine != NULL) pthread_setspecific(key, halstream_mine);
    return halstream_mine;
}

void halstream_set_error(const char *text, size_t size)
{
    halstream_kept *kept = halstream_kept_here();
    if (kept == NULL) return;
    if (size >= sizeof kept->error) size = sizeof kept->error - 1;
    memcpy(kept->error, text, size);
    kept->error[size] = 0;
    kept->lost = 0;
    kept->number = 0;
}

void halstream_set_error_number(int32_t number)
{
    if (halstream_mine != NULL) halstream_mine->number = number;
}

void halstream_set_lost(void)
{
    if (halstream_mine != NULL) halstream_mine->lost = 1;
}

/* Keeps the text of an error and returns its code. */
static int api_refuse(int code, const char *text)
{
    halstream_set_error(text, strlen(text));
    return code;
}

static const char *api_error_text(void)
{
    if (halstream_mine == NULL) return "";
    if (halstream_mine->lost && !halstream_forked && !halstream_is_over()) halstreamLossSeen();
    halstream_mine->lost = 0;
    return halstream_mine->error;
}

static int32_t api_error_number(void) { return halstream_mine == NULL ? 0 : halstream_mine->number; }

/* Why no call can do anything, 0 if it can. */
static int api_unusable(void)
{
    if (__builtin_expect(halstream_forked, 0))
        return api_refuse(HALSTREAM_FORKED, "this process was forked after halstream was loaded, and the runtime's threads "
                                        "stayed in the parent; start processes with the 'spawn' method instead");
    if (__builtin_expect(halstream_is_over(), 0))
        return api_refuse(HALSTREAM_SHUT_DOWN, "the interpreter is ending and the runtime has shut down");
    return 0;
}

/* Begins a call that enters Go, and api_leave ends it. A thread without Python's lock counts as
 * one that has released it: nothing of the core takes it then. */
static int64_t api_enter(void)
{
    int holds = halstream_holds_lock();
    if (holds) {
        halstream_caller = &halstream_self;
        halstream_self.direct = 1;
    } else {
        halstream_self.released++;
        halstream_self.unlocked++;
    }
    return (int64_t)halstream_self.slot << WHO_SHIFT | holds;
}

static int api_leave(int64_t who, int code)
{
    if (who & WHO_HOLDS) {
        halstream_self.direct = 0;
        halstream_unseen = 0; /* the caller may hold locks of its own, for which Python code could wait */
    } else {
        halstream_self.released--;
        halstream_self.unlocked--;
    }
    return code;
}

/* The error of a call by a function that runs on a stream. */
static int api_in_function(void)
{
    return api_refuse(HALSTREAM_IN_HOST_FUNCTION, "a function that runs on a stream may not call the runtime (the vendors "
                                              "forbid it: it would wait for itself); return first");
}

/* Calls a function of Go's with the caller as its first argument. */
#define ENTER_GO(call)                                                                                                 \
    do {                                                                                                               \
        int code = api_unusable();                                                                                     \
        if (code) return code;                                                                                         \
        if (__builtin_expect(halstream_self.native, 0)) return api_in_function();                                      \
        int64_t who = api_enter();                                                                                     \
        return api_leave(who, call);                                                                                   \
    } while (0)
#define NEED(pointer)                                                                                                  \
    if ((pointer) == NULL) return api_refuse(HALSTREAM_INVALID_VALUE, #pointer " is NULL")

static int api_device_count(int32_t *count)
{
    NEED(count);
    ENTER_GO(halstreamDeviceCount(who, count));
}

static int api_device_name(int32_t device, char *text, size_t room)
{
    NEED(text);
    if (room == 0) return api_refuse(HALSTREAM_INVALID_VALUE, "there is no room for a name");
    ENTER_GO(halstreamDeviceName(who, device, text, room));
}

static int api_device_failure(int32_t device, char *text, size_t room)
{
    NEED(text);
    if (room == 0) return api_refuse(HALSTREAM_INVALID_VALUE, "there is no room for a text");
    ENTER_GO(halstreamDeviceFailure(who, device, text, room));
}

static int api_device_memory(int32_t device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    NEED(free_bytes);
    NEED(total_bytes);
    ENTER_GO(halstreamDeviceMemory(who, device, free_bytes, total_bytes));
}

static int api_device_synchronize(int32_t device, int64_t timeout_ns)
{
    ENTER_GO(halstreamDeviceSynchronize(who, device, timeout_ns));
}

static int api_device_now(int32_t device, int64_t *ns)
{
    NEED(ns);
    ENTER_GO(halstreamDeviceNow(who, device, ns));
}

static int api_stream_new(int32_t device, int32_t priority, uint32_t flags, halstream_id *stream)
{
    NEED(stream);
    ENTER_GO(halstreamStreamNew(who, device, priority, flags, stream));
}

static int api_stream_default(int32_t device, halstream_id *stream)
{
    NEED(stream);
    ENTER_GO(halstreamStreamDefault(who, device, stream));
}

/* Numbers that releases of operations close are closed by the next call of the program. */
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t *late;
size_t halstream_late;
static size_t late_room;

static int close_late(int64_t id)
{
    int code = HALSTREAM_OK;
    pthread_mutex_lock(&late_lock);
    if (halstream_late == late_room) {
        size_t room = late_room ? late_room * 2 : 64;
        int64_t *list = realloc(late, room * sizeof *list);
        if (list == NULL) code = api_refuse(HALSTREAM_OUT_OF_MEMORY, "there is no memory to note what is to be closed");
        else late = list, late_room = room;
    }
    if (code == HALSTREAM_OK) {
        late[halstream_late] = id;
        __atomic_store_n(&halstream_late, halstream_late + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&late_lock);
    return code;
}

size_t halstream_take_late(int64_t *ids, size_t room)
{
    if (__atomic_load_n(&halstream_late, __ATOMIC_ACQUIRE) == 0) return 0;
    pthread_mutex_lock(&late_lock);
    size_t n = halstream_late < room ? halstream_late : room;
    if (n > 0) {
        memcpy(ids, late, n * sizeof *ids);
        memmove(late, late + n, (halstream_late - n) * sizeof *late);
        __atomic_store_n(&halstream_late, halstream_late - n, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&late_lock);
    return n;
}

static int api_close(int64_t id, int kind)
{
    int code = api_unusable();
    if (code) return code;
    if (halstream_self.native) return close_late(id);
    int64_t who = api_enter();
    return api_leave(who, halstreamClose(who, id, kind));
}

static int api_stream_close(halstream_id stream) { return api_close(stream, 0); }
static int api_event_close(halstream_id event) { return api_close(event, 1); }
static int api_block_free(halstream_id block) { return api_close(block, 2); }

static int api_stream_drain(halstream_id stream, int64_t timeout_ns)
{
    ENTER_GO(halstreamStreamDrain(who, stream, timeout_ns));
}

static int api_stream_capture(halstream_id stream, uint64_t *capture)
{
    NEED(capture);
    ENTER_GO(halstreamStreamCapture(who, stream, capture));
}

static int api_stream_device(halstream_id stream, int32_t *device)
{
    NEED(device);
    ENTER_GO(halstreamStreamDevice(who, stream, device));
}

static int api_stream_priority(halstream_id stream, int32_t *priority)
{
    NEED(priority);
    ENTER_GO(halstreamStreamPriority(who, stream, priority));
}

static int api_stream_handle(halstream_id stream, uint64_t *handle)
{
    NEED(handle);
    ENTER_GO(halstreamStreamHandle(who, stream, handle));
}

static int api_event_new(int32_t device, uint32_t flags, halstream_id *event)
{
    NEED(event);
    ENTER_GO(halstreamEventNew(who, device, flags, event));
}

static int api_event_record_new(halstream_id stream, uint32_t flags, halstream_id *event)
{
    NEED(event);
    ENTER_GO(halstreamEventRecordNew(who, stream, flags, event));
}

static int api_event_synchronize(halstream_id event, int64_t timeout_ns)
{
    ENTER_GO(halstreamEventSynchronize(who, event, timeout_ns));
}

static int api_event_elapsed(halstream_id start, halstream_id end, double *milliseconds)
{
    NEED(milliseconds);
    ENTER_GO(halstreamEventElapsed(who, start, end, milliseconds));
}

static int api_event_record(halstream_id event, halstream_id stream) { ENTER_GO(halstreamEventRecord(who, event, stream)); }

static int api_stream_wait_event(halstream_id stream, halstream_id event)
{
    ENTER_GO(halstreamStreamWaitEvent(who, stream, event));
}

static int api_stream_wait_stream(halstream_id stream, halstream_id other)
{
    ENTER_GO(halstreamStreamWaitStream(who, stream, other));
}

static int api_stream_query(halstream_id stream, int *done)
{
    NEED(done);
    ENTER_GO(halstreamStreamQuery(who, stream, done));
}

static int api_stream_synchronize(halstream_id stream, int64_t timeout_ns)
{
    ENTER_GO(halstreamStreamSynchronize(who, stream, timeout_ns));
}

static int api_event_query(halstream_id event, int *done)
{
    NEED(done);
    ENTER_GO(halstreamEventQuery(who, event, done));
}

/* An operation from enqueue until its release. */
typedef struct operation {
    int (*run)(void *argument, char *text, size_t room);
    void (*release)(void *argument);
    void *argument;
} operation;

int halstream_run_operation(void *pointer, char *text, size_t room)
{
    operation *o = pointer;
    halstream_self.native++;
    int failed = o->run(o->argument, text, room);
    halstream_self.native--;
    return failed;
}

void halstream_release_operation(void *pointer)
{
    operation *o = pointer;
    if (o->release != NULL) {
        halstream_self.native++;
        o->release(o->argument);
        halstream_self.native--;
    }
    free(o);
}

static int api_enqueue(halstream_id stream, const halstream_operation *given)
{
    NEED(given);
    if (given->size < sizeof *given)
        return api_refuse(HALSTREAM_INVALID_VALUE, "the size of the operation is not sizeof(halstream_operation)");
    if (given->flags & ~(uint32_t)(HALSTREAM_LOSES_DEVICE | HALSTREAM_HANDS_IN | HALSTREAM_AWAITS_OTHERS))
        return api_refuse(HALSTREAM_INVALID_VALUE, "flags of an operation that do not exist are set");
    if (given->run == NULL) return api_refuse(HALSTREAM_INVALID_VALUE, "the operation has no function to run");
    if (given->count != 0 && given->ranges == NULL) return api_refuse(HALSTREAM_INVALID_VALUE, "the ranges are NULL");
    int code = api_unusable();
    if (code) return code;
    if (halstream_self.native) return api_in_function();
    operation *o = malloc(sizeof *o);
    if (o == NULL) return api_refuse(HALSTREAM_OUT_OF_MEMORY, "there is no memory for an operation");
    *o = (operation){given->run, given->release, given->argument};
    int64_t who = api_enter();
    code = halstreamEnqueue(who, stream, o, (char *)given->name, given->site, given->flags,
                            (void *)given->ranges, (int64_t)given->count);
    if (code != HALSTREAM_OK) free(o);
    return api_leave(who, code);
}

_Static_assert(sizeof(halstream_range) == sizeof(hs_access), "the layouts are the same");

static int api_hand_in(const halstream_range *ranges, size_t count)
{
    if (count != 0) NEED(ranges);
    switch (hs_hand_in((const hs_access *)ranges, count)) {
    case 0:
        return HALSTREAM_OK;
    case 1:
        return api_refuse(HALSTREAM_INVALID_VALUE, "no operation that was enqueued with HALSTREAM_HANDS_IN runs on this thread");
    default:
        return api_refuse(HALSTREAM_OUT_OF_MEMORY, "there is no memory for the ranges that an operation hands in");
    }
}

static int api_copy(halstream_id stream, uint64_t dst, uint64_t src, uint64_t bytes)
{
    ENTER_GO(halstreamCopy(who, stream, dst, 0, src, 0, bytes, 0));
}

static int api_copy_rows(halstream_id stream, uint64_t dst, uint64_t dst_pitch, uint64_t src, uint64_t src_pitch,
                         uint64_t width, uint64_t height)
{
    if (height == 0) return HALSTREAM_OK;
    ENTER_GO(halstreamCopy(who, stream, dst, dst_pitch, src, src_pitch, width, height));
}

static int api_fill(halstream_id stream, uint64_t dst, uint32_t value, uint32_t value_bytes, uint64_t count)
{
    ENTER_GO(halstreamFill(who, stream, dst, value, value_bytes, count));
}

static int api_nop(halstream_id stream) { ENTER_GO(halstreamNop(who, stream)); }

static int api_delay(halstream_id stream, int64_t ns) { ENTER_GO(halstreamDelay(who, stream, ns)); }

static int api_gate_new(halstream_id stream, halstream_id *gate)
{
    NEED(gate);
    ENTER_GO(halstreamGateNew(who, stream, gate));
}

static int api_gate_open(halstream_id gate)
{
    int code = api_unusable();
    if (code) return code;
    int64_t who = api_enter(); /* functions on streams may call it */
    return api_leave(who, halstreamGateOpen(who, gate));
}

static int api_block_new(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address)
{
    NEED(block);
    NEED(address);
    ENTER_GO(halstreamBlockNew(who, stream, bytes, 1, block, address));
}

static int api_block_new_in_order(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address)
{
    NEED(block);
    NEED(address);
    ENTER_GO(halstreamBlockNew(who, stream, bytes, 0, block, address));
}

static int api_block_new_host(uint64_t bytes, halstream_id *block, uint64_t *address)
{
    NEED(block);
    NEED(address);
    ENTER_GO(halstreamBlockNewHost(who, bytes, block, address));
}

static int api_block_record_stream(halstream_id block, halstream_id stream)
{
    ENTER_GO(halstreamBlockRecordStream(who, block, stream));
}

static int api_memory_stats(int32_t device, halstream_memory *stats)
{
    NEED(stats);
    size_t size = stats->size;
    if (size < offsetof(halstream_memory, reserved))
        return api_refuse(HALSTREAM_INVALID_VALUE, "the size of the statistics is not sizeof(halstream_memory)");
    halstream_memory all = {0};
    int code = api_unusable();
    if (code) return code;
    if (halstream_self.native) return api_in_function();
    int64_t who = api_enter();
    code = api_leave(who, halstreamMemoryStats(who, device, &all));
    if (code != HALSTREAM_OK) return code;
    all.size = size < sizeof all ? size : sizeof all;
    memcpy(stats, &all, all.size); /* a program that was compiled earlier has a shorter struct */
    return HALSTREAM_OK;
}

static int api_memory_reset_peaks(int32_t device) { ENTER_GO(halstreamMemoryResetPeaks(who, device)); }

static int api_memory_empty_cache(int32_t device) { ENTER_GO(halstreamMemoryEmptyCache(who, device)); }

static int api_memory_kind(uint64_t address, int *kind, int32_t *device)
{
    NEED(kind);
    NEED(device);
    ENTER_GO(halstreamMemoryKind(who, address, kind, device));
}

static int api_host_access(uint64_t address, uint64_t bytes, uint32_t access)
{
    if (access == 0 || access > (HALSTREAM_READ | HALSTREAM_WRITE))
        return api_refuse(HALSTREAM_INVALID_VALUE, "an access is to read (1), to write (2) or both (3)");
    int code = api_unusable();
    if (code) return code;
    if (halstream_self.native) return api_in_function();
    int64_t who = api_enter();
    code = halstreamHostAccess(who, address, bytes, access);
    uint32_t unseen = who & WHO_HOLDS ? halstream_unseen : 0;
    code = api_leave(who, code);
    halstream_unseen = unseen;
    if (unseen) halstream_look_quietly();
    return code;
}

static uint64_t api_generation(void) { return __atomic_load_n(&halstream_generation, __ATOMIC_ACQUIRE); }

static uint32_t api_site_here(void)
{
    if (halstream_forked || halstream_is_over() || !halstream_holds_lock()) return 0;
    halstream_caller = &halstream_self;
    if (halstream_self.slot == 0) halstreamRegister();
    uint32_t here = halstream_site_of(0); /* the innermost frame may be the program's */
    if (halstream_unseen) halstream_look_quietly();
    return here;
}

static uint32_t api_line_here(void)
{
    if (halstream_forked || halstream_is_over() || !halstream_holds_lock()) return 0;
    halstream_caller = &halstream_self;
    if (halstream_self.slot == 0) halstreamRegister();
    return halstream_program_line();
}

static uint32_t api_site_new(const char *file, uint32_t line, const char *function)
{
    if (file == NULL || file[0] == 0 || halstream_forked) return 0;
    return halstreamGivenSite((char *)file, line, (char *)function);
}

static int api_listening(void)
{
    if (halstream_forked || halstream_is_over()) return 0;
    /* A capture keeps the places of calls as well. */
    return (__atomic_load_n(halstream_status, __ATOMIC_ACQUIRE) & HALSTREAM_LISTENED) != 0 ||
           __atomic_load_n(&halstream_lines, __ATOMIC_RELAXED) != 0;
}

/* Operators ask before each call: without a capture Go is not entered. */
static int api_capture_of(halstream_id stream, uint64_t *capture)
{
    if (!capture || halstream_forked || halstream_is_over() || halstream_self.native ||
        __atomic_load_n(halstream_status, __ATOMIC_ACQUIRE) & HALSTREAM_CAPTURED)
        return api_stream_capture(stream, capture);
    *capture = 0;
    return HALSTREAM_OK;
}

static const halstream_api api = {
    .size = sizeof(halstream_api),
    .version = HALSTREAM_API_VERSION,
    .error_text = api_error_text,
    .device_count = api_device_count,
    .device_name = api_device_name,
    .device_memory = api_device_memory,
    .device_synchronize = api_device_synchronize,
    .device_now = api_device_now,
    .generation = api_generation,
    .stream_new = api_stream_new,
    .stream_default = api_stream_default,
    .stream_close = api_stream_close,
    .stream_device = api_stream_device,
    .stream_priority = api_stream_priority,
    .stream_query = api_stream_query,
    .stream_synchronize = api_stream_synchronize,
    .stream_wait_event = api_stream_wait_event,
    .stream_wait_stream = api_stream_wait_stream,
    .stream_handle = api_stream_handle,
    .event_new = api_event_new,
    .event_close = api_event_close,
    .event_record = api_event_record,
    .event_record_new = api_event_record_new,
    .event_query = api_event_query,
    .event_synchronize = api_event_synchronize,
    .event_elapsed = api_event_elapsed,
    .enqueue = api_enqueue,
    .copy = api_copy,
    .copy_rows = api_copy_rows,
    .fill = api_fill,
    .nop = api_nop,
    .delay = api_delay,
    .gate_new = api_gate_new,
    .gate_open = api_gate_open,
    .block_new = api_block_new,
    .block_new_host = api_block_new_host,
    .block_record_stream = api_block_record_stream,
    .block_free = api_block_free,
    .memory_stats = api_memory_stats,
    .memory_reset_peaks = api_memory_reset_peaks,
    .memory_empty_cache = api_memory_empty_cache,
    .memory_kind = api_memory_kind,
    .host_access = api_host_access,
    .site_here = api_site_here,
    .site_new = api_site_new,
    .listening = api_listening,
    .block_new_in_order = api_block_new_in_order,
    .stream_drain = api_stream_drain,
    .stream_capture = api_capture_of,
    .device_failure = api_device_failure,
    .line_here = api_line_here,
    .hand_in = api_hand_in,
    .error_number = api_error_number,
};

__attribute__((visibility("default"))) const halstream_api *halstream_get_api(uint32_t version)
{
    return version >= 1 && version <= HALSTREAM_API_VERSION ? &api : NULL;
}
