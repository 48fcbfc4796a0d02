/* The functions that allocate, and those of pinned memory. */
#include "graph.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ull
#define REPORTED (2ull << 20) /* free memory is reported in device pages */

API cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    BEGIN(cuMemAlloc_v2, 0);
    struct context *context;
    struct block *block;
    TRY(current_context(&context));
    if (address == NULL || size == 0)
        return end(INVALID_VALUE);
    TRY(allocate(context, size, NULL, &block));
    *address = block->address;
    return end(SUCCESS);
}

/* Waits for all work of the context that owns the memory, unless it is a pool's. */
API cuMemFree_v2(CUdeviceptr address) {
    BEGIN(cuMemFree_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    if (address == 0)
        return end(SUCCESS);
    struct block *block = find_block(address, 1);
    if (block == NULL || block->address != address || block->freeing ||
        (block->where != DEVICE_MEMORY && !block->managed))
        return end(INVALID_VALUE);
    if (block->pool != NULL) {
        block->freeing = true;
        pool_block_freed(block);
        return end(SUCCESS);
    }
    if (block->of_graph && !graph_block_leaves(block))
        return end(INVALID_VALUE);
    block->freeing = !block->of_graph; /* no other thread may free it while this one waits */
    uint64_t id = block->id;
    TRY(synchronize_context(block->context));
    block = block_by_id(id);
    if (block != NULL && block->of_graph)
        graph_block_freed(block);
    else if (block != NULL)
        release(block);
    return end(SUCCESS);
}

API cuMemGetInfo_v2(size_t *available, size_t *total) {
    BEGIN(cuMemGetInfo_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    if (available == NULL || total == NULL)
        return end(INVALID_VALUE);
    const struct device *device = &state.devices[context->device];
    *available = (device->size - device->used) / REPORTED * REPORTED;
    *total = device->size;
    return end(SUCCESS);
}

API cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr address) {
    BEGIN(cuMemGetAddressRange_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    const struct block *block = find_block(address, 1);
    if (block == NULL)
        return end(NOT_FOUND);
    if (start != NULL)
        *start = block->start;
    if (size != NULL)
        *size = block->asked;
    return end(SUCCESS);
}

/* ---- Pinned memory ---- */

static struct block *add_host_block(struct context *context, uint64_t start, uint64_t asked, unsigned flags,
                                    enum where where) {
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL)
        abort();
    block->address = start;
    block->size = where == REGISTERED_MEMORY ? asked : (asked + PAGE - 1) / PAGE * PAGE;
    block->start = start;
    block->asked = asked;
    block->where = where;
    block->device = context->device;
    block->context = context;
    block->flags = flags;
    add_block(block);
    return block;
}

/* Returns NULL where the system has no more. */
static struct block *new_pages(struct context *context, size_t size, unsigned flags) {
    if (size > 1ull << 40)
        return NULL;
    uint64_t rounded = (size + PAGE - 1) / PAGE * PAGE;
    void *bytes = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    memset(bytes, 0xCD, size < PAGE ? size : PAGE);
    return add_host_block(context, (uint64_t)(uintptr_t)bytes, size, flags, PINNED_MEMORY);
}

API cuMemHostAlloc(void **address, size_t size, unsigned int flags) {
    BEGIN(cuMemHostAlloc, 0);
    struct context *context;
    TRY(current_context(&context));
    if (address == NULL || flags > 7)
        return end(INVALID_VALUE);
    *address = NULL;
    if (size == 0)
        return end(SUCCESS);
    const struct block *block = new_pages(context, size, flags);
    if (block == NULL)
        return end(OUT_OF_MEMORY);
    *address = (void *)(uintptr_t)block->address;
    return end(SUCCESS);
}

API cuMemAllocHost_v2(void **address, size_t size) {
    BEGIN(cuMemAllocHost_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    if (address == NULL || size == 0)
        return end(INVALID_VALUE);
    const struct block *block = new_pages(context, size, 0);
    if (block == NULL)
        return end(OUT_OF_MEMORY);
    *address = (void *)(uintptr_t)block->address;
    return end(SUCCESS);
}

/* Memory of the host and of all devices; flags 1 and 2 say who may use it first. */
API cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned int flags) {
    BEGIN(cuMemAllocManaged, 0);
    struct context *context;
    TRY(current_context(&context));
    if (address == NULL || size == 0 || (flags != 1 && flags != 2))
        return end(INVALID_VALUE);
    struct block *block = new_pages(context, size, 0);
    if (block == NULL)
        return end(OUT_OF_MEMORY);
    block->managed = true;
    *address = block->address;
    return end(SUCCESS);
}

/* Waits for the work of every context, since each of them may use the memory. */
static CUresult give_up(void *address, enum where where, CUresult otherwise) {
    struct context *context;
    CUresult code = current_context(&context);
    if (code != SUCCESS)
        return code;
    struct block *block = find_block((uint64_t)(uintptr_t)address, 1);
    if (block == NULL || block->start != (uint64_t)(uintptr_t)address || block->where != where ||
        block->freeing || block->managed)
        return otherwise;
    block->freeing = true;
    uint64_t id = block->id;
    for (size_t i = 0; i < state.contexts.count; i++) {
        struct context *other = state.contexts.items[i];
        if (other == NULL)
            continue;
        other->refs++;
        synchronize_context(other);
        context_unref(other);
    }
    block = block_by_id(id);
    if (block != NULL)
        release(block);
    return SUCCESS;
}

API cuMemFreeHost(void *address) {
    BEGIN(cuMemFreeHost, 0);
    return end(give_up(address, PINNED_MEMORY, INVALID_VALUE));
}

/* Whether a range of the process is mapped, and writable where that is required. */
static bool usable(uint64_t start, uint64_t stop, bool write) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], permissions[8];
    unsigned long long from, to;
    bool writable = true;
    while (maps != NULL && start < stop && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%llx-%llx %7s", &from, &to, permissions) != 3 || to <= start || from > start)
            continue;
        if (permissions[0] != 'r')
            break;
        writable = writable && permissions[1] == 'w';
        start = to;
    }
    if (maps != NULL)
        fclose(maps);
    return start >= stop && (writable || !write);
}

API cuMemHostRegister_v2(void *address, size_t size, unsigned int flags) {
    BEGIN(cuMemHostRegister_v2, 0);
    struct context *context;
    uint64_t start = (uint64_t)(uintptr_t)address, stop = start + size;
    TRY(current_context(&context));
    if (address == NULL || size == 0 || flags > 15 || stop < start)
        return end(INVALID_VALUE);
    for (size_t i = 0; i < state.block_count; i++) {
        const struct block *block = state.blocks[i];
        if (start < block->address + block->size && block->address < stop) /* other bytes of a page may be registered */
            return end(block->where == DEVICE_MEMORY ? INVALID_VALUE : HOST_MEMORY_ALREADY_REGISTERED);
    }
    if (!usable(start, stop, !(flags & 8)))
        return end(INVALID_VALUE);
    add_host_block(context, start, size, flags, REGISTERED_MEMORY);
    return end(SUCCESS);
}

API cuMemHostUnregister(void *address) {
    BEGIN(cuMemHostUnregister, 0);
    return end(give_up(address, REGISTERED_MEMORY, HOST_MEMORY_NOT_REGISTERED));
}

API cuMemHostGetDevicePointer_v2(CUdeviceptr *device_address, void *address, unsigned int flags) {
    BEGIN(cuMemHostGetDevicePointer_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    const struct block *block = find_block((uint64_t)(uintptr_t)address, 1);
    if (device_address == NULL || flags != 0 || block == NULL || block->where == DEVICE_MEMORY)
        return end(INVALID_VALUE);
    *device_address = (uint64_t)(uintptr_t)address;
    return end(SUCCESS);
}
