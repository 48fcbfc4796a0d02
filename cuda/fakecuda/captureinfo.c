/* What a capture holds so far, and which nodes its next one comes after. */
#include "graph.h"

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
