/* Capture: the calls on a stream that captures become nodes of a graph and are not
 * executed, and some calls are forbidden. */
#include "capture.h"
#include "event.h"
#include "graph.h"

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

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

/* Whether a call asks about an event that a capture has: the call has a code of its own, in every mode. */
static bool asks_captured(int function, uint64_t handle) {
    const struct event *event = function == FN_cuEventQuery || function == FN_cuEventSynchronize
                                    ? table_get(&events, handle)
                                    : NULL;
    return event != NULL && event->capture != NULL;
}

/* Fails an unsafe call of the calling thread where a capture forbids it, and makes that
 * capture invalid. */
CUresult capture_permits(int function, uint64_t handle) {
    const struct thread *thread = this_thread();
    CUresult code = SUCCESS;
    if (captures == NULL || thread->capture_mode == RELAXED || !unsafe(function) || asks_captured(function, handle))
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

API cuThreadExchangeStreamCaptureMode(int *mode) {
    BEGIN(cuThreadExchangeStreamCaptureMode, 0);
    if (mode == NULL || *mode < GLOBAL || *mode > RELAXED)
        return end(INVALID_VALUE);
    int before = this_thread()->capture_mode;
    this_thread()->capture_mode = *mode;
    *mode = before;
    return end(SUCCESS);
}

/* Begins a capture into a graph, or into a new one if that is 0. */
static CUresult begin_capture(CUstream handle, uint64_t graph, int mode, struct stream **found) {
    struct stream *stream;
    CUresult code = find_stream(handle, &stream);
    if (code != SUCCESS)
        return code;
    if (mode < GLOBAL || mode > RELAXED)
        return INVALID_VALUE;
    if (stream == stream->context->legacy)
        return CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL)
        return ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL)
        return OUT_OF_MEMORY;
    capture->borrowed = graph != 0;
    capture->graph = graph;
    if (graph == 0) {
        struct program *program = program_new();
        code = program == NULL ? OUT_OF_MEMORY : graph_new(program, true, &capture->graph);
    }
    if (code == SUCCESS)
        code = find_graph(capture->graph, &capture->program);
    if (code == SUCCESS && capture->program->refs > 1)
        code = NOT_SUPPORTED; /* nodes are added before a graph is instantiated */
    if (code != SUCCESS) {
        free(capture);
        return code;
    }
    stream->tip_count = 0;
    graph_captures(capture->graph, 1);
    capture->recorder = &graph_recorder;
    capture->id = ++state.next_id;
    capture->first = capture->program->count;
    capture->thread = this_thread();
    capture->origin = stream;
    capture->mode = mode;
    capture->next = captures;
    captures = stream->capture = capture;
    *found = stream;
    return SUCCESS;
}

API cuStreamBeginCapture_v2(CUstream handle, int mode) {
    BEGIN(cuStreamBeginCapture_v2, handle);
    struct stream *stream;
    return end(begin_capture(handle, 0, mode, &stream));
}

static void forget(struct capture *capture) {
    for (size_t i = 0; i < contexts.count; i++) {
        struct context *context = contexts.items[i];
        for (struct stream *s = context == NULL ? NULL : context->streams; s != NULL; s = s->next)
            if (s->capture == capture)
                s->capture = NULL;
    }
    for (size_t i = 0; i < events.count; i++) {
        struct event *event = events.items[i];
        if (event != NULL && event->capture == capture) {
            event->capture = NULL;
            event->stale = true;
        }
    }
    for (struct capture **c = &captures; *c != NULL; c = &(*c)->next) {
        if (*c == capture) {
            *c = capture->next;
            break;
        }
    }
    graph_captures(capture->graph, -1);
    if (!capture->borrowed)
        graph_drop(capture->graph); /* 0 once the caller has it */
    free(capture);
}

/* The end of a stream is that of the capture that began on it, which nobody could end any more. A
 * capture of another stream goes on without it. */
void capture_leave(struct stream *stream) {
    struct capture *capture = stream->capture;
    stream->capture = NULL;
    if (capture != NULL && capture->origin == stream)
        forget(capture);
}

/* For reset. */
void drop_captures(void) {
    while (captures != NULL)
        forget(captures);
}

/* The caller gets a graph only when the capture is valid and all its work is joined. */
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
    if (code == SUCCESS && !program_joined(capture->program, capture->first, stream->tips, stream->tip_count))
        code = CAPTURE_UNJOINED;
    if (code == SUCCESS) {
        *graph = capture->graph;
        graph_captures(capture->graph, -1);
        if (!capture->borrowed)
            graph_give(capture->graph);
        capture->graph = 0;
    }
    forget(capture);
    return end(code);
}

API cuStreamIsCapturing(CUstream handle, int *status) {
    BEGIN(cuStreamIsCapturing, handle);
    struct stream *stream;
    struct context *context;
    if (handle < STREAM_PER_THREAD) { /* of the legacy default stream, which breaks no capture */
        TRY(current_context(&context));
        for (struct stream *s = context->streams; s != NULL; s = s->next)
            if (s->capture != NULL && s->blocking)
                return end(CAPTURE_IMPLICIT);
    }
    TRY(find_stream(handle, &stream));
    if (status == NULL)
        return end(INVALID_VALUE);
    *status = stream->capture == NULL ? 0 : stream->capture->invalid ? 2 : 1;
    return end(SUCCESS);
}

/* ---- What a capture holds so far, and which nodes its next one comes after. ---- */

/* Makes nodes of a graph the ones that the next node of a stream comes after, or some more of them. */
static CUresult set_dependencies(struct stream *stream, const uint64_t *nodes, size_t count, bool more) {
    size_t kept = more ? stream->tip_count : 0, *tips = calloc(kept + count + 1, sizeof *tips);
    CUresult code = tips == NULL ? OUT_OF_MEMORY : count > 0 && nodes == NULL ? INVALID_VALUE : SUCCESS;
    if (kept > 0 && code == SUCCESS)
        memcpy(tips, stream->tips, kept * sizeof *tips);
    for (size_t i = 0; i < count && code == SUCCESS; i++)
        code = node_index(stream->capture->graph, nodes[i], &tips[kept + i]);
    if (code == SUCCESS)
        set_tips(&stream->tips, &stream->tip_count, tips, kept + count);
    free(tips);
    return code;
}

API cuStreamBeginCaptureToGraph(CUstream handle, uint64_t graph, const uint64_t *after, const void *edges, size_t count,
                                int mode) {
    BEGIN(cuStreamBeginCaptureToGraph, handle);
    struct stream *stream;
    (void)edges;
    if (graph == 0)
        return end(INVALID_VALUE);
    TRY(begin_capture(handle, graph, mode, &stream));
    CUresult code = set_dependencies(stream, after, count, false);
    if (code != SUCCESS)
        capture_leave(stream);
    return end(code);
}

static CUresult capture_info(CUstream handle, int *status, uint64_t *id, uint64_t *graph, const uint64_t **after,
                             const void **edges, size_t *count) {
    struct stream *stream;
    CUresult code = find_stream(handle, &stream);
    if (code != SUCCESS || status == NULL)
        return code != SUCCESS ? code : INVALID_VALUE;
    const struct capture *capture = stream->capture;
    *status = capture == NULL ? 0 : capture->invalid ? 2 : 1;
    if (capture == NULL || capture->invalid)
        return SUCCESS;
    if (id != NULL)
        *id = capture->id;
    if (graph != NULL)
        *graph = capture->graph;
    uint64_t *handles = calloc(2 * stream->tip_count + 1, sizeof *handles); /* and their edges, of 8 bytes each */
    if (handles == NULL)
        return OUT_OF_MEMORY;
    for (size_t i = 0; i < stream->tip_count; i++)
        handles[i] = node_handle(capture->graph, stream->tips[i]);
    free(stream->tip_handles);
    stream->tip_handles = handles;
    if (after != NULL)
        *after = handles;
    if (edges != NULL)
        *edges = handles + stream->tip_count;
    if (count != NULL)
        *count = stream->tip_count;
    return SUCCESS;
}

API cuStreamGetCaptureInfo_v2(CUstream handle, int *status, uint64_t *id, uint64_t *graph, const uint64_t **after,
                              size_t *count) {
    BEGIN(cuStreamGetCaptureInfo_v2, handle);
    return end(capture_info(handle, status, id, graph, after, NULL, count));
}

/* The data of each edge is zero. */
API cuStreamGetCaptureInfo_v3(CUstream handle, int *status, uint64_t *id, uint64_t *graph, const uint64_t **after,
                              const void **edges, size_t *count) {
    BEGIN(cuStreamGetCaptureInfo_v3, handle);
    return end(capture_info(handle, status, id, graph, after, edges, count));
}

static CUresult update_dependencies(CUstream handle, const uint64_t *nodes, size_t count, unsigned flags) {
    struct stream *stream;
    CUresult code = find_stream(handle, &stream);
    if (code != SUCCESS || flags > 1)
        return code != SUCCESS ? code : INVALID_VALUE;
    if (stream->capture == NULL)
        return ILLEGAL_STATE;
    return stream->capture->invalid ? CAPTURE_INVALIDATED : set_dependencies(stream, nodes, count, flags == 0);
}

API cuStreamUpdateCaptureDependencies(CUstream handle, const uint64_t *nodes, size_t count, unsigned flags) {
    BEGIN(cuStreamUpdateCaptureDependencies, handle);
    return end(update_dependencies(handle, nodes, count, flags));
}

API cuStreamUpdateCaptureDependencies_v2(CUstream handle, const uint64_t *nodes, const void *edges, size_t count,
                                         unsigned flags) {
    BEGIN(cuStreamUpdateCaptureDependencies_v2, handle);
    (void)edges;
    return end(update_dependencies(handle, nodes, count, flags));
}
