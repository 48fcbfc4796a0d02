/* Capture: the calls on a stream that captures are counted and not executed. There are
 * no graphs to launch; what counts is which calls a capture forbids. */
#include "fakecuda.h"

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

/* A capture that is in progress. Streams join it by waiting for its events. */
struct capture {
    struct capture *next;
    const struct thread *thread; /* that began it */
    struct stream *origin;
    int mode;
    bool invalid;
    size_t nodes;
};

static struct capture *captures;

/* Functions that might wait for work that a capture has only recorded. */
static bool unsafe(int function) {
    switch (function) {
    case FN_cuEventQuery: case FN_cuEventSynchronize: case FN_cuStreamQuery: case FN_cuStreamSynchronize:
    case FN_cuCtxSynchronize: case FN_cuMemAlloc_v2: case FN_cuMemFree_v2: case FN_cuMemHostAlloc:
    case FN_cuMemFreeHost: case FN_cuMemHostRegister_v2: case FN_cuMemHostUnregister:
    case FN_cuModuleLoadData: case FN_cuModuleLoadDataEx: case FN_cuModuleUnload: case FN_cuMemcpy:
    case FN_cuMemcpyHtoD_v2: case FN_cuMemcpyDtoH_v2: case FN_cuMemcpyDtoD_v2: case FN_cuMemsetD8_v2:
    case FN_cuMemsetD16_v2: case FN_cuMemsetD32_v2: case FN_cuMemAllocManaged: case FN_cuMemAllocHost_v2: case FN_cuLibraryLoadData:
        return true;
    }
    return false;
}

/* Fails an unsafe call of the calling thread where a capture forbids it, and makes that
 * capture invalid. */
CUresult capture_permits(int function) {
    const struct thread *thread = this_thread();
    CUresult code = SUCCESS;
    if (captures == NULL || thread->capture_mode == RELAXED || !unsafe(function))
        return SUCCESS;
    for (struct capture *c = captures; c != NULL; c = c->next) {
        bool own = c->thread == thread;
        if (c->mode == RELAXED || (!own && (c->mode != GLOBAL || thread->capture_mode != GLOBAL)))
            continue;
        c->invalid = true;
        code = CAPTURE_UNSUPPORTED;
    }
    return code;
}

/* Makes the captures of a context invalid; returns whether there is one. */
bool capture_conflicts(const struct context *context, bool only_blocking) {
    bool any = false;
    for (struct stream *s = context->streams; s != NULL; s = s->next) {
        if (s->capture == NULL || (only_blocking && !s->blocking))
            continue;
        s->capture->invalid = true;
        any = true;
    }
    return any;
}

/* Fails a call that needs to know how far a stream is, if it captures. */
CUresult capture_refuses(struct stream *stream) {
    if (stream->capture == NULL)
        return SUCCESS;
    stream->capture->invalid = true;
    return CAPTURE_UNSUPPORTED;
}

/* Takes an operation that was enqueued on a stream that captures. */
CUresult capture_take(struct stream *stream) {
    if (stream->capture->invalid)
        return CAPTURE_INVALIDATED;
    stream->capture->nodes++;
    return SUCCESS;
}

API cuThreadExchangeStreamCaptureMode(int *mode) {
    BEGIN(cuThreadExchangeStreamCaptureMode, 0);
    if (mode == NULL || *mode < GLOBAL || *mode > RELAXED)
        return end(INVALID_VALUE);
    int before = this_thread()->capture_mode;
    this_thread()->capture_mode = *mode;
    *mode = before;
    return end(SUCCESS);
}

API cuStreamBeginCapture_v2(CUstream handle, int mode) {
    BEGIN(cuStreamBeginCapture_v2, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (mode < GLOBAL || mode > RELAXED)
        return end(INVALID_VALUE);
    if (stream == stream->context->legacy)
        return end(CAPTURE_UNSUPPORTED);
    if (stream->capture != NULL)
        return end(ILLEGAL_STATE);
    struct capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL)
        return end(OUT_OF_MEMORY);
    capture->thread = this_thread();
    capture->origin = stream;
    capture->mode = mode;
    capture->next = captures;
    captures = stream->capture = capture;
    return end(SUCCESS);
}

static void forget(struct capture *capture) {
    for (size_t i = 0; i < state.contexts.count; i++) {
        struct context *context = state.contexts.items[i];
        for (struct stream *s = context == NULL ? NULL : context->streams; s != NULL; s = s->next)
            if (s->capture == capture)
                s->capture = NULL;
    }
    for (size_t i = 0; i < state.events.count; i++) {
        struct event *event = state.events.items[i];
        if (event != NULL && event->capture == capture)
            event->capture = NULL;
    }
    for (struct capture **c = &captures; *c != NULL; c = &(*c)->next) {
        if (*c == capture) {
            *c = capture->next;
            break;
        }
    }
    free(capture);
}

/* For reset. */
void drop_captures(void) {
    while (captures != NULL)
        forget(captures);
}

/* A graph is a number that only says how many calls were captured. */
API cuStreamEndCapture(CUstream handle, uint64_t *graph) {
    BEGIN(cuStreamEndCapture, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    struct capture *capture = stream->capture;
    if (graph == NULL)
        return end(INVALID_VALUE);
    *graph = 0;
    if (capture == NULL)
        return end(ILLEGAL_STATE);
    if (capture->origin != stream)
        return end(CAPTURE_UNMATCHED);
    if (capture->mode != RELAXED && capture->thread != this_thread())
        return end(CAPTURE_WRONG_THREAD);
    CUresult code = capture->invalid ? CAPTURE_INVALIDATED : SUCCESS;
    if (code == SUCCESS)
        *graph = capture->nodes + 1;
    forget(capture);
    return end(code);
}

API cuStreamIsCapturing(CUstream handle, int *status) {
    BEGIN(cuStreamIsCapturing, handle);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    if (status == NULL)
        return end(INVALID_VALUE);
    *status = stream->capture == NULL ? 0 : stream->capture->invalid ? 2 : 1;
    return end(SUCCESS);
}
