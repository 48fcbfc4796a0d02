/* Launches: invalid parameters fail the call, faults of the kernel occur when it runs. */
#include "graph.h"
#include "kernels.h"

#define HINT(stream) ((stream) > STREAM_PER_THREAD ? (stream) : 0)
#define MOST_CLUSTER 8 /* blocks, as every device with clusters has them */

struct request {
    CUfunction function;
    uint32_t grid[3], block[3], cluster[3], shared;
    CUstream stream;
    void **parameters, **extra;
    bool cooperative, clustered;
};

/* The blocks of a cluster, 0 without clusters. */
static uint32_t cluster_size(const struct request *r) {
    return r->cluster[0] * r->cluster[1] * r->cluster[2];
}

static CUresult check_cluster(const struct request *r) {
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (r->cluster[i] == 0 || r->grid[i] % r->cluster[i] != 0)
            return INVALID_VALUE;
        blocks *= r->cluster[i];
    }
    return blocks > MOST_CLUSTER ? INVALID_CLUSTER_SIZE : SUCCESS;
}

static CUresult check_shape(const struct function *f, const struct request *r) {
    static const uint32_t most_blocks[] = {2147483647, 65535, 65535}, most_threads[] = {1024, 1024, 64};
    uint64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (r->grid[i] == 0 || r->grid[i] > most_blocks[i] || r->block[i] == 0 ||
            r->block[i] > most_threads[i])
            return INVALID_VALUE;
        threads *= r->block[i];
        blocks *= r->grid[i];
    }
    if (threads > MAX_THREADS || r->shared > (uint32_t)f->dynamic_shared)
        return INVALID_VALUE;
    if (r->clustered) {
        CUresult code = check_cluster(r);
        if (code != SUCCESS)
            return code;
    }
    if (r->cooperative && blocks > PROCESSORS * (2048 / threads))
        return COOPERATIVE_LAUNCH_TOO_LARGE;
    return SUCCESS;
}

/* Arguments in one buffer, each at a multiple of its size. */
static CUresult take_packed(const struct function *f, void **extra, struct launch *launch) {
    const char *buffer = NULL;
    size_t size = 0, offset = 0;
    for (; extra[0] != NULL; extra += 2) {
        if (extra[0] == (void *)1)
            buffer = extra[1];
        else if (extra[0] == (void *)2)
            size = *(const size_t *)extra[1];
        else
            return INVALID_VALUE;
    }
    if (buffer == NULL)
        return INVALID_VALUE;
    for (int i = 0; f->kernel->sizes[i]; i++) {
        size_t width = (size_t)(f->kernel->sizes[i] - '0');
        offset = (offset + width - 1) / width * width;
        if (offset + width > size)
            return INVALID_VALUE;
        memcpy(&launch->arguments[i], buffer + offset, width);
        offset += width;
    }
    return SUCCESS;
}

/* Copies the arguments, since callers may reuse their memory at once. */
static CUresult take_arguments(const struct function *f, const struct request *r, struct launch *launch) {
    const char *sizes = f->kernel->sizes;
    int count = (int)strlen(sizes);
    if (f->parameter_count >= 0 && f->parameter_count != count)
        return NOT_SUPPORTED;
    for (int i = 0; i < count && f->parameter_count >= 0; i++)
        if (f->sizes[i] != sizes[i] - '0')
            return NOT_SUPPORTED;
    if (r->parameters != NULL && r->extra != NULL)
        return INVALID_VALUE;
    if (r->extra != NULL)
        return take_packed(f, r->extra, launch);
    if (r->parameters == NULL)
        return count == 0 ? SUCCESS : INVALID_VALUE;
    for (int i = 0; i < count; i++) {
        if (r->parameters[i] == NULL)
            return INVALID_VALUE;
        memcpy(&launch->arguments[i], r->parameters[i], (size_t)(sizes[i] - '0'));
    }
    return SUCCESS;
}

static CUresult launch(const struct request *r) {
    struct stream *stream;
    struct function *function;
    CUresult code = find_stream(r->stream, &stream);
    if (code != SUCCESS || (code = find_function(r->function, stream->context, &function)) != SUCCESS)
        return code;
    if (!function->loaded) {
        function->loaded = true;
        enter_first_launch(function->context);
    }
    /* The lock was let go of while the call waited. */
    if ((code = find_stream(r->stream, &stream)) != SUCCESS || (code = make_room(stream)) != SUCCESS ||
        (code = find_function(r->function, stream->context, &function)) != SUCCESS)
        return code;
    if ((code = check_shape(function, r)) != SUCCESS)
        return code;
    /* No C function implements this entry. */
    if (function->kernel == NULL)
        return NOT_SUPPORTED;
    struct launch what = {.kernel = function->kernel};
    if ((code = take_arguments(function, r, &what)) != SUCCESS)
        return code;
    struct operation *operation = operation_new(KERNEL);
    if (operation == NULL)
        return OUT_OF_MEMORY;
    operation->launch = what;
    code = submit(stream, operation, false);
    if (code == SUCCESS) {
        state.launched_shared = r->shared;
        state.launched_cluster = cluster_size(r);
    }
    return code;
}

API cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                   CUstream stream, void **parameters, void **extra) {
    BEGIN(cuLaunchKernel, HINT(stream));
    struct request r = {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0, 0, 0}, shared,
                        stream, parameters, extra, false, false};
    return end(launch(&r));
}

API cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                              unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                              unsigned int block_z, unsigned int shared, CUstream stream, void **parameters) {
    BEGIN(cuLaunchCooperativeKernel, HINT(stream));
    struct request r = {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0, 0, 0}, shared,
                        stream, parameters, NULL, true, false};
    return end(launch(&r));
}

/* The layout that callers use. */
struct attribute {
    int id, padding;
    union {
        int cooperative;
        uint32_t cluster[3];
        char room[64];
    } value;
};

struct configuration {
    uint32_t grid[3], block[3], shared, padding;
    CUstream stream;
    const struct attribute *attributes;
    unsigned count;
};

_Static_assert(sizeof(struct attribute) == 72 && sizeof(struct configuration) == 56,
    "the layouts of a launch");

API cuLaunchKernelEx(const struct configuration *c, CUfunction function, void **parameters, void **extra) {
    BEGIN(cuLaunchKernelEx, c != NULL ? HINT(c->stream) : 0);
    if (c == NULL || (c->count > 0 && c->attributes == NULL))
        return end(INVALID_VALUE);
    struct request r = {.function = function, .shared = c->shared, .stream = c->stream,
                        .parameters = parameters, .extra = extra};
    memcpy(r.grid, c->grid, sizeof r.grid);
    memcpy(r.block, c->block, sizeof r.block);
    for (unsigned i = 0; i < c->count; i++) {
        const struct attribute *a = &c->attributes[i];
        if (a->id == 2 && a->value.cooperative)
            r.cooperative = true;
        if (a->id == 4 && state.settings.version < 11080)
            return end(INVALID_VALUE);
        if (a->id == 4) {
            r.clustered = true;
            memcpy(r.cluster, a->value.cluster, sizeof r.cluster);
        }
    }
    return end(launch(&r));
}

/* CUDA_KERNEL_NODE_PARAMS_v2, as callers lay it out. */
struct node_parameters {
    CUfunction function;
    uint32_t grid[3], block[3], shared;
    void **parameters, **extra;
    uint64_t kernel;
    CUcontext context;
};

_Static_assert(sizeof(struct node_parameters) == 72, "the layout of CUDA_KERNEL_NODE_PARAMS_v2");

API cuGraphAddKernelNode_v2(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                            const struct node_parameters *p) {
    BEGIN(cuGraphAddKernelNode_v2, 0);
    if (p == NULL)
        return end(INVALID_VALUE);
    struct request r = {.function = p->function != 0 ? p->function : p->kernel, .shared = p->shared,
                        .parameters = p->parameters, .extra = p->extra};
    memcpy(r.grid, p->grid, sizeof r.grid);
    memcpy(r.block, p->block, sizeof r.block);
    struct node_maker m;
    TRY(node_begin(&m, node, graph, after, count, p->context));
    r.stream = m.stream->handle;
    return end(node_end(&m, launch(&r)));
}
