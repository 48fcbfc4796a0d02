/* A look-alike of the AscendCL library for tests of the backend, with no device behind it.
 *
 * It is plain C, since two Go runtimes in one process are not supported. It has the functions that
 * the backend calls and is never friendlier than the documentation: device memory cannot be touched
 * by the host, every stream has a thread and work runs late, the context of a stream must be current
 * where something is enqueued, a callback needs a subscribed thread, and calls within one fail.
 *
 * One lock guards everything. It is never held while a callback runs or bytes are copied. Functions
 * whose comment says so expect it held; they may let go of it while they wait. */
#ifndef FAKEACL_H
#define FAKEACL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/error_codes/rt_error_codes.h"

#define API __attribute__((visibility("default"))) aclError
#define CONTROL __attribute__((visibility("default")))

enum { MAX_DEVICES = 16, ALIGNMENT = 64, BUCKETS = 4096, REPORT_CONDITIONS = 64 };

enum function {
#define FUNCTION(name) FN_##name,
#include "functions.h"
#undef FUNCTION
    FN_COUNT
};

enum kind { FREED, CONTEXT, STREAM, EVENT };

/* Every object begins with this one. Handles are addresses of objects, which are never given back to
 * malloc, so that a handle of something that was destroyed is recognized. */
struct object {
    enum kind kind;
    struct object *next; /* in its bucket */
};

struct context {
    struct object object;
    int device;
    struct stream *streams; /* those that are open or have work */
    struct stream *standard; /* the default stream */
};

struct point { /* reached when that many operations of the stream are done */
    struct stream *stream;
    uint64_t seq;
};

struct stream {
    struct object object;
    struct context *context;
    struct stream *next; /* in the list of the context */
    uint32_t priority;
    bool closed; /* its thread ends */
    pthread_cond_t work; /* an operation was enqueued, or the stream was closed */
    uint64_t enqueued, completed;
    struct operation *head, *tail;
    uint64_t reporter; /* the thread that is subscribed; 0: none */
    aclError failure;  /* of the first operation that failed, reported once */
};

enum event_mode { EX, OLD };

struct event {
    struct object object;
    struct context *context;
    enum event_mode mode;
    uint32_t flags;
    bool recorded; /* a record was enqueued */
    bool set;      /* of the old mode: the record was reached, and no reset since */
    struct point at;
    uint64_t nanoseconds;
    int refs; /* operations that will use it, and its owner */
};

enum operation_kind { RECORD, WAIT, WAIT_SET, RESET, COPY, FILL, CALLBACK, VALUE_WRITE, VALUE_WAIT };

struct copy {
    char *to;
    const char *from;
    size_t width, height, to_pitch, from_pitch;
};

struct report {
    struct report *next;
    aclrtCallback function;
    void *data;
    bool block, done;
    uint64_t reporter;
};

struct operation {
    struct operation *next;
    enum operation_kind kind;
    uint64_t seq;
    struct point after;
    struct event *event;
    union {
        struct copy copy;
        struct { char *to; size_t size; int value; } fill;
        struct report *report;
        struct { _Atomic uint64_t *word; uint64_t value; uint32_t how; } value;
    };
};

enum where { PAGEABLE, ON_DEVICE, PINNED };

struct block {
    struct block *next;
    uintptr_t start;
    size_t size, taken;
    enum where where;
    int device;
};

struct device {
    bool open;
    int users;
    aclError lost; /* 0, or the code of every call that needs the device */
    struct context *primary;
    char *range; /* what callers see, which is inaccessible */
    char *bytes; /* the same memory for this library */
    size_t size, used;
    bool peers[MAX_DEVICES];
};

struct settings {
    int devices, version, no_block, planes;
    unsigned queue, streams;
    size_t memory;
};

struct state {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an operation is done, or a device lost */
    int waiting;            /* threads that wait for it */
    pthread_cond_t reported[REPORT_CONDITIONS]; /* of report threads, by their numbers */
    struct settings settings;
    int users; /* of aclInit */
    int device_count;
    struct device devices[MAX_DEVICES];
    struct object *objects[BUCKETS];
    struct block *blocks;
    struct report *reports, **last_report;
    size_t live[EVENT + 1], live_memory, live_pinned, live_registered;
    size_t left_streams; /* that were not destroyed when their device was given up */
    atomic_int touching; /* threads that copy or fill */
};
extern struct state state;

/* The calling thread. */
struct thread {
    struct context *current;
    uint64_t generation; /* of reset: current is of no use if it differs */
    bool reporting; /* it runs a callback */
    char text[256];
    bool has_text;
};
struct thread *this_thread(void);

/* core.c. begin starts a call; on success the lock is held. end lets go of it. */
aclError begin(enum function function);
aclError end(enum function function, aclError code);
void read_settings(void);
#define BEGIN(name) \
    enum function self = FN_##name; \
    do { \
        aclError begun = begin(self); \
        if (begun != ACL_SUCCESS) return begun; \
    } while (0)
#define END(code) return end(self, code)
#define CHECK(condition, code) \
    do { \
        if (!(condition)) END(code); \
    } while (0)
#define TRY(call) \
    do { \
        aclError tried = (call); \
        if (tried != ACL_SUCCESS) END(tried); \
    } while (0)

/* All of these are called with the lock held. */
void *object_new(enum kind kind, size_t size);
void object_drop(struct object *object);
bool is(const void *handle, enum kind kind);
aclError current(struct context **context);
aclError open_device(int ordinal);
void lose(int ordinal, aclError code);

void wait_for_change(void);
void tell_change(void);
void tell_everybody(void);

/* stream.c */
aclError stream_new(struct context *context, uint32_t priority, struct stream **stream);
aclError stream_for(aclrtStream handle, struct stream **stream);         /* that something is enqueued on */
aclError any_stream(aclrtStream handle, struct stream **stream);         /* in any context */
struct operation *operation_new(enum operation_kind kind);
aclError submit(struct stream *stream, struct operation *operation);
void wait_point(struct stream *stream, uint64_t seq);
void wait_idle(struct context *context);
void streams_drop(struct context *context);

/* event.c */
void event_unref(struct event *event);
uint64_t now(void);

/* memory.c */
struct block *block_of(const void *address, size_t size);
char *reachable(const void *address); /* where this library reaches it */
void memory_drop(void);

/* report.c */
pthread_cond_t *condition_of(uint64_t thread);
void report(struct stream *stream, struct operation *operation);

#endif
