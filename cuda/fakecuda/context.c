/* Contexts, which of them is current on a thread, and their errors. */
#include "fakecuda.h"

static _Thread_local struct thread self;

struct thread *this_thread(void) {
    return &self;
}

/* Returns the context on top of this thread's stack; fails with 201 without one, and
 * with the code of a poisoned one. */
CUresult current_context(struct context **context) {
    if (self.depth == 0)
        return INVALID_CONTEXT;
    return healthy_context(self.stack[self.depth - 1], context);
}

CUresult healthy_context(CUcontext handle, struct context **context) {
    *context = table_get(&state.contexts, handle);
    return *context == NULL ? INVALID_CONTEXT : atomic_load(&(*context)->error);
}

/* The context that an object belongs to; the current one for other numbers. */
struct context *context_of(uint64_t handle) {
    const struct stream *stream = table_get(&state.streams, handle);
    const struct event *event = table_get(&state.events, handle);
    if (stream != NULL)
        return stream->context;
    if (event != NULL)
        return event->context;
    struct context *context = table_get(&state.contexts, handle);
    if (context == NULL && self.depth > 0)
        context = table_get(&state.contexts, self.stack[self.depth - 1]);
    return context;
}

void wake_all(struct context *context) {
    for (struct stream *s = context->streams; s != NULL; s = s->next) {
        pthread_cond_broadcast(&s->work);
        pthread_cond_broadcast(&s->done);
    }
    pthread_cond_broadcast(&context->job_added);
    queues_wake(context);
}

/* Only the first code has an effect. Pending work is dropped; streams of other contexts
 * that wait for it block for ever, since its place is never reached. */
void poison(struct context *context, CUresult code) {
    if (atomic_load(&context->error) != SUCCESS)
        return;
    atomic_store(&context->error, code);
    if (code != CONTEXT_IS_DESTROYED)
        state.devices[context->device].error = code;
    for (struct stream *s = context->streams; s != NULL; s = s->next)
        drop_operations(s);
    wake_all(context);
}

CUresult synchronize_context(struct context *context) {
    return wait_streams(context, false);
}

static struct context *context_new(int device) {
    struct context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    context->refs = 1;
    context->device = device;
    context->id = ++state.next_id;
    atomic_store(&context->error, state.devices[device].error);
    pthread_cond_init(&context->job_added, NULL);
    pthread_cond_init(&context->unlocked, NULL);
    queues_new(context);
    context->handle = table_put(&state.contexts, context);
    context->legacy = stream_new(context, 0, LEAST_PRIORITY, false);
    queue_deal(context->legacy);
    /* Two internal streams: for events recorded on the whole context, and for events
     * that the whole context waits for. They are in no hardware queue. */
    context->fence = stream_new(context, 1, LEAST_PRIORITY, false);
    context->gate = stream_new(context, 1, LEAST_PRIORITY, false);
    return context;
}

void context_unref(struct context *context) {
    if (--context->refs > 0)
        return;
    pthread_cond_destroy(&context->job_added);
    pthread_cond_destroy(&context->unlocked);
    queues_free(context);
    free(context);
}

/* Frees all objects of a context. It has no pending work, or it is poisoned. */
static void context_drop(struct context *context) {
    poison(context, CONTEXT_IS_DESTROYED);
    for (size_t i = 0; i < state.events.count; i++) {
        struct event *event = state.events.items[i];
        if (event != NULL && event->context == context) {
            table_drop(&state.events, event->handle);
            event_unref(event);
        }
    }
    drop_modules(context);
    for (struct stream *s = context->streams, *next; s != NULL; s = next) {
        next = s->next;
        if (!s->closed)
            stream_close(s);
    }
    for (size_t i = state.block_count; i-- > 0;)
        if (state.blocks[i]->context == context && state.blocks[i]->where != DEVICE_MEMORY)
            release(state.blocks[i]);
    for (size_t i = state.block_count; i-- > 0;)
        if (state.blocks[i]->context == context)
            release(state.blocks[i]);
    wake_all(context);
    table_drop(&state.contexts, context->handle);
    if (state.devices[context->device].context == context)
        state.devices[context->device].context = NULL;
    context_unref(context);
}

/* Destroys a context when no thread of this library uses its memory any more. A host
 * function may continue; later work is dropped. */
static void context_end(struct context *context) {
    poison(context, CONTEXT_IS_DESTROYED);
    for (bool touching = true; touching;) {
        touching = false;
        for (struct stream *s = context->streams; s != NULL; s = s->next) {
            if (!s->touching)
                continue;
            touching = true;
            stream_ref(s);
            pthread_cond_wait(&s->done, &state.lock);
            stream_unref(s);
            break;
        }
    }
    context_drop(context);
}

/* For reset. */
void drop_contexts(void) {
    for (size_t i = 0; i < state.contexts.count; i++)
        if (state.contexts.items[i] != NULL)
            context_end(state.contexts.items[i]);
}

API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    BEGIN(cuDevicePrimaryCtxRetain, 0);
    if (context == NULL)
        return end(INVALID_VALUE);
    if (device < 0 || device >= state.device_count)
        return end(INVALID_DEVICE);
    struct device *d = &state.devices[device];
    if (d->context == NULL) {
        TRY(d->error);
        d->context = context_new(device);
        if (d->context == NULL)
            return end(OUT_OF_MEMORY);
    }
    d->retained++;
    *context = d->context->handle;
    return end(SUCCESS);
}

API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    BEGIN(cuDevicePrimaryCtxRelease_v2, 0);
    if (device < 0 || device >= state.device_count)
        return end(INVALID_DEVICE);
    struct device *d = &state.devices[device];
    if (d->retained == 0)
        return end(INVALID_CONTEXT);
    if (--d->retained > 0)
        return end(SUCCESS);
    struct context *context = d->context;
    context->refs++;
    synchronize_context(context);
    /* Another thread may have retained it while this one waited. */
    if (d->context == context && d->retained == 0)
        context_end(context);
    context_unref(context);
    return end(SUCCESS);
}

API cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    BEGIN(cuDevicePrimaryCtxGetState, 0);
    if (device < 0 || device >= state.device_count)
        return end(INVALID_DEVICE);
    if (flags == NULL || active == NULL)
        return end(INVALID_VALUE);
    *flags = 0;
    *active = state.devices[device].context != NULL;
    return end(SUCCESS);
}

/* ---- Contexts beside the primary one ---- */

static CUresult create(CUcontext *handle, CUdevice device) {
    if (handle == NULL)
        return INVALID_VALUE;
    if (device < 0 || device >= state.device_count)
        return INVALID_DEVICE;
    if (state.devices[device].error != SUCCESS)
        return state.devices[device].error;
    if (self.depth == STACK_DEPTH)
        return OUT_OF_MEMORY;
    struct context *context = context_new(device);
    if (context == NULL)
        return OUT_OF_MEMORY;
    self.stack[self.depth++] = *handle = context->handle;
    return SUCCESS;
}

API cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    BEGIN(cuCtxCreate_v2, 0);
    (void)flags;
    return end(create(context, device));
}

/* The structure is for execution affinity and graphics, which there are not. */
API cuCtxCreate_v4(CUcontext *context, const void *parameters, unsigned int flags, CUdevice device) {
    BEGIN(cuCtxCreate_v4, 0);
    (void)flags;
    return end(parameters != NULL ? NOT_SUPPORTED : create(context, device));
}

/* It stays on the stacks of other threads, and calls fail there. */
API cuCtxDestroy_v2(CUcontext handle) {
    BEGIN(cuCtxDestroy_v2, 0);
    struct context *context = table_get(&state.contexts, handle);
    if (context == NULL || context == state.devices[context->device].context)
        return end(INVALID_CONTEXT);
    if (self.depth > 0 && self.stack[self.depth - 1] == handle)
        self.depth--;
    context->refs++;
    synchronize_context(context);
    if (table_get(&state.contexts, handle) == context)
        context_end(context);
    context_unref(context);
    return end(SUCCESS);
}

/* A poisoned context may be made current. */
API cuCtxSetCurrent(CUcontext context) {
    BEGIN(cuCtxSetCurrent, context);
    if (context == 0) {
        self.depth -= self.depth > 0;
        return end(SUCCESS);
    }
    if (table_get(&state.contexts, context) == NULL)
        return end(INVALID_CONTEXT);
    self.depth += self.depth == 0;
    self.stack[self.depth - 1] = context;
    return end(SUCCESS);
}

API cuCtxGetCurrent(CUcontext *context) {
    BEGIN(cuCtxGetCurrent, 0);
    if (context == NULL)
        return end(INVALID_VALUE);
    *context = self.depth > 0 ? self.stack[self.depth - 1] : 0;
    return end(SUCCESS);
}

API cuCtxPushCurrent_v2(CUcontext context) {
    BEGIN(cuCtxPushCurrent_v2, context);
    if (table_get(&state.contexts, context) == NULL)
        return end(INVALID_CONTEXT);
    if (self.depth == STACK_DEPTH)
        return end(OUT_OF_MEMORY);
    self.stack[self.depth++] = context;
    return end(SUCCESS);
}

API cuCtxPopCurrent_v2(CUcontext *context) {
    BEGIN(cuCtxPopCurrent_v2, 0);
    if (self.depth == 0)
        return end(INVALID_CONTEXT);
    CUcontext top = self.stack[--self.depth];
    if (context != NULL)
        *context = top;
    return end(SUCCESS);
}

API cuCtxGetDevice(CUdevice *device) {
    BEGIN(cuCtxGetDevice, 0);
    struct context *context;
    TRY(current_context(&context));
    if (device == NULL)
        return end(INVALID_VALUE);
    *device = context->device;
    return end(SUCCESS);
}

API cuCtxGetId(CUcontext handle, unsigned long long *id) {
    BEGIN(cuCtxGetId, handle);
    struct context *context;
    TRY(handle == 0 ? current_context(&context) : healthy_context(handle, &context));
    if (id == NULL)
        return end(INVALID_VALUE);
    *id = context->id;
    return end(SUCCESS);
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    BEGIN(cuCtxGetStreamPriorityRange, 0);
    struct context *context;
    TRY(current_context(&context));
    if (least != NULL)
        *least = LEAST_PRIORITY;
    if (greatest != NULL)
        *greatest = GREATEST_PRIORITY;
    return end(SUCCESS);
}

API cuCtxSynchronize(void) {
    BEGIN(cuCtxSynchronize, 0);
    struct context *context;
    TRY(current_context(&context));
    int device = context->device;
    TRY(synchronize_context(context));
    pools_synchronized(device);
    return end(SUCCESS);
}

API cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    BEGIN(cuCtxEnablePeerAccess, 0);
    struct context *context, *other;
    TRY(current_context(&context));
    TRY(healthy_context(peer, &other));
    if (flags != 0)
        return end(INVALID_VALUE);
    if (other == context)
        return end(INVALID_DEVICE);
    if (context->peers & 1u << other->device)
        return end(PEER_ACCESS_ALREADY_ENABLED);
    context->peers |= 1u << other->device;
    return end(SUCCESS);
}
