/* What Go calls: one operation of a backend, one C function.
 *
 * A goroutine stays on its thread during a C call, so the current context is
 * looked up, set and restored within one. Each function is called by any thread,
 * with no lock of Go's held, and gives Python's lock up while the driver works.
 * The result packs the driver's code and which of its functions gave it. */
#ifndef HALSTREAM_CUDA_CALLS_H
#define HALSTREAM_CUDA_CALLS_H

#include <stdint.h>

#include "symbols.h"

typedef int64_t hs_status; /* code | number of the function << 32 */

static inline int32_t hs_code(hs_status s) { return (int32_t)(s & 0xffffffff); }

/* Whether a context cannot be used any more after a code: those that the vendor's
 * text calls so, and failures of the memory or the links. */
int hs_lasting(int32_t code);

/* A number of the calling thread, while it lives. */
uintptr_t hs_self(void);

/* A slot is words in pinned memory that the host and a stream share. */
typedef struct {
    _Atomic uint32_t reached; /* written by the stream when it gets there */
    _Atomic uint32_t hold;    /* written by the host to let the stream go on */
    char apart[56];           /* two streams do not share a line of the cache */
} hs_slot;

/* Devices. */
hs_status hs_init(int *count);
hs_status hs_device(int ordinal, CUdevice *device, char *name, int size);
hs_status hs_retain(CUdevice device, CUcontext *ctx);
hs_status hs_release(CUdevice device);
hs_status hs_priorities(CUcontext ctx, int *least, int *greatest);
hs_status hs_attribute(CUdevice device, int attribute, int *value);
hs_status hs_uuid(CUdevice device, unsigned char *uuid);
hs_status hs_bus(CUdevice device, char *id, int size);
hs_status hs_total(CUdevice device, uint64_t *bytes);
hs_status hs_can_access(CUdevice from, CUdevice to, int *can);
hs_status hs_enable_peer(CUcontext from, CUcontext to);
void hs_error_text(int32_t code, const char **name, const char **text);

/* Streams. */
hs_status hs_stream_new(CUcontext ctx, uint32_t flags, int priority, CUstream *stream);
hs_status hs_stream_destroy(CUcontext ctx, CUstream stream);
hs_status hs_stream_query(CUcontext ctx, CUstream stream);
hs_status hs_stream_facts(CUcontext ctx, CUstream stream, CUcontext *of, uint32_t *flags, int *priority);

/* Events. */
hs_status hs_event_new(CUcontext ctx, uint32_t flags, CUevent *event);
hs_status hs_event_destroy(CUcontext ctx, CUevent event);
hs_status hs_event_query(CUcontext ctx, CUevent event);
hs_status hs_record(CUcontext ctx, CUevent event, CUstream stream);
hs_status hs_record_context(CUcontext ctx, CUevent event);
hs_status hs_wait(CUcontext ctx, CUstream stream, CUevent event);
/* Records event on the stream that is waited for, which may be of another context. */
hs_status hs_wait_stream(CUcontext ctx, CUstream stream, CUcontext of, CUstream other, CUevent event);
hs_status hs_elapsed(CUcontext ctx, CUevent start, CUevent end, float *ms);
/* Waits until the event is done or limit nanoseconds (< 0: none, but it returns
 * from time to time) are over, and returns what the last query said. It looks
 * without a pause for spin nanoseconds, then sleeps between two looks. A signal that
 * interrupts such a sleep ends a limited wait, if the thread asked package park for
 * that; one that comes during a look does not. */
hs_status hs_await(CUcontext ctx, CUevent event, int64_t limit, int64_t spin);
/* The same for all work of a stream. */
hs_status hs_await_stream(CUcontext ctx, CUstream stream, int64_t limit, int64_t spin);

/* Whom the driver's thread asks before it touches a slot: once closed is set and
 * nobody is inside, nobody will. */
typedef struct {
    _Atomic int32_t closed, inside;
} hs_door;
hs_door *hs_door_new(void);
/* Closes it and returns when nobody is inside. The door itself stays. */
void hs_door_close(hs_door *door);

/* Slots. A stream that comes to hs_hold writes value to the slot's word "reached"
 * and stays until the host has put value into "hold"; pass writes only, gate only
 * waits. Without a door the stream does it itself by one call; with one, a function
 * does it on the driver's thread. dev is the slot's address for devices. */
enum { HS_HOLD, HS_PASS, HS_GATE };
hs_status hs_hold(CUcontext ctx, CUstream stream, hs_door *door, int what, hs_slot *slot, CUdeviceptr dev, uint32_t value);
/* Sets the word at dev to value, or waits until it is at least value. */
hs_status hs_word_write(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint32_t value);
hs_status hs_word_wait(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint32_t value);
/* Sets the 64 bits at dev to value, or waits until they meet a condition, by the
 * driver's number; the condition of a write is -1. */
hs_status hs_value(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint64_t value, int condition);
void hs_open(hs_slot *slot, uint32_t value);
uint32_t hs_reached(hs_slot *slot);

/* Looks at slots until one of n has its value in "reached", *poke differs from
 * poked, or limit nanoseconds are over. Returns the number of the first, or -1. */
typedef struct { hs_slot *slot; uint32_t value; } hs_watch;
int hs_poll(const hs_watch *list, int n, const uint32_t *poke, uint32_t poked, int64_t limit);
enum { HS_POLL_SPIN = 20000 }; /* how long it looks without a pause, nanoseconds */

/* Memory. */
hs_status hs_pool_new(CUdevice device, CUcontext ctx, CUmemoryPool *pool);
hs_status hs_pool_destroy(CUcontext ctx, CUmemoryPool pool);
hs_status hs_pool_trim(CUcontext ctx, CUmemoryPool pool);
hs_status hs_pool_kept(CUcontext ctx, CUmemoryPool pool, uint64_t *bytes);
hs_status hs_alloc(CUcontext ctx, uint64_t size, CUdeviceptr *address);
hs_status hs_alloc_pool(CUcontext ctx, uint64_t size, CUmemoryPool pool, CUstream stream, CUdeviceptr *address);
hs_status hs_free(CUcontext ctx, CUdeviceptr address);
hs_status hs_free_pool(CUcontext ctx, CUdeviceptr address, CUstream stream);
hs_status hs_info(CUcontext ctx, uint64_t *free, uint64_t *total);
hs_status hs_host_alloc(CUcontext ctx, uint64_t size, uint64_t *address);
hs_status hs_host_free(CUcontext ctx, uint64_t address);
hs_status hs_host_device(CUcontext ctx, uint64_t address, CUdeviceptr *device);
hs_status hs_register(CUcontext ctx, uint64_t address, uint64_t size);
hs_status hs_unregister(CUcontext ctx, uint64_t address);
hs_status hs_probe(CUcontext ctx, CUdeviceptr address, uint32_t *type, int *ordinal, uint64_t *start, uint64_t *size,
                   CUmemoryPool *pool);

/* Copies. to and from are contexts where the two lie on different devices, else 0. */
enum { HS_HOST_TO_DEVICE, HS_DEVICE_TO_HOST, HS_ON_DEVICE };
typedef struct {
    uint64_t dst, src, dpitch, spitch, width, height;
    int direction;
    CUcontext to, from;
} hs_copy;
hs_status hs_copy_async(CUcontext ctx, CUstream stream, const hs_copy *copy);
hs_status hs_fill(CUcontext ctx, CUstream stream, uint64_t dst, uint64_t count, uint32_t value, int size);

/* Programs. */
hs_status hs_module_load(CUcontext ctx, const void *image, CUmodule *module, char *log, uint32_t size);
hs_status hs_module_unload(CUcontext ctx, CUmodule module);
hs_status hs_function(CUcontext ctx, CUmodule module, const char *name, CUfunction *function, int *threads);
typedef struct {
    CUfunction function;
    uint32_t grid[3], block[3], shared;
    int cooperative, count;
} hs_launch;
/* args are count values, each at the start of a cell. */
hs_status hs_launch_kernel(CUcontext ctx, CUstream stream, const hs_launch *launch, const void *args, int cell);

/* Lets other threads run for a moment. Returns 1 if a signal has come that ends the
 * caller's wait. */
int hs_breathe(void);

/* Work of the host's own, which the driver would do while the caller waits. */
void hs_host_copy(uint64_t dst, uint64_t src, uint64_t dpitch, uint64_t spitch, uint64_t width, uint64_t height);
void hs_host_fill(uint64_t dst, uint64_t count, uint32_t value, int size);
void hs_host_native(uint64_t fn, uint64_t arg);

#endif /* HALSTREAM_CUDA_CALLS_H */
