/* Memory of graphs: nodes that allocate and free it, also those that captures make of calls in stream order. The
 * address is the graph's own from when the node is made; work reaches the memory between the two nodes of a launch. */
#include "graph.h"

enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

/* The highest figures of the devices, since they were reset. */
static struct { uint64_t used, reserved; } high[MAX_DEVICES];

bool program_has_memory(const struct program *program) {
    for (size_t i = 0; i < program->count; i++)
        if (program->nodes[i].operation->kind == MAP || program->nodes[i].operation->kind == UNMAP)
            return true;
    return false;
}

static bool frees(const struct program *program, uint64_t block) {
    for (size_t i = 0; i < program->count; i++)
        if (program->nodes[i].operation->kind == UNMAP && program->nodes[i].operation->block == block)
            return true;
    return false;
}

/* Enqueues a node on a stream that captures into a program. */
static CUresult take(struct stream *stream, enum operation_kind kind, uint64_t block) {
    struct operation *operation = operation_new(kind);
    if (operation == NULL)
        return OUT_OF_MEMORY;
    operation->block = block;
    return submit(stream, operation, false);
}

CUresult graph_allocate(struct stream *stream, struct context *context, size_t size, CUdeviceptr *address) {
    struct program *program = stream->capture->program;
    struct block *block;
    if (address == NULL || size == 0)
        return INVALID_VALUE;
    if (program->body)
        return NOT_SUPPORTED;
    CUresult code = allocate(context, size, NULL, &block);
    if (code != SUCCESS)
        return code;
    block->program = program;
    block->of_graph = block->unmapped = true;
    code = take(stream, MAP, block->id);
    if (code != SUCCESS)
        release(block);
    else
        *address = block->address;
    return code;
}

CUresult graph_free_node(struct stream *stream, const struct block *block) {
    return frees(stream->capture->program, block->id) ? INVALID_VALUE : take(stream, UNMAP, block->id);
}

bool graph_block_leaves(struct block *block) {
    bool held = block->held;
    block->held = false;
    return held;
}

/* Whether a call outside of a graph may name memory: that of a graph is there from a launch that leaves it to the
 * caller until the caller frees it. */
bool graph_memory_reached(uint64_t address, uint64_t size) {
    const struct block *block = find_block(address, size);
    return block == NULL || !block->of_graph || block->held;
}

void graph_block_freed(struct block *block) {
    block->unmapped = true;
    if (block->program == NULL)
        release(block);
}

/* What a device holds for graphs. Drivers take it in large pieces, and count what a launch has freed as in use until
 * it is given back. */
static uint64_t figure(int device) {
    enum { PIECE = 32 << 20 };
    uint64_t sum = 0;
    for (size_t i = 0; i < state.block_count; i++) {
        const struct block *block = state.blocks[i];
        if (block->of_graph && block->device == device && block->backed)
            sum += block->size;
    }
    return (sum + PIECE - 1) / PIECE * PIECE;
}

CUresult run_map(uint64_t id, bool map) {
    pthread_mutex_lock(&state.lock);
    struct block *block = block_by_id(id);
    CUresult code = block == NULL ? ILLEGAL_ADDRESS : SUCCESS;
    if (block != NULL && !map) {
        graph_block_freed(block);
    } else if (block != NULL) {
        const struct device *device = &state.devices[block->device];
        block->unmapped = false;
        block->backed = true;
        /* The contents are those of no launch before. */
        memset(device->bytes + (block->address - device->base), 0xCD, block->asked < 4096 ? block->asked : 4096);
        uint64_t held = figure(block->device);
        if (held > high[block->device].used)
            high[block->device].used = held;
        if (held > high[block->device].reserved)
            high[block->device].reserved = held;
    }
    pthread_mutex_unlock(&state.lock);
    return code;
}

/* A launch allocates what it does not free for the caller, who has to free it before the next one. */
CUresult graph_memory_launched(const struct program *program, bool auto_free) {
    for (int apply = 0; apply < 2; apply++) {
        for (size_t i = 0; i < program->count; i++) {
            const struct operation *operation = program->nodes[i].operation;
            struct block *block = operation->kind == MAP || operation->kind == UNMAP ? block_by_id(operation->block) : NULL;
            if (block == NULL)
                continue;
            bool maps = operation->kind == MAP, own = block->program == program;
            if (apply && maps)
                block->held = !frees(program, block->id);
            else if (apply && !own)
                block->held = false;
            else if (!apply && (maps ? block->held && !auto_free : !own && !block->held))
                return INVALID_VALUE;
        }
    }
    return SUCCESS;
}

/* What the caller has not freed outlives the graph. */
void graph_memory_drop(const struct program *program) {
    for (size_t i = state.block_count; i-- > 0;) {
        struct block *block = state.blocks[i];
        if (block->program != program)
            continue;
        block->program = NULL;
        if (!block->held && block->frees == 0)
            release(block);
    }
}

void graph_memory_clear(void) {
    memset(high, 0, sizeof high);
}

/* ---- Nodes ---- */

struct alloc_params {
    struct { int kind, handles, location, device; char rest[72]; } pool;
    const struct { int location, device, flags; } *access;
    size_t access_count, size;
    CUdeviceptr address;
};

API cuGraphAddMemAllocNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                           struct alloc_params *params) {
    BEGIN(cuGraphAddMemAllocNode, 0);
    struct node_maker m;
    if (params == NULL || params->pool.kind != 1 || params->pool.location != 1)
        return end(INVALID_VALUE);
    if (params->pool.device < 0 || params->pool.device >= state.device_count)
        return end(INVALID_VALUE);
    struct context *context = state.devices[params->pool.device].context;
    if (context == NULL)
        return end(INVALID_CONTEXT);
    for (size_t i = 0; i < params->access_count; i++)
        if (params->access[i].device != params->pool.device)
            return end(NOT_SUPPORTED);
    TRY(node_begin(&m, node, graph, after, count, 0));
    return end(node_end(&m, graph_allocate(m.stream, context, params->size, &params->address)));
}

API cuGraphAddMemFreeNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, CUdeviceptr address) {
    BEGIN(cuGraphAddMemFreeNode, 0);
    struct node_maker m;
    const struct block *block = address == 0 ? NULL : find_block(address, 1);
    if (block == NULL || block->address != address || !block->of_graph)
        return end(INVALID_VALUE);
    TRY(node_begin(&m, node, graph, after, count, 0));
    return end(node_end(&m, m.capture->program->body ? NOT_SUPPORTED : graph_free_node(m.stream, block)));
}

static CUresult block_of_node(uint64_t node, enum operation_kind kind, const struct block **block) {
    const struct operation *operation = operation_of_node(node);
    *block = operation == NULL || operation->kind != kind ? NULL : block_by_id(operation->block);
    return *block == NULL ? INVALID_VALUE : SUCCESS;
}

API cuGraphMemAllocNodeGetParams(uint64_t node, struct alloc_params *params) {
    BEGIN(cuGraphMemAllocNodeGetParams, 0);
    const struct block *block;
    TRY(block_of_node(node, MAP, &block));
    if (params == NULL)
        return end(INVALID_VALUE);
    *params = (struct alloc_params){
        .pool = {.kind = 1, .location = 1, .device = block->device}, .size = block->asked, .address = block->address};
    return end(SUCCESS);
}

API cuGraphMemFreeNodeGetParams(uint64_t node, CUdeviceptr *address) {
    BEGIN(cuGraphMemFreeNodeGetParams, 0);
    const struct block *block;
    TRY(block_of_node(node, UNMAP, &block));
    if (address == NULL)
        return end(INVALID_VALUE);
    *address = block->address;
    return end(SUCCESS);
}

/* ---- Devices ---- */

API cuDeviceGraphMemTrim(CUdevice device) {
    BEGIN(cuDeviceGraphMemTrim, 0);
    TRY(check_device(device));
    for (size_t i = 0; i < state.block_count; i++)
        if (state.blocks[i]->device == device && state.blocks[i]->unmapped)
            state.blocks[i]->backed = false;
    return end(SUCCESS);
}

API cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, uint64_t *value) {
    BEGIN(cuDeviceGetGraphMemAttribute, 0);
    TRY(check_device(device));
    if (value == NULL || attribute < USED || attribute > RESERVED_HIGH)
        return end(INVALID_VALUE);
    if (attribute == USED || attribute == RESERVED)
        *value = figure(device);
    else
        *value = attribute == USED_HIGH ? high[device].used : high[device].reserved;
    return end(SUCCESS);
}

/* Only the highest figures can be set, to 0: they are then the present ones. */
API cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, const uint64_t *value) {
    BEGIN(cuDeviceSetGraphMemAttribute, 0);
    TRY(check_device(device));
    if (value == NULL || *value != 0 || (attribute != USED_HIGH && attribute != RESERVED_HIGH))
        return end(INVALID_VALUE);
    if (attribute == USED_HIGH)
        high[device].used = figure(device);
    else
        high[device].reserved = figure(device);
    return end(SUCCESS);
}
