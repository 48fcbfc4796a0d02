/* What the two C files of the functions of halstream.h share. */
#ifndef HALSTREAM_APICALL_H
#define HALSTREAM_APICALL_H

#include "api.h"

#include "_cgo_export.h"
#include "caller.h"

#pragma GCC visibility push(hidden)

/* Keeps the text of an error and returns its code. */
int api_refuse(int code, const char *text);
/* Why no call can do anything, 0 if it can. */
int api_unusable(void);
/* The error of a call by a function that runs on a stream. */
int api_in_function(void);
/* Begins a call that enters Go, and ends it. A thread without Python's lock counts as
 * one that has released it: nothing of the core takes it then. */
int64_t api_enter(void);
int api_leave(int64_t who, int code);

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

/* The functions of the table that are in apicalls.c. */
int api_device_count(int32_t *count);
int api_device_name(int32_t device, char *text, size_t room);
int api_device_memory(int32_t device, uint64_t *free_bytes, uint64_t *total_bytes);
int api_device_synchronize(int32_t device, int64_t timeout_ns);
int api_device_now(int32_t device, int64_t *ns);
int api_stream_new(int32_t device, int32_t priority, uint32_t flags, halstream_id *stream);
int api_stream_default(int32_t device, halstream_id *stream);
int api_stream_close(halstream_id stream);
int api_stream_drain(halstream_id stream, int64_t timeout_ns);
int api_stream_capture(halstream_id stream, uint64_t *capture);
int api_event_close(halstream_id event);
int api_block_free(halstream_id block);
int api_stream_device(halstream_id stream, int32_t *device);
int api_stream_priority(halstream_id stream, int32_t *priority);
int api_stream_handle(halstream_id stream, uint64_t *handle);
int api_event_new(int32_t device, uint32_t flags, halstream_id *event);
int api_event_record_new(halstream_id stream, uint32_t flags, halstream_id *event);
int api_event_synchronize(halstream_id event, int64_t timeout_ns);
int api_event_elapsed(halstream_id start, halstream_id end, double *milliseconds);
int api_enqueue(halstream_id stream, const halstream_operation *given);
int api_copy(halstream_id stream, uint64_t dst, uint64_t src, uint64_t bytes);
int api_copy_rows(halstream_id stream, uint64_t dst, uint64_t dst_pitch, uint64_t src, uint64_t src_pitch,
                  uint64_t width, uint64_t height);
int api_fill(halstream_id stream, uint64_t dst, uint32_t value, uint32_t value_bytes, uint64_t count);
int api_nop(halstream_id stream);
int api_delay(halstream_id stream, int64_t ns);
int api_gate_new(halstream_id stream, halstream_id *gate);
int api_gate_open(halstream_id gate);
int api_block_new(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address);
int api_block_new_in_order(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address);
int api_block_new_host(uint64_t bytes, halstream_id *block, uint64_t *address);
int api_block_record_stream(halstream_id block, halstream_id stream);
int api_memory_stats(int32_t device, halstream_memory *stats);
int api_memory_reset_peaks(int32_t device);
int api_memory_empty_cache(int32_t device);
int api_memory_kind(uint64_t address, int *kind, int32_t *device);
int api_host_access(uint64_t address, uint64_t bytes, uint32_t access);

#pragma GCC visibility pop

#endif /* HALSTREAM_APICALL_H */
