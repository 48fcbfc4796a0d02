/* The functions of streams. */
#include "fakecuda.h"

static pthread_key_t own_streams;
static pthread_once_t own_streams_once = PTHREAD_ONCE_INIT;

/* Closes the default streams of a thread that ends. */
static void thread_ends(void *value) {
    struct thread *thread = value;
    if (atomic_load(&ended))
        return;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct stream *stream = thread->own[i];
        thread->own[i] = NULL;
        /* A reset has freed the streams of the generation before. */
        if (stream == NULL || thread->generation != reset_count())
            continue;
        if (!stream->closed)
            stream_close(stream);
        stream_unref(stream);
    }
    pthread_mutex_unlock(&state.lock);
}

static void make_key(void) {
    pthread_key_create(&own_streams, thread_ends);
}

/* The default stream of this thread in its current context. */
static CUresult own_stream(struct context *context, struct stream **found) {
    struct thread *thread = this_thread();
    struct stream *stream = thread->own[context->device];
    if (stream != NULL && stream->context != context) {
        stream_unref(stream);
        stream = NULL;
    }
    if (stream == NULL) {
        pthread_once(&own_streams_once, make_key);
        pthread_setspecific(own_streams, thread);
        stream = stream_new(context, 0, LEAST_PRIORITY, true);
        if (stream == NULL)
            return OUT_OF_MEMORY;
        queue_deal(stream);
        stream_ref(stream);
    }
    thread->own[context->device] = stream;
    *found = stream;
    return SUCCESS;
}

/* Finds a stream by its handle, or by a predefined handle in the current context. Fails
 * with the code of a poisoned context. */
CUresult find_stream(CUstream handle, struct stream **stream) {
    struct context *context;
    CUresult code;
    if (handle <= STREAM_PER_THREAD) {
        if ((code = current_context(&context)) != SUCCESS)
            return code;
        if (handle == STREAM_PER_THREAD)
            return own_stream(context, stream);
        *stream = context->legacy;
        /* Work there would wait for the blocking streams, one of which captures. */
        return capture_conflicts(context, true) ? CAPTURE_IMPLICIT : SUCCESS;
    }
    *stream = table_find(&state.streams, handle);
    return *stream == NULL ? INVALID_HANDLE : atomic_load(&(*stream)->context->error);
}

static CUresult create(CUstream *handle, unsigned flags, int priority) {
    struct context *context;
    CUresult code = current_context(&context);
    if (code != SUCCESS)
        return code;
    if (handle == NULL || flags > 1)
        return INVALID_VALUE;
    if (priority > LEAST_PRIORITY)
        priority = LEAST_PRIORITY;
    if (priority < GREATEST_PRIORITY)
        priority = GREATEST_PRIORITY;
    struct stream *stream = stream_new(context, flags, priority, flags == 0);
    if (stream == NULL)
        return OUT_OF_MEMORY;
    queue_deal(stream);
    *handle = stream->handle = table_put(&state.streams, stream);
    if (context->gate->completed < context->gate->enqueued) {
        struct operation *wait = operation_new(&wait_kind);
        if (wait == NULL)
            return OUT_OF_MEMORY;
        operation_after(wait, context->gate, context->gate->enqueued);
        wait->unseen = true;
        return submit(stream, wait, false);
    }
    return SUCCESS;
}

API cuStreamCreate(CUstream *stream, unsigned int flags) {
    BEGIN(cuStreamCreate, 0);
    return end(create(stream, flags, LEAST_PRIORITY));
}

API cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    BEGIN(cuStreamCreateWithPriority, 0);
    return end(create(stream, flags, priority));
}

API cuStreamDestroy_v2(CUstream handle) {
    BEGIN(cuStreamDestroy_v2, handle);
    struct stream *stream;
    if (handle <= STREAM_PER_THREAD)
        return end(INVALID_HANDLE);
    TRY(find_stream(handle, &stream));
    capture_leave(stream);
    stream_close(stream);
    return end(SUCCESS);
}

API cuStreamQuery(CUstream handle) {
    BEGIN(cuStreamQuery, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    TRY(capture_refuses(stream));
    return end(stream_done(stream) ? SUCCESS : NOT_READY);
}

API cuStreamSynchronize(CUstream handle) {
    BEGIN(cuStreamSynchronize, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    TRY(capture_refuses(stream));
    int device = stream->context->device;
    if (stream == stream->context->legacy)
        TRY(wait_streams(stream->context, true));
    else
        TRY(wait_point(stream, stream->counted));
    pools_synchronized(device);
    return end(SUCCESS);
}

API cuStreamGetPriority(CUstream handle, int *priority) {
    BEGIN(cuStreamGetPriority, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (priority == NULL)
        return end(INVALID_VALUE);
    *priority = stream->priority;
    return end(SUCCESS);
}

API cuStreamGetFlags(CUstream handle, unsigned int *flags) {
    BEGIN(cuStreamGetFlags, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (flags == NULL)
        return end(INVALID_VALUE);
    *flags = stream->flags;
    return end(SUCCESS);
}

API cuStreamGetId(CUstream handle, unsigned long long *id) {
    BEGIN(cuStreamGetId, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (id == NULL)
        return end(INVALID_VALUE);
    *id = stream->id;
    return end(SUCCESS);
}

API cuStreamGetCtx(CUstream handle, CUcontext *context) {
    BEGIN(cuStreamGetCtx, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (context == NULL)
        return end(INVALID_VALUE);
    *context = stream->context->handle;
    return end(SUCCESS);
}

API cuStreamGetDevice(CUstream handle, CUdevice *device) {
    BEGIN(cuStreamGetDevice, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (device == NULL)
        return end(INVALID_VALUE);
    *device = stream->context->device;
    return end(SUCCESS);
}
