/* The functions that Go calls: one for each operation of the backend.
 *
 * A goroutine stays on its thread during a C call, so the current context is
 * looked up, set and restored within one. Each function may be called by any thread,
 * with no lock of Go's held, and releases Python's lock while the driver works.
 * The result packs the driver's code and the number of the function that returned it. */
#ifndef HALSTREAM_CUDA_CALLS_H
#define HALSTREAM_CUDA_CALLS_H

#include <stdint.h>

#include "symbols.h"

typedef int64_t hs_status; /* code | number of the function << 32 */

static inline int32_t hs_code(hs_status s) { return (int32_t)(s & 0xffffffff); }

/* Whether a context is unusable after a code: those for which the vendor's
 * documentation says so, and failures of the memory or the links. */
int hs_lasting(int32_t code);

/* A number that identifies the calling thread while it lives. */
uintptr_t hs_self(void);
int hs_mapped(uint64_t address);

/* A slot is two words in pinned memory that the host and a stream share. */
typedef struct {
    _Atomic uint32_t reached; /* written by the stream when it gets there */
    _Atomic uint32_t hold;    /* written by the host to let the stream continue */
    char padding[56];         /* two slots do not share a cache line */
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
/* Whether a stream is captured: 0, 1, or 2 where the capture is invalid. */
hs_status hs_stream_captured(CUcontext ctx, CUstream stream, int *captured);
hs_status hs_stream_new(CUcontext ctx, uint32_t flags, int priority, CUstream *stream);
hs_status hs_stream_destroy(CUcontext ctx, CUstream stream);
hs_status hs_stream_query(CUcontext ctx, CUstream stream);
/* The same, unless the stream is being captured, which a query would break: *captured says so. */
hs_status hs_stream_look(CUcontext ctx, CUstream stream, int *captured);
hs_status hs_stream_facts(CUcontext ctx, CUstream stream, CUcontext *of, uint32_t *flags, int *priority);

/* Events. */
hs_status hs_event_new(CUcontext ctx, uint32_t flags, CUevent *event);
hs_status hs_event_destroy(CUcontext ctx, CUevent event);
hs_status hs_event_query(CUcontext ctx, CUevent event);
hs_status hs_record(CUcontext ctx, CUevent event, CUstream stream);
/* hs_record, unless the stream is being captured: *captured says so. */
hs_status hs_record_behind(CUcontext ctx, CUevent event, CUstream stream, int *captured);
hs_status hs_record_context(CUcontext ctx, CUevent event);
hs_status hs_wait(CUcontext ctx, CUstream stream, CUevent event);
/* Records event on the stream that is waited for, which may be of another context. */
hs_status hs_wait_stream(CUcontext ctx, CUstream stream, CUcontext of, CUstream other, CUevent event);
hs_status hs_elapsed(CUcontext ctx, CUevent start, CUevent end, float *ms);
/* Polls the event until it is done or limit nanoseconds (< 0: no limit, but it
 * returns from time to time) have passed, and returns the result of the last query.
 * It polls without a pause for spin nanoseconds, then sleeps between two queries. A
 * signal that interrupts such a sleep ends a limited wait if the thread asked package
 * park for that; one that arrives during a query does not. */
hs_status hs_await(CUcontext ctx, CUevent event, int64_t limit, int64_t spin);
/* The same for all work of a stream. */
hs_status hs_await_stream(CUcontext ctx, CUstream stream, int64_t limit, int64_t spin);

/* Protects slots from functions on the driver's thread: they check closed and count
 * themselves in inside, so once closed is set and inside is 0 none touches a slot. */
typedef struct {
    _Atomic int32_t closed, inside;
} hs_guard;
hs_guard *hs_guard_new(void);
/* Sets closed and returns when inside is 0. The guard itself is never freed, since
 * functions that run later still read it. */
void hs_guard_close(hs_guard *guard);

/* Slots. A stream that reaches hs_hold writes value to the slot's word "reached" and
 * waits until the host has written value to "hold"; HS_PASS only writes, HS_GATE only
 * waits. Without a guard these are memory operations of the stream; with one, a
 * function on the driver's thread does it. dev is the slot's address for devices. */
enum { HS_HOLD, HS_PASS, HS_GATE };
hs_status hs_hold(CUcontext ctx, CUstream stream, hs_guard *guard, int what, hs_slot *slot, CUdeviceptr dev, uint32_t value);
/* Sets the word at dev to value, or waits until it is at least value. */
hs_status hs_word_write(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint32_t value);
hs_status hs_word_wait(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint32_t value);
/* Sets the 64 bits at dev to value, or waits until they meet a condition, by the
 * driver's number; the condition of a write is -1. */
hs_status hs_value(CUcontext ctx, CUstream stream, CUdeviceptr dev, uint64_t value, int condition);
void hs_open(hs_slot *slot, uint32_t value);
uint32_t hs_reached(hs_slot *slot);

/* Polls n slots until one has its value in "reached", *wakeups differs from
 * seen_wakeups, or limit nanoseconds have passed. Returns the index of the slot, or -1. */
typedef struct { hs_slot *slot; uint32_t value; } hs_watch;
int hs_poll(const hs_watch *list, int n, const uint32_t *wakeups, uint32_t seen_wakeups, int64_t limit);
enum { HS_POLL_SPIN = 20000 }; /* for how many nanoseconds it polls without a pause */

/* Memory. */
hs_status hs_pool_new(CUdevice device, CUcontext ctx, CUmemoryPool *pool);
hs_status hs_pool_destroy(CUcontext ctx, CUmemoryPool pool);
hs_status hs_pool_trim(CUcontext ctx, CUmemoryPool pool);
/* Lets kernels of another device use the memory of a pool. */
hs_status hs_pool_access(CUcontext ctx, CUmemoryPool pool, CUdevice device);
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

typedef struct {
    uint64_t dst, count;
    uint32_t value, size;
} hs_memset;

/* Programs. */
hs_status hs_module_load(CUcontext ctx, const void *image, CUmodule *module, char *log, uint32_t size);
hs_status hs_module_unload(CUcontext ctx, CUmodule module);
/* The most parameters of a kernel that are read: what is above is not checked. */
#define HS_PARAMETERS 512
typedef struct {
    CUfunction function;
    int threads; /* of a block */
    int shared;  /* bytes of dynamic shared memory that a launch may ask for */
    int count;   /* of parameters; -1 if the driver does not say */
    uint16_t sizes[HS_PARAMETERS];
} hs_kernel;
hs_status hs_function(CUcontext ctx, CUdevice device, CUmodule module, const char *name, hs_kernel *kernel);
hs_status hs_module_global(CUcontext ctx, CUmodule module, const char *name, uint64_t *address, uint64_t *size);
typedef struct {
    int shared, constant, local, registers, ptx, binary;
} hs_attributes;
hs_status hs_function_attributes(CUcontext ctx, CUfunction function, hs_attributes *of);
typedef struct {
    CUfunction function;
    uint32_t grid[3], block[3], cluster[3], shared;
    int cooperative, count;
} hs_launch;
/* args are count values, cell bytes apart. */
hs_status hs_launch_kernel(CUcontext ctx, CUstream stream, const hs_launch *launch, const void *args, int cell);

/* Graphs of the driver, where hs_graphs says that it has them. The arguments of
 * a launch are as for hs_launch_kernel. hs_graph_exec makes an executable of a graph and destroys the graph. */
int hs_graphs(void);
hs_status hs_graph_new(CUcontext ctx, CUgraph *graph);
/* A node to be added: the work of its kind, and the `count` nodes that it comes after, from `after` on in a list.
 * The arguments of a launch begin `args` bytes behind those of the first one. */
enum { HS_NODE_EMPTY, HS_NODE_COPY, HS_NODE_FILL, HS_NODE_LAUNCH };
typedef struct {
    int kind;
    uint32_t after, count;
    size_t args;
    union {
        hs_copy copy;
        hs_memset fill;
        hs_launch launch;
    } work;
} hs_node;
/* Adds n nodes, and puts their handles into `handles` from `made` on. What a node comes after is given by the index
 * of its handle there. */
hs_status hs_graph_add(CUcontext ctx, CUgraph graph, const hs_node *nodes, size_t n, const uint32_t *after, const void *args,
                       int cell, CUgraphNode *handles, size_t made);
/* Nodes with conditions, where hs_conditions says that the driver has them: a condition of a graph, which
 * a kernel sets, and a node of it with count graphs, which the driver keeps, for the caller to fill. */
int hs_conditions(void);
hs_status hs_graph_condition(CUcontext ctx, CUgraph graph, uint64_t *condition);
hs_status hs_graph_add_condition(CUcontext ctx, CUgraph graph, uint64_t condition, int type, CUgraph *bodies, int count,
                                 CUgraphNode after, CUgraphNode *node);
hs_status hs_graph_exec(CUcontext ctx, CUgraph graph, CUgraphExec *exec);
void hs_graph_drop(CUcontext ctx, CUgraph graph);
hs_status hs_graph_launch(CUcontext ctx, CUgraphExec exec, CUstream stream);
hs_status hs_graph_end(CUcontext ctx, CUgraphExec exec);

/* Sleeps for 5 microseconds with Python's lock released. Returns 1 if the caller's
 * wait must end because a signal has interrupted the sleep. */
int hs_pause(void);

/* Around each use of pinned memory by the host: 0 where the process ends, and the driver may
 * have unmapped it. hs_watch_exit is to be called once the driver is initialized. */
int hs_begin_pinned(void);
void hs_end_pinned(void);
void hs_watch_exit(void);

/* Work on host memory, for threads of this package. */
void hs_host_copy(const hs_copy *copy);
void hs_host_fill(uint64_t dst, uint64_t count, uint32_t value, int size);
void hs_host_native(uint64_t fn, uint64_t arg);

#endif /* HALSTREAM_CUDA_CALLS_H */
