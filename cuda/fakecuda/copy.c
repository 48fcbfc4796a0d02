/* Copies and fills: the part during the call, and the part in stream order. */
#include "graph.h"
#include "memory.h"

/* The struct of cuMemcpy2DAsync_v2, as callers lay it out. */
struct plane {
    size_t from_x, from_y;
    int from_kind, padding_1;
    const void *from_host;
    CUdeviceptr from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind, padding_2;
    void *to_host;
    CUdeviceptr to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

_Static_assert(sizeof(struct plane) == 128, "the layout of CUDA_MEMCPY2D");

enum direction { ANY, TO_DEVICE, TO_HOST, ON_DEVICE };

/* How long the call blocks. */
enum until { GIVEN, DONE };

#define STAGED_MOST (1 << 20)
#define MOST_PITCH 0x7fffffffu /* bytes from row to row */

static uint64_t extent(uint64_t width, uint64_t height, uint64_t pitch) {
    return (height - 1) * pitch + width;
}

/* ---- In stream order ---- */

/* Finds the bytes of a copy; memory that was freed in the meantime is a fault. */
static char *bytes_at(uint64_t address, uint64_t size, bool pageable) {
    if (pageable)
        return (char *)(uintptr_t)address;
    pthread_mutex_lock(&state.lock);
    char *bytes = reach(NULL, address, size);
    pthread_mutex_unlock(&state.lock);
    return bytes;
}

static CUresult run_copy(struct stream *stream, struct operation *operation) {
    const struct copy *copy = &operation->copy;
    (void)stream;
    uint64_t last = copy->height - 1;
    char *to = bytes_at(copy->to, last * copy->to_pitch + copy->width, copy->to_pageable);
    const char *from = copy->staged;
    if (from == NULL)
        from = bytes_at(copy->from, last * copy->from_pitch + copy->width, copy->from_pageable);
    if (to == NULL || from == NULL)
        return ILLEGAL_ADDRESS;
    for (uint64_t row = 0; row < copy->height; row++)
        memmove(to + row * copy->to_pitch, from + row * copy->from_pitch, copy->width);
    return SUCCESS;
}

static CUresult run_fill(struct stream *stream, struct operation *operation) {
    const struct fill *fill = &operation->fill;
    (void)stream;
    void *to = bytes_at(fill->to, fill->count * fill->width, false);
    if (to == NULL)
        return ILLEGAL_ADDRESS;
    if (fill->width == 1) {
        memset(to, (int)fill->value, fill->count);
    } else if (fill->width == 2) {
        for (uint64_t i = 0; i < fill->count; i++)
            ((uint16_t *)to)[i] = (uint16_t)fill->value;
    } else {
        for (uint64_t i = 0; i < fill->count; i++)
            ((uint32_t *)to)[i] = fill->value;
    }
    return SUCCESS;
}

static void drop_copy(struct operation *operation) {
    free(operation->copy.staged);
}

static const struct kind copy_kind = {.node = 1, .leaves_early = true, .run = run_copy, .drop = drop_copy};
static const struct kind fill_kind = {.node = 2, .leaves_early = true, .run = run_fill};

/* ---- Copies ---- */

/* The source of a small copy from pageable memory is read during the call; that of a
 * large one, too, but the call first waits for the stream. Copies to pageable memory,
 * and those between two ranges of host memory, are done when the call returns. */
static CUresult copy(CUstream handle, struct copy what, enum direction direction, enum until until) {
    struct stream *stream;
    CUresult code;
    bool bad_to, bad_from;
    if ((code = find_stream(handle, &stream)) != SUCCESS || (code = make_room(stream)) != SUCCESS)
        return code;
    if (what.width == 0 || what.height == 0)
        return SUCCESS;
    uint64_t to_size = extent(what.width, what.height, what.to_pitch);
    uint64_t from_size = extent(what.width, what.height, what.from_pitch);
    enum where to = classify(what.to, to_size, &bad_to), from = classify(what.from, from_size, &bad_from);
    if (what.to == 0 || what.from == 0 || bad_to || bad_from)
        return INVALID_VALUE;
    if (stream->capture == NULL && !(graph_memory_reached(what.to, to_size) && graph_memory_reached(what.from, from_size)))
        return INVALID_VALUE;
    what.to_pageable = to == UNKNOWN_MEMORY;
    what.from_pageable = from == UNKNOWN_MEMORY;
    if ((what.to_pageable && (direction == TO_DEVICE || direction == ON_DEVICE)) ||
        (what.from_pageable && (direction == TO_HOST || direction == ON_DEVICE)))
        return INVALID_VALUE;
    struct operation *operation = operation_new(&copy_kind);
    if (operation == NULL)
        return OUT_OF_MEMORY;
    bool wait = what.to_pageable || (to != DEVICE_MEMORY && from != DEVICE_MEMORY);
    if (what.from_pageable && !wait && stream->capture == NULL) { /* a launch reads the source, not the capture */
        if (what.height == 1 && what.width <= STAGED_MOST && (what.staged = malloc(what.width)) != NULL)
            memcpy(what.staged, (const void *)(uintptr_t)what.from, what.width);
        else
            wait = true;
    } else if (until == DONE && (to != DEVICE_MEMORY || from != DEVICE_MEMORY)) {
        wait = true;
    }
    operation->copy = what;
    return submit(stream, operation, wait);
}

static struct copy line(uint64_t to, uint64_t from, size_t size) {
    return (struct copy){.to = to, .from = from, .width = size, .height = 1, .to_pitch = size,
        .from_pitch = size};
}

API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyAsync, HINT(stream));
    return end(copy(stream, line(to, from, size), ANY, GIVEN));
}

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyHtoDAsync_v2, HINT(stream));
    return end(copy(stream, line(to, (uint64_t)(uintptr_t)from, size), TO_DEVICE, GIVEN));
}

API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyDtoHAsync_v2, HINT(stream));
    return end(copy(stream, line((uint64_t)(uintptr_t)to, from, size), TO_HOST, GIVEN));
}

API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyDtoDAsync_v2, HINT(stream));
    return end(copy(stream, line(to, from, size), ON_DEVICE, GIVEN));
}

/* Whether a range is memory of the context's device. */
static CUresult on_device_of(CUcontext handle, uint64_t address, uint64_t size) {
    struct context *context;
    CUresult code = healthy_context(handle, &context);
    if (code != SUCCESS)
        return code;
    const struct block *block = find_block(address, size);
    return block != NULL && block->where == DEVICE_MEMORY && block->device == context->device ? SUCCESS : INVALID_VALUE;
}

API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      size_t size, CUstream stream) {
    BEGIN(cuMemcpyPeerAsync, HINT(stream));
    struct context *context;
    TRY(healthy_context(to_context, &context));
    TRY(healthy_context(from_context, &context));
    if (size > 0) {
        TRY(on_device_of(to_context, to, size));
        TRY(on_device_of(from_context, from, size));
    }
    return end(copy(stream, line(to, from, size), ON_DEVICE, GIVEN));
}

/* The struct of cuMemcpy3DPeerAsync, as callers lay it out. */
struct side {
    size_t x, y, z, level;
    int kind, padding;
    const void *host;
    CUdeviceptr device;
    void *array;
    CUcontext context;
    size_t pitch, height;
};

struct peer_copy {
    struct side from, to;
    size_t width, height, depth;
};

_Static_assert(sizeof(struct peer_copy) == 200, "the layout of CUDA_MEMCPY3D_PEER");

/* Rows of device memory only: no arrays, and one layer. */
API cuMemcpy3DPeerAsync(const struct peer_copy *c, CUstream stream) {
    BEGIN(cuMemcpy3DPeerAsync, HINT(stream));
    if (c == NULL)
        return end(INVALID_VALUE);
    const struct side *from = &c->from, *to = &c->to;
    if (from->kind != 2 || to->kind != 2 || c->depth > 1 || from->z != 0 || to->z != 0)
        return end(NOT_SUPPORTED);
    if (from->x + c->width > from->pitch || to->x + c->width > to->pitch || from->pitch > MOST_PITCH ||
        to->pitch > MOST_PITCH)
        return end(INVALID_VALUE);
    struct copy what = {.to = to->device + to->y * to->pitch + to->x,
                        .from = from->device + from->y * from->pitch + from->x,
                        .width = c->width, .height = c->depth == 0 ? 0 : c->height,
                        .to_pitch = to->pitch, .from_pitch = from->pitch};
    if (what.width > 0 && what.height > 0) {
        TRY(on_device_of(to->context, what.to, extent(what.width, what.height, what.to_pitch)));
        TRY(on_device_of(from->context, what.from, extent(what.width, what.height, what.from_pitch)));
    }
    return end(copy(stream, what, ON_DEVICE, GIVEN));
}

API cuMemcpy2DAsync_v2(const struct plane *plane, CUstream stream) {
    BEGIN(cuMemcpy2DAsync_v2, HINT(stream));
    if (plane == NULL)
        return end(INVALID_VALUE);
    /* 1 is the host, 2 a device, 4 either; arrays (3) there are none. */
    if (plane->from_kind < 1 || plane->from_kind > 4 || plane->to_kind < 1 || plane->to_kind > 4)
        return end(INVALID_VALUE);
    if (plane->from_kind == 3 || plane->to_kind == 3)
        return end(NOT_SUPPORTED);
    uint64_t from = plane->from_kind == 1 ? (uint64_t)(uintptr_t)plane->from_host : plane->from_device;
    uint64_t to = plane->to_kind == 1 ? (uint64_t)(uintptr_t)plane->to_host : plane->to_device;
    size_t from_pitch = plane->from_pitch ? plane->from_pitch : plane->from_x + plane->width;
    size_t to_pitch = plane->to_pitch ? plane->to_pitch : plane->to_x + plane->width;
    if (plane->from_x + plane->width > from_pitch || plane->to_x + plane->width > to_pitch)
        return end(INVALID_VALUE);
    if (from_pitch > MOST_PITCH || to_pitch > MOST_PITCH)
        return end(INVALID_VALUE);
    from += plane->from_y * from_pitch + plane->from_x;
    to += plane->to_y * to_pitch + plane->to_x;
    struct copy what = {.to = to, .from = from, .width = plane->width, .height = plane->height,
                        .to_pitch = to_pitch, .from_pitch = from_pitch};
    return end(copy(stream, what, ANY, GIVEN));
}

API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    BEGIN(cuMemcpy, 0);
    return end(copy(STREAM_LEGACY, line(to, from, size), ANY, DONE));
}

API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    BEGIN(cuMemcpyHtoD_v2, 0);
    return end(copy(STREAM_LEGACY, line(to, (uint64_t)(uintptr_t)from, size), TO_DEVICE, DONE));
}

API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    BEGIN(cuMemcpyDtoH_v2, 0);
    return end(copy(STREAM_LEGACY, line((uint64_t)(uintptr_t)to, from, size), TO_HOST, DONE));
}

/* A copy within the device may still run when the call returns. */
API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    BEGIN(cuMemcpyDtoD_v2, 0);
    return end(copy(STREAM_LEGACY, line(to, from, size), ON_DEVICE, DONE));
}

/* ---- Fills ---- */

static CUresult fill(CUdeviceptr to, uint32_t value, uint32_t width, size_t count, CUstream handle, enum until until) {
    struct stream *stream;
    CUresult code;
    bool bad;
    if ((code = find_stream(handle, &stream)) != SUCCESS || (code = make_room(stream)) != SUCCESS)
        return code;
    if (to % width != 0 || count > SIZE_MAX / width)
        return INVALID_VALUE;
    if (count == 0)
        return SUCCESS;
    enum where where = classify(to, count * width, &bad);
    if (where == UNKNOWN_MEMORY || (stream->capture == NULL && !graph_memory_reached(to, count * width)))
        return INVALID_VALUE;
    struct operation *operation = operation_new(&fill_kind);
    if (operation == NULL)
        return OUT_OF_MEMORY;
    operation->fill = (struct fill){.to = to, .count = count, .value = value, .width = width};
    return submit(stream, operation, until == DONE && where != DEVICE_MEMORY);
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    BEGIN(cuMemsetD8Async, HINT(stream));
    return end(fill(to, value, 1, count, stream, GIVEN));
}

API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    BEGIN(cuMemsetD16Async, HINT(stream));
    return end(fill(to, value, 2, count, stream, GIVEN));
}

API cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    BEGIN(cuMemsetD32Async, HINT(stream));
    return end(fill(to, value, 4, count, stream, GIVEN));
}

API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    BEGIN(cuMemsetD8_v2, 0);
    return end(fill(to, value, 1, count, STREAM_LEGACY, DONE));
}

API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    BEGIN(cuMemsetD16_v2, 0);
    return end(fill(to, value, 2, count, STREAM_LEGACY, DONE));
}

API cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
    BEGIN(cuMemsetD32_v2, 0);
    return end(fill(to, value, 4, count, STREAM_LEGACY, DONE));
}

/* ---- Nodes of graphs ---- */

static uint64_t address_of(const struct side *side) {
    uint64_t at = side->kind == 1 ? (uint64_t)(uintptr_t)side->host : side->device;
    return at + side->y * side->pitch + side->x;
}

/* CUDA_MEMCPY3D has the layout of struct peer_copy, with nothing in the place of the contexts. */
API cuGraphAddMemcpyNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                         const struct peer_copy *c, CUcontext context) {
    BEGIN(cuGraphAddMemcpyNode, 0);
    if (c == NULL || c->width == 0 || c->height == 0 || c->depth == 0 || c->from.pitch > MOST_PITCH ||
        c->to.pitch > MOST_PITCH)
        return end(INVALID_VALUE);
    if (c->depth > 1 || c->from.kind == 3 || c->to.kind == 3)
        return end(NOT_SUPPORTED);
    struct copy what = {.to = address_of(&c->to), .from = address_of(&c->from), .width = c->width,
                        .height = c->height, .to_pitch = c->to.pitch ? c->to.pitch : c->width,
                        .from_pitch = c->from.pitch ? c->from.pitch : c->width};
    struct node_maker m;
    TRY(node_begin(&m, node, graph, after, count, context));
    return end(node_end(&m, copy(m.stream->handle, what, ANY, GIVEN)));
}

struct memset_parameters {
    CUdeviceptr to;
    size_t pitch;
    unsigned int value, element;
    size_t width, height;
};

API cuGraphAddMemsetNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                         const struct memset_parameters *p, CUcontext context) {
    BEGIN(cuGraphAddMemsetNode, 0);
    if (p == NULL || p->width == 0 || (p->element != 1 && p->element != 2 && p->element != 4))
        return end(INVALID_VALUE);
    if (p->height != 1)
        return end(NOT_SUPPORTED);
    struct node_maker m;
    TRY(node_begin(&m, node, graph, after, count, context));
    return end(node_end(&m, fill(p->to, p->value, p->element, p->width, m.stream->handle, GIVEN)));
}
