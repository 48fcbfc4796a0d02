/* The functions of halstream.h that enter Go each time. */
#include "apicall.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int api_device_count(int32_t *count)
{
    NEED(count);
    ENTER_GO(halstreamDeviceCount(who, count));
}

int api_device_name(int32_t device, char *text, size_t room)
{
    NEED(text);
    if (room == 0) return api_refuse(HALSTREAM_INVALID_VALUE, "there is no room for a name");
    ENTER_GO(halstreamDeviceName(who, device, text, room));
}

int api_device_memory(int32_t device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    NEED(free_bytes);
    NEED(total_bytes);
    ENTER_GO(halstreamDeviceMemory(who, device, free_bytes, total_bytes));
}

int api_device_synchronize(int32_t device, int64_t timeout_ns)
{
    ENTER_GO(halstreamDeviceSynchronize(who, device, timeout_ns));
}

int api_device_now(int32_t device, int64_t *ns)
{
    NEED(ns);
    ENTER_GO(halstreamDeviceNow(who, device, ns));
}

int api_stream_new(int32_t device, int32_t priority, uint32_t flags, halstream_id *stream)
{
    NEED(stream);
    ENTER_GO(halstreamStreamNew(who, device, priority, flags, stream));
}

int api_stream_default(int32_t device, halstream_id *stream)
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

int api_stream_close(halstream_id stream) { return api_close(stream, 0); }
int api_event_close(halstream_id event) { return api_close(event, 1); }
int api_block_free(halstream_id block) { return api_close(block, 2); }

int api_stream_drain(halstream_id stream, int64_t timeout_ns)
{
    ENTER_GO(halstreamStreamDrain(who, stream, timeout_ns));
}

int api_stream_capture(halstream_id stream, uint64_t *capture)
{
    NEED(capture);
    ENTER_GO(halstreamStreamCapture(who, stream, capture));
}

int api_stream_device(halstream_id stream, int32_t *device)
{
    NEED(device);
    ENTER_GO(halstreamStreamDevice(who, stream, device));
}

int api_stream_priority(halstream_id stream, int32_t *priority)
{
    NEED(priority);
    ENTER_GO(halstreamStreamPriority(who, stream, priority));
}

int api_stream_handle(halstream_id stream, uint64_t *handle)
{
    NEED(handle);
    ENTER_GO(halstreamStreamHandle(who, stream, handle));
}

int api_event_new(int32_t device, uint32_t flags, halstream_id *event)
{
    NEED(event);
    ENTER_GO(halstreamEventNew(who, device, flags, event));
}

int api_event_record_new(halstream_id stream, uint32_t flags, halstream_id *event)
{
    NEED(event);
    ENTER_GO(halstreamEventRecordNew(who, stream, flags, event));
}

int api_event_synchronize(halstream_id event, int64_t timeout_ns)
{
    ENTER_GO(halstreamEventSynchronize(who, event, timeout_ns));
}

int api_event_elapsed(halstream_id start, halstream_id end, double *milliseconds)
{
    NEED(milliseconds);
    ENTER_GO(halstreamEventElapsed(who, start, end, milliseconds));
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

int api_enqueue(halstream_id stream, const halstream_operation *given)
{
    NEED(given);
    if (given->size < sizeof *given)
        return api_refuse(HALSTREAM_INVALID_VALUE, "the size of the operation is not sizeof(halstream_operation)");
    if (given->flags != 0) return api_refuse(HALSTREAM_INVALID_VALUE, "flags of an operation that do not exist are set");
    if (given->run == NULL) return api_refuse(HALSTREAM_INVALID_VALUE, "the operation has no function to run");
    if (given->count != 0 && given->ranges == NULL) return api_refuse(HALSTREAM_INVALID_VALUE, "the ranges are NULL");
    int code = api_unusable();
    if (code) return code;
    if (halstream_self.native) return api_in_function();
    operation *o = malloc(sizeof *o);
    if (o == NULL) return api_refuse(HALSTREAM_OUT_OF_MEMORY, "there is no memory for an operation");
    *o = (operation){given->run, given->release, given->argument};
    int64_t who = api_enter();
    code = halstreamEnqueue(who, stream, o, halstream_name(given->name), given->site, (void *)given->ranges,
                            (int64_t)given->count);
    if (code != HALSTREAM_OK) free(o);
    return api_leave(who, code);
}

int api_copy(halstream_id stream, uint64_t dst, uint64_t src, uint64_t bytes)
{
    ENTER_GO(halstreamCopy(who, stream, dst, 0, src, 0, bytes, 0));
}

int api_copy_rows(halstream_id stream, uint64_t dst, uint64_t dst_pitch, uint64_t src, uint64_t src_pitch,
                         uint64_t width, uint64_t height)
{
    if (height == 0) return HALSTREAM_OK;
    ENTER_GO(halstreamCopy(who, stream, dst, dst_pitch, src, src_pitch, width, height));
}

int api_fill(halstream_id stream, uint64_t dst, uint32_t value, uint32_t value_bytes, uint64_t count)
{
    ENTER_GO(halstreamFill(who, stream, dst, value, value_bytes, count));
}

int api_nop(halstream_id stream) { ENTER_GO(halstreamNop(who, stream)); }

int api_delay(halstream_id stream, int64_t ns) { ENTER_GO(halstreamDelay(who, stream, ns)); }

int api_gate_new(halstream_id stream, halstream_id *gate)
{
    NEED(gate);
    ENTER_GO(halstreamGateNew(who, stream, gate));
}

int api_gate_open(halstream_id gate)
{
    int code = api_unusable();
    if (code) return code;
    int64_t who = api_enter(); /* functions on streams may call it */
    return api_leave(who, halstreamGateOpen(who, gate));
}

int api_block_new(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address)
{
    NEED(block);
    NEED(address);
    ENTER_GO(halstreamBlockNew(who, stream, bytes, 1, block, address));
}

int api_block_new_in_order(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address)
{
    NEED(block);
    NEED(address);
    ENTER_GO(halstreamBlockNew(who, stream, bytes, 0, block, address));
}

int api_block_new_host(uint64_t bytes, halstream_id *block, uint64_t *address)
{
    NEED(block);
    NEED(address);
    ENTER_GO(halstreamBlockNewHost(who, bytes, block, address));
}

int api_block_record_stream(halstream_id block, halstream_id stream)
{
    ENTER_GO(halstreamBlockRecordStream(who, block, stream));
}

int api_memory_stats(int32_t device, halstream_memory *stats)
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

int api_memory_reset_peaks(int32_t device) { ENTER_GO(halstreamMemoryResetPeaks(who, device)); }

int api_memory_empty_cache(int32_t device) { ENTER_GO(halstreamMemoryEmptyCache(who, device)); }

int api_memory_kind(uint64_t address, int *kind, int32_t *device)
{
    NEED(kind);
    NEED(device);
    ENTER_GO(halstreamMemoryKind(who, address, kind, device));
}

int api_host_access(uint64_t address, uint64_t bytes, uint32_t access)
{
    if (access == 0 || access > (HALSTREAM_READ | HALSTREAM_WRITE))
        return api_refuse(HALSTREAM_INVALID_VALUE, "an access is to read (1), to write (2) or both (3)");
    ENTER_GO(halstreamHostAccess(who, address, bytes, access));
}

