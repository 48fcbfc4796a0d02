/* The functions of streams. */
#include "capture.h"
#include "memory.h"

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
    stream_deal(stream);
    *handle = stream->handle = table_put(&streams, stream);
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

/* Fails a call that needs to know how far a stream is, if it captures. */
static CUresult capture_refuses(struct stream *stream) {
    if (stream->capture == NULL)
        return SUCCESS;
    stream->capture->invalid = true;
    return CAPTURE_UNSUPPORTED;
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
