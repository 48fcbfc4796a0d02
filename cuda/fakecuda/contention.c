/* What calls of a driver wait for besides their own work: the lock of a context, an idle
 * device, and the hardware queues that streams share. */
#include "fakecuda.h"

#include <stdio.h>

/* ---- Calls that a test stops ---- */

static bool stopping[FN_COUNT];
static pthread_cond_t stops_changed = PTHREAD_COND_INITIALIZER;
static unsigned long long stopped;

/* Makes calls of a function stop as if another one had a lock that they need, or go on. */
int make_stopping(const char *name, bool on) {
    int function = number_of(name);
    if (function < 0)
        return -1;
    stopping[function] = on;
    pthread_cond_broadcast(&stops_changed);
    return 0;
}

void stop_calls_no_more(void) {
    memset(stopping, 0, sizeof stopping);
    pthread_cond_broadcast(&stops_changed);
}

/* How many calls are stopped now. */
unsigned long long stopped_calls(void) { return stopped; }

static void stop_here(int function) {
    stopped++;
    while (stopping[function])
        pthread_cond_wait(&stops_changed, &state.lock);
    stopped--;
}

/* ---- Calls that wait for the device ---- */

static atomic_bool draining[FN_COUNT];
static bool first_launches_drain;

/* Functions that concern no context, or only which one is current on the thread. */
static bool needs_no_context(int function) {
    switch (function) {
    case FN_cuInit: case FN_cuDriverGetVersion: case FN_cuGetProcAddress_v2: case FN_cuGetErrorName:
    case FN_cuGetErrorString: case FN_cuGetExportTable: case FN_cuDeviceGetCount: case FN_cuDeviceGet: case FN_cuDeviceGetName:
    case FN_cuDeviceGetAttribute: case FN_cuDeviceGetUuid: case FN_cuDeviceGetUuid_v2:
    case FN_cuDeviceTotalMem_v2: case FN_cuDeviceGetPCIBusId: case FN_cuDeviceCanAccessPeer:
    case FN_cuDevicePrimaryCtxRetain: case FN_cuDevicePrimaryCtxRelease_v2: case FN_cuDevicePrimaryCtxGetState:
    case FN_cuCtxSetCurrent: case FN_cuCtxGetCurrent: case FN_cuCtxPushCurrent_v2: case FN_cuCtxPopCurrent_v2:
    case FN_cuCtxGetDevice: case FN_cuCtxCreate_v2: case FN_cuCtxCreate_v4: case FN_cuCtxDestroy_v2:
    case FN_cuLibraryLoadData: case FN_cuLibraryGetKernel: case FN_cuLibraryGetKernelCount:
    case FN_cuLibraryEnumerateKernels: case FN_cuKernelGetLibrary: case FN_cuKernelGetName:
    case FN_cuKernelGetParamInfo: case FN_cuKernelGetAttribute: case FN_cuKernelSetAttribute:
    case FN_cuKernelSetCacheConfig:
    case FN_cuThreadExchangeStreamCaptureMode: case FN_cuModuleGetLoadingMode:
        return true;
    }
    return false;
}

/* Functions that change what a context has mapped: they hold its lock, and wait until
 * the device is idle. */
static bool writes_context(int function) {
    switch (function) {
    case FN_cuMemFree_v2: case FN_cuMemFreeHost: case FN_cuMemHostUnregister: case FN_cuModuleLoadData:
    case FN_cuModuleLoadDataEx: case FN_cuFuncLoad: case FN_cuLibraryUnload: case FN_cuLibraryGetModule:
    case FN_cuKernelGetFunction:
        return true;
    }
    return false;
}

/* Takes the lock of a context for the calling thread until `end`. */
static void lock_context(struct context *context) {
    struct thread *thread = this_thread();
    while (context->locked_by != NULL && context->locked_by != thread)
        pthread_cond_wait(&context->unlocked, &state.lock);
    if (context->locked_by == thread)
        return;
    context->locked_by = thread;
    context->refs++;
    thread->locked = context;
}

/* Called at the end of each call, with the lock of the library held. */
static void unlock_context(void) {
    struct thread *thread = this_thread();
    struct context *context = thread->locked;
    if (context == NULL)
        return;
    thread->locked = NULL;
    context->locked_by = NULL;
    pthread_cond_broadcast(&context->unlocked);
    context_unref(context);
}

CUresult end(CUresult code) {
    unlock_context();
    pthread_mutex_unlock(&state.lock);
    return code;
}

/* Waits for the context's lock, and for its device where the function does that. */
void enter_context(int function, uint64_t handle) {
    if (stopping[function])
        stop_here(function);
    struct context *context = needs_no_context(function) ? NULL : context_of(handle);
    if (context == NULL)
        return;
    context->refs++;
    while (context->locked_by != NULL && context->locked_by != this_thread())
        pthread_cond_wait(&context->unlocked, &state.lock);
    if (state.settings.context_lock && writes_context(function)) {
        lock_context(context);
        synchronize_context(context);
    } else if (atomic_load(&draining[function])) {
        synchronize_context(context);
    }
    context_unref(context);
}

/* A kernel that is loaded at its first launch is loaded as a module is. */
void enter_first_launch(struct context *context) {
    if (!first_launches_drain)
        return;
    context->refs++;
    if (state.settings.context_lock)
        lock_context(context);
    synchronize_context(context);
    context_unref(context);
}

/* Makes a function wait for the device, or the first launches ("first_launch"). */
int make_draining(const char *name, bool on) {
    int function = number_of(name);
    if (strcmp(name, "first_launch") == 0)
        first_launches_drain = on;
    else if (function >= 0)
        atomic_store(&draining[function], on);
    return function >= 0 || strcmp(name, "first_launch") == 0 ? 0 : -1;
}

/* Reads a list like "cuMemHostAlloc,first_launch". */
void read_draining(const char *otherwise) {
    const char *text = getenv("FAKECUDA_DRAIN");
    first_launches_drain = false;
    for (int i = 0; i < FN_COUNT; i++)
        atomic_store(&draining[i], false);
    char *list = strdup(text != NULL ? text : otherwise), *rest = list, *name;
    while (list != NULL && (name = strsep(&rest, ",")) != NULL) {
        if (*name && make_draining(name, true) != 0) {
            fprintf(stderr, "fakecuda: FAKECUDA_DRAIN: there is no function \"%s\"\n", name);
            abort();
        }
    }
    free(list);
}

/* ---- Hardware queues ---- */

/* Operations leave a queue in the order in which they were enqueued. One leaves when it
 * starts, if it is a kernel or a copy; a wait, a write and a record when it is done. So
 * what cannot start yet holds up all that is behind it, whatever stream that is of. */
struct hardware_queue {
    uint64_t entered, left;
    pthread_cond_t moved;
};

enum { LEVELS = LEAST_PRIORITY - GREATEST_PRIORITY + 1 };

void queues_new(struct context *context) {
    size_t most = (size_t)state.settings.connections;
    if (most == 0)
        return;
    context->queue_count = most * LEVELS;
    context->queues = calloc(context->queue_count, sizeof *context->queues);
    if (context->queues == NULL)
        abort();
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_init(&context->queues[i].moved, NULL);
}

void queues_free(struct context *context) {
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_destroy(&context->queues[i].moved);
    free(context->queues);
}

/* The streams of a level are dealt out in turn. */
struct hardware_queue *queue_for(struct context *context, int priority) {
    size_t most = context->queue_count / LEVELS, level = 0;
    if (most == 0)
        return NULL;
    if (state.settings.priority_queues)
        level = (size_t)(priority - GREATEST_PRIORITY);
    return &context->queues[level * most + context->dealt[level]++ % most];
}

void queue_enter(struct stream *stream, struct operation *operation) {
    if (stream->queue != NULL)
        operation->ticket = ++stream->queue->entered;
}

/* Waits until all that was enqueued before has left. */
void queue_wait(struct stream *stream, const struct operation *operation) {
    while (stream->queue != NULL && stream->queue->left + 1 < operation->ticket &&
           atomic_load(&stream->context->error) == SUCCESS)
        pthread_cond_wait(&stream->queue->moved, &state.lock);
}

void queue_leave(struct stream *stream, const struct operation *operation) {
    if (stream->queue == NULL || stream->queue->left >= operation->ticket)
        return;
    stream->queue->left = operation->ticket;
    pthread_cond_broadcast(&stream->queue->moved);
}

/* Whether a stream counts among those that share the queues of a level, and was used since "count uses". */
static bool counts(const struct stream *s, int priority) {
    const struct context *context = s->context;
    if (s == context->fence || s == context->gate || s->priority != priority)
        return false;
    return s == context->legacy || s->used_in == state.uses;
}

/* Adds a line to the file that FAKECUDA_BESIDE names: the queues that the streams of a level need that were used,
 * the legacy default stream among them, as it has a queue in any case. */
static void note_queues(const char *path, const struct context *context, int priority, unsigned more) {
    for (const struct stream *s = context->streams; s != NULL; s = s->next)
        more += counts(s, priority);
    FILE *file = fopen(path, "a");
    if (file == NULL)
        return;
    fprintf(file, "%u\n", more);
    fclose(file);
}

void note_use(struct stream *stream) {
    if (!state.uncounted)
        stream->used_in = state.uses;
}

static const char *notes(const struct context *context) {
    const char *path = context->waiting > 0 && !state.uncounted ? getenv("FAKECUDA_BESIDE") : NULL;
    return path != NULL && *path ? path : NULL;
}

/* An operation has ended, or begins to wait. If another stream of its level is held up meanwhile since one waits for
 * the host, it would not have got there where the two share a hardware queue. */
void note_beside(const struct stream *stream) {
    const struct context *context = stream->context;
    const char *path = notes(context);
    bool beside = false;
    if (path == NULL || !counts(stream, stream->priority))
        return;
    for (const struct stream *s = context->streams; s != NULL; s = s->next)
        beside = beside || (s != stream && counts(s, stream->priority) && s->enqueued > s->completed);
    if (beside)
        note_queues(path, context, stream->priority, 0);
}

/* "count uses" begins another count, "count off" leaves out what the test does by streams in any queue that is free,
 * and "count on" ends that. */
int count_uses(const char *what) {
    if (strcmp(what, "uses") == 0)
        state.uses++;
    else if (strcmp(what, "on") == 0)
        state.uncounted = false;
    else if (strcmp(what, "off") != 0)
        return -1;
    for (size_t i = 0; strcmp(what, "off") == 0 && i < state.contexts.count; i++) {
        const struct context *context = state.contexts.items[i];
        if (context != NULL && notes(context) != NULL)
            note_queues(notes(context), context, LEAST_PRIORITY, 1);
    }
    state.uncounted = strcmp(what, "off") == 0;
    return 0;
}

/* A stream begins or ends to wait for the host. The lock of the library is held. */
void wait_begins(struct stream *stream) {
    note_beside(stream);
    stream->context->waiting++;
}

void wait_ends(struct stream *stream) { stream->context->waiting--; }

void queues_wake(struct context *context) {
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_broadcast(&context->queues[i].moved);
    pthread_cond_broadcast(&context->unlocked);
}
