/* How the thread of a stream executes each operation. */
#include "graph.h"

/* Finds the bytes of a copy; memory that was freed in the meantime is a fault. */
static char *bytes_at(uint64_t address, uint64_t size, bool pageable) {
    if (pageable)
        return (char *)(uintptr_t)address;
    pthread_mutex_lock(&state.lock);
    char *bytes = reach(NULL, address, size);
    pthread_mutex_unlock(&state.lock);
    return bytes;
}

static CUresult run_copy(const struct copy *copy) {
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

static CUresult run_fill(const struct fill *fill) {
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

CUresult execute(struct stream *stream, struct operation *operation) {
    switch (operation->kind) {
    case RECORD:
    case WAIT:
        break;
    case HOST_FUNCTION:
        return run_host_function(stream, &operation->job);
    case COPY:
        return run_copy(&operation->copy);
    case FILL:
        return run_fill(&operation->fill);
    case MEMORY_OPS:
        return run_memory_ops(stream, operation);
    case KERNEL:
        return run_kernel(stream, &operation->launch);
    case GRAPH:
        program_reset(operation->graph.program);
        return run_program(stream, operation->graph.program);
    case CONDITIONAL:
        return run_conditional(stream, operation->conditional);
    case MAP:
    case UNMAP:
        return run_map(operation->block, operation->kind == MAP);
    case FREE:
        pthread_mutex_lock(&state.lock);
        struct block *block = block_by_id(operation->block);
        /* A block that was allocated again in stream order has another id. */
        if (block != NULL && block->of_graph) {
            block->frees--;
            graph_block_freed(block);
        } else if (block != NULL && block->freeing)
            pool_block_freed(block);
        pthread_mutex_unlock(&state.lock);
        break;
    }
    return SUCCESS;
}
