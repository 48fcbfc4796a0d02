/* The functions that Go calls: one for each operation of the backend.
 *
 * A goroutine stays on its thread during a C call, so the current context is looked up, set and put back
 * within one. Each function may be called by any thread, with no lock of Go's held, and releases Python's
 * lock while the library works. Handles are integers, as Go's collector must not take one for an
 * address in its heap. */
#ifndef HALSTREAM_ASCEND_CALLS_H
#define HALSTREAM_ASCEND_CALLS_H

#include <stdatomic.h>
#include <stdint.h>

#include "symbols.h"

/* Of queries and waits: the work is not done. No code of the library's is negative. */
enum { NA_NOT_READY = -1 };

/* Devices. */
na_status na_init(uint32_t *count, int32_t *major, int32_t *minor);
na_status na_set_device(int32_t device, uintptr_t *ctx);
na_status na_reset_device(int32_t device);
const char *na_soc_name(void);
na_status na_uuid(int32_t device, unsigned char *uuid);
na_status na_device_info(int32_t device, int32_t attribute, int64_t *value);
na_status na_can_access(uintptr_t ctx, int32_t device, int32_t peer, int32_t *can);
na_status na_enable_peer(uintptr_t ctx, int32_t peer);

/* Streams and events. 0 is the context's default stream. */
na_status na_stream_new(uintptr_t ctx, uint32_t priority, uintptr_t *stream);
na_status na_stream_destroy(uintptr_t ctx, uintptr_t stream);
na_status na_stream_query(uintptr_t ctx, uintptr_t stream);
na_status na_event_new(uintptr_t ctx, uint32_t flags, uintptr_t *event);
na_status na_old_event_new(uintptr_t ctx, uintptr_t *event);
na_status na_event_destroy(uintptr_t ctx, uintptr_t event);
na_status na_event_query(uintptr_t event);
na_status na_record(uintptr_t ctx, uintptr_t event, uintptr_t stream);
na_status na_wait(uintptr_t ctx, uintptr_t stream, uintptr_t event);
na_status na_reset_event(uintptr_t ctx, uintptr_t event, uintptr_t stream);
na_status na_elapsed(uintptr_t ctx, uintptr_t start, uintptr_t end, float *ms);
na_status na_timestamp(uintptr_t ctx, uintptr_t event, uint64_t *us);
/* Queries the event until it is done or limit nanoseconds (< 0: no limit, but it returns from time to time)
 * have passed: without a pause for spin nanoseconds, then with growing pauses. A signal that interrupts a
 * pause ends a limited wait if the thread asked package park for that. */
na_status na_await(uintptr_t event, int64_t limit, int64_t spin);

/* Memory. */
na_status na_alloc(uintptr_t ctx, uint64_t size, uint64_t *address);
na_status na_free(uintptr_t ctx, uint64_t address);
na_status na_info(uintptr_t ctx, uint64_t *free, uint64_t *total);
na_status na_host_alloc(uintptr_t ctx, uint64_t size, uint64_t *address);
na_status na_host_free(uintptr_t ctx, uint64_t address);
na_status na_register(uintptr_t ctx, uint64_t address, uint64_t size);
na_status na_unregister(uintptr_t ctx, uint64_t address);
typedef struct {
    uint64_t dst, src, dpitch, spitch, width, height;
    int32_t kind; /* aclrtMemcpyKind */
} na_rows;
na_status na_copy(uintptr_t ctx, uintptr_t stream, const na_rows *rows);
na_status na_memset(uintptr_t ctx, uintptr_t stream, uint64_t address, int32_t value, uint64_t size);
na_status na_value_write(uintptr_t ctx, uintptr_t stream, uint64_t address, uint64_t value);
na_status na_value_wait(uintptr_t ctx, uintptr_t stream, uint64_t address, uint64_t value, uint32_t how);

/* An inbox is where the threads of lines put the numbers of functions that their streams have reached. */
typedef struct na_inbox na_inbox;
na_inbox *na_inbox_new(void);
/* Returns the next number; 0 after limit nanoseconds, or after na_inbox_wake. */
uint64_t na_inbox_next(na_inbox *inbox, int64_t limit);
void na_inbox_wake(na_inbox *inbox);

/* A line is a thread that is subscribed for the callbacks of one stream. na_line_end is called when the stream
 * has no callbacks pending, or will never run them. */
typedef struct na_line na_line;
na_status na_line_new(uintptr_t ctx, uintptr_t stream, na_line **line);
void na_line_end(na_line *line);

/* A visit is a callback. A HOLD posts its number and waits until it is opened, a PASS only posts it, a GATE only
 * waits, and a DELAY lasts ns nanoseconds. The caller gives its reference up by na_visit_drop. */
enum { NA_HOLD, NA_PASS, NA_GATE, NA_DELAY };
typedef struct na_visit na_visit;
na_visit *na_visit_new(na_inbox *inbox, na_line *line, int what, uint64_t number, int64_t ns);
na_status na_visit_launch(uintptr_t ctx, uintptr_t stream, na_visit *visit);
void na_visit_open(na_visit *visit);
void na_visit_drop(na_visit *visit);

/* Sleeps for 5 microseconds with Python's lock released. Returns 1 if the caller's wait must end because a
 * signal has interrupted the sleep. */
int na_pause(void);
uintptr_t na_self(void);

/* Work on host memory, for threads of this package. */
void na_host_copy(const na_rows *rows);
void na_host_fill(uint64_t dst, uint64_t count, uint32_t value, int size);
uint64_t na_host_load(uint64_t address);
void na_host_store(uint64_t address, uint64_t value);
void na_host_native(uint64_t fn, uint64_t arg);

#endif
