/* halstream.h: the C interface of the runtime.
 *
 * A program gets the table of functions from the capsule HALSTREAM_API_CAPSULE, which
 * the extension module has as an attribute:
 *
 *     import halstream                      (Python)
 *     capsule = halstream.get_api()
 *
 *     const halstream_api *api = PyCapsule_GetPointer(capsule, HALSTREAM_API_CAPSULE);
 *     if (api->version < HALSTREAM_API_VERSION) ... this library is older than the header
 *
 * halstream.get_include() returns the folder of this file. The extension exports
 * halstream_get_api as well, for code that has the extension's handle; it needs a
 * process with an interpreter, since the extension is a module of Python's.
 *
 * Every function may be called from any thread, with or without Python's lock (GIL),
 * from threads that Python has never seen, too. None needs the lock. A wait that is
 * made with the lock held releases it meanwhile, runs handlers of signals as waits of
 * Python's do, and then takes it again; otherwise the lock is never taken. No function
 * keeps an object of Python's.
 *
 * Every function that returns int returns HALSTREAM_OK or an error code; error_text
 * has the text of the calling thread's latest error. Results are written only where
 * HALSTREAM_OK is returned. The rules (contract) are those of the runtime, see
 * docs/contract.md; the clauses C1 to C9 are about this interface. */
#ifndef HALSTREAM_API_H
#define HALSTREAM_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HALSTREAM_API_VERSION 1
#define HALSTREAM_API_CAPSULE "halstream._halstream.api"

enum {
    HALSTREAM_OK = 0,
    HALSTREAM_TIMEOUT = 1,          /* the limit of the wait passed; the work goes on */
    HALSTREAM_INVALID_VALUE = 2,
    HALSTREAM_CLOSED = 3,           /* the object was closed, or its runtime */
    HALSTREAM_OUT_OF_MEMORY = 4,
    HALSTREAM_DEVICE_LOST = 5,
    HALSTREAM_NOT_SUPPORTED = 6,
    HALSTREAM_ABORTED = 7,
    HALSTREAM_IN_HOST_FUNCTION = 8, /* a function that runs on a stream may not call */
    HALSTREAM_WRONG_DEVICE = 9,
    HALSTREAM_FUNCTION_FAILED = 10, /* a function that was enqueued earlier */
    HALSTREAM_FORKED = 11,          /* the process is a fork's child: nothing works there */
    HALSTREAM_SHUT_DOWN = 12,       /* the interpreter is ending */
    HALSTREAM_UNKNOWN = 13,
    HALSTREAM_NOT_READY = 14,
    HALSTREAM_INVALID_HANDLE = 15,  /* no object of this kind ever had the number */
    HALSTREAM_INVALID_DEVICE = 16,
    HALSTREAM_WRONG_CONTEXT = 17,
    HALSTREAM_NO_CONTEXT = 18,
    HALSTREAM_TIMING_DISABLED = 19,
    HALSTREAM_UNRECORDED = 20,
    HALSTREAM_CAPTURE = 21,
    HALSTREAM_NOT_SUBSCRIBED = 22,
    HALSTREAM_BACKEND_ABSENT = 23,
    HALSTREAM_INTERRUPTED = 24      /* a handler of a signal raised during a wait with Python's lock
                                       held: Python's exception is set */
};

/* Streams, events, gates and blocks are numbers: Python's objects have the same ones
 * as `_id`. A number is never given twice. 0 is none. */
typedef int64_t halstream_id;

enum { HALSTREAM_READ = 1, HALSTREAM_WRITE = 2 };

/* Bytes that an operation accesses: `rows` pieces of `bytes` bytes, `pitch` bytes from
 * the start of one to that of the next. 0 and 1 rows are one piece. Of more than 4096
 * pieces with gaps between them listeners see one range, with the gaps. */
typedef struct halstream_range {
    uint64_t start, bytes, rows, pitch;
    uint32_t access; /* HALSTREAM_READ, HALSTREAM_WRITE, or both */
    uint32_t unused;
} halstream_range;

enum { HALSTREAM_STREAM_NON_BLOCKING = 1 };
enum { HALSTREAM_EVENT_TIMING = 1, HALSTREAM_EVENT_BLOCKING_SYNC = 2, HALSTREAM_EVENT_IPC = 4 };

/* Flag of an operation that stands for a kernel: with an error of it its device is lost, as with
 * an assertion in a kernel of CUDA, instead of an error of its stream. What has not started on the
 * device is dropped, and from then on every call that enqueues, queries or waits there returns
 * HALSTREAM_DEVICE_LOST with the name, the text and the site; so does one for a device that has
 * waited for a lost one. Closing and freeing work. */
enum { HALSTREAM_LOSES_DEVICE = 1 };

/* Flag of an operation whose ranges are an upper bound: `run` hands in those that it accesses
 * (hand_in). A sanitizer compares it with other operations when it has run, at the place that it was
 * enqueued at. */
enum { HALSTREAM_HANDS_IN = 2 };

/* Flag of an operation whose `run` waits for what other processes do, as a collective does: reports of
 * waits that can never end look at it while it runs, where they take any other one to end by itself. */
enum { HALSTREAM_AWAITS_OTHERS = 4 };

/* A function in stream order. The struct itself, the ranges and the name are copied as
 * far as they are needed; the caller may free them after the call. */
typedef struct halstream_operation {
    size_t size;      /* sizeof(halstream_operation) */
    const char *name; /* in reports and errors, UTF-8, as "aten::addmm"; NULL: a native function */
    uint32_t site;    /* where the program made the call: of site_here or site_new. 0: the place of
                         this call, if somebody listens and the thread holds Python's lock */
    uint32_t flags;   /* of HALSTREAM_LOSES_DEVICE, HALSTREAM_HANDS_IN and HALSTREAM_AWAITS_OTHERS */
    const halstream_range *ranges;
    size_t count; /* of ranges */
    /* Runs once, on a thread of the runtime without Python's lock; where the stream captures,
     * once in each launch of the graph. It may call nothing
     * here but gate_open, error_text, hand_in, listening and the functions for sites. It returns 0; any other
     * number is an error of the stream, with the text that it wrote (UTF-8, `room` bytes
     * with the final 0): the next synchronize or query of the stream, or the next
     * synchronize of an event recorded behind it or of the device, returns
     * HALSTREAM_FUNCTION_FAILED, once, with the name and the text. With HALSTREAM_LOSES_DEVICE
     * it is an error of the device. */
    int (*run)(void *argument, char *text, size_t room);
    void *argument;
    /* Called exactly once, after run or, if the operation is dropped, instead of it; for a captured
     * one when neither the graph nor a launch needs it any more; on any
     * thread, without Python's lock. Not called if enqueue fails. It may call nothing here.
     * NULL: none. */
    void (*release)(void *argument);
} halstream_operation;

/* A count, its peak since memory_reset_peaks, and all that was added to it. */
typedef struct halstream_gauge {
    uint64_t current, peak, added;
} halstream_gauge;

/* Segments that the pools of streams have taken from a device, and in those of them that
 * are in use in part the parts that are free. */
typedef struct halstream_segments {
    halstream_gauge segments, bytes, split, split_bytes;
} halstream_segments;

/* Bytes, and how often. */
typedef struct halstream_memory {
    size_t size; /* sizeof(halstream_memory), set by the caller */
    uint64_t allocated, allocated_peak; /* of blocks that were not freed */
    uint64_t reserved, reserved_peak;   /* taken from the device */
    uint64_t allocations, frees;        /* of block_new and block_free on this device */
    uint64_t active, active_peak;       /* allocated, or freed and still used by pending work */
    uint64_t out_of_memory, retries;
    halstream_segments pools[3]; /* all segments, those of up to 2 MiB, larger ones */
} halstream_memory;

typedef struct halstream_api {
    size_t size;      /* of this struct; later versions add members at the end */
    uint32_t version; /* HALSTREAM_API_VERSION of the library */
    uint32_t unused;

    /* The text of the calling thread's latest error, "" without one; valid until the
     * thread's next call that fails. Of a device that was lost the end of the process says
     * so unless a thread has asked for the text. */
    const char *(*error_text)(void);

    /* Devices are numbered from 0. The first call opens the backend. */
    int (*device_count)(int32_t *count);
    int (*device_name)(int32_t device, char *text, size_t room);
    int (*device_memory)(int32_t device, uint64_t *free_bytes, uint64_t *total_bytes);
    int (*device_synchronize)(int32_t device, int64_t timeout_ns); /* < 0: no limit, here as below */
    int (*device_now)(int32_t device, int64_t *ns);
    uint64_t (*generation)(void); /* changes with halstream.use_backend: earlier numbers are closed then */

    int (*stream_new)(int32_t device, int32_t priority, uint32_t flags, halstream_id *stream);
    int (*stream_default)(int32_t device, halstream_id *stream);
    int (*stream_close)(halstream_id stream); /* pending work still runs; closing again does nothing */
    int (*stream_device)(halstream_id stream, int32_t *device);
    int (*stream_priority)(halstream_id stream, int32_t *priority);
    int (*stream_query)(halstream_id stream, int *done);
    int (*stream_synchronize)(halstream_id stream, int64_t timeout_ns);
    int (*stream_wait_event)(halstream_id stream, halstream_id event);
    int (*stream_wait_stream)(halstream_id stream, halstream_id other);
    int (*stream_handle)(halstream_id stream, uint64_t *handle); /* the vendor's, else 0 or the number */

    int (*event_new)(int32_t device /* -1: of its first record */, uint32_t flags, halstream_id *event);
    int (*event_close)(halstream_id event);
    int (*event_record)(halstream_id event, halstream_id stream);
    int (*event_record_new)(halstream_id stream, uint32_t flags, halstream_id *event);
    int (*event_query)(halstream_id event, int *done);
    int (*event_synchronize)(halstream_id event, int64_t timeout_ns);
    int (*event_elapsed)(halstream_id start, halstream_id end, double *milliseconds);

    int (*enqueue)(halstream_id stream, const halstream_operation *operation);
    /* Copies wait where the vendors' do: see clauses M3 to M5. */
    int (*copy)(halstream_id stream, uint64_t dst, uint64_t src, uint64_t bytes);
    int (*copy_rows)(halstream_id stream, uint64_t dst, uint64_t dst_pitch, uint64_t src, uint64_t src_pitch,
                     uint64_t width, uint64_t height);
    int (*fill)(halstream_id stream, uint64_t dst, uint32_t value, uint32_t value_bytes, uint64_t count);
    int (*nop)(halstream_id stream);
    int (*delay)(halstream_id stream, int64_t ns);
    int (*gate_new)(halstream_id stream, halstream_id *gate); /* blocks the stream until it is opened */
    int (*gate_open)(halstream_id gate);                      /* opening again does nothing */

    /* Blocks of a stream's pool, with the rules of PyTorch's allocator: a freed block can be
     * given out on its own stream at once; of streams named by block_record_stream the work
     * that is enqueued when it is freed is waited for first. Pinned blocks can be given out
     * again once the work that uses them, or was recorded, is done. */
    int (*block_new)(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address);
    int (*block_new_host)(uint64_t bytes, halstream_id *block, uint64_t *address);
    int (*block_record_stream)(halstream_id block, halstream_id stream);
    int (*block_free)(halstream_id block);
    int (*memory_stats)(int32_t device, halstream_memory *stats);
    int (*memory_reset_peaks)(int32_t device);
    int (*memory_empty_cache)(int32_t device);
    int (*memory_kind)(uint64_t address, int *kind /* 0 pageable, 1 pinned, 2 device */,
                       int32_t *device /* -1: of the host */);

    /* Tells listeners what the host itself reads or writes. With Python's lock held, it and site_here may run Python
     * code: the caller holds no lock of its own for which that could wait. */
    int (*host_access)(uint64_t address, uint64_t bytes, uint32_t access);

    /* Places of the program. They are never freed; equal ones have one number. */
    uint32_t (*site_here)(void); /* Python's stack, with its lock held; 0 without */
    uint32_t (*site_new)(const char *file, uint32_t line, const char *function);
    int (*listening)(void); /* 1 while a sanitizer, a trace or a schedule uses names, sites and ranges */

    /* As block_new, but the free is an operation of the stream, as cudaFreeAsync is: the sanitizer
     * reports it if work that it is not ordered behind still uses the block. The free of a block of
     * block_new is no access: only what its memory is given out for next can be in a report. */
    int (*block_new_in_order)(halstream_id stream, uint64_t bytes, halstream_id *block, uint64_t *address);

    /* Waits as stream_synchronize does, for a call that documents no wait: listeners are not
     * notified, so the sanitizer counts nothing as ordered by it, and an error of the stream
     * stays for the next synchronize or query. */
    int (*stream_drain)(halstream_id stream, int64_t timeout_ns);

    /* The number of the capture that the stream takes part in, 0 if it takes part in none; numbers
     * are not reused. While nothing captures, the stream is not looked at. */
    int (*stream_capture)(halstream_id stream, uint64_t *capture);

    /* Writes the error with which the device was lost, "" while it works. It does
     * not count as asked for by that. */
    int (*device_failure)(int32_t device, char *text, size_t room);

    /* The innermost line of the program on Python's stack, with its lock held, as a site; 0 without.
     * It takes a part of the time of site_here, whose sites have the whole stack. */
    uint32_t (*line_here)(void);

    /* For `run` of an operation with HALSTREAM_HANDS_IN, on the thread that it was called on: what it
     * accesses of the ranges that it was enqueued with. Calls add up; with none it is all of them, and
     * with a count of 0 nothing. Without a listener it need not be called. */
    int (*hand_in)(const halstream_range *ranges, size_t count);

    /* The number that CUDA's driver has for the error of error_text, such as 700 for a kernel that
     * accessed memory which is not its own; 0 where there is none. */
    int32_t (*error_number)(void);
} halstream_api;

/* NULL if this library is older than the version that is asked for. */
const halstream_api *halstream_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif /* HALSTREAM_API_H */
