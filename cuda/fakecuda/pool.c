/* Memory in stream order. A block freed on a stream is given to the next allocation of
 * its size there, even before the stream has reached the free. */
#include "graph.h"

enum { REUSE_FIRST = 1, REUSE_LAST = 3, THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

struct pool {
    struct pool *next; /* all pools, including destroyed ones that still have blocks */
    CUmemoryPool handle;
    int device;
    bool destroyed;
    unsigned peers; /* a bit for each device whose kernels may use the memory, besides its own */
    int reuse[REUSE_LAST];
    uint64_t threshold, reserved, reserved_high, used, used_high;
};

static struct pool *all;

bool pool_reaches(const struct pool *pool, int device) {
    return pool->device == device || (pool->peers & 1u << device) != 0;
}

int pool_device(const struct pool *pool) {
    return pool->device;
}

CUmemoryPool pool_handle(const struct pool *pool) {
    return pool->destroyed ? 0 : pool->handle;
}

CUresult pool_new(int device, struct pool **found) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return OUT_OF_MEMORY;
    pool->device = device;
    for (int i = 0; i < REUSE_LAST; i++)
        pool->reuse[i] = 1;
    pool->handle = table_put(&state.pools, pool);
    pool->next = all;
    *found = all = pool;
    return SUCCESS;
}

/* For reset. */
void pool_drop_all(void) {
    for (size_t i = 0; i < state.block_count; i++)
        state.blocks[i]->pool = NULL;
    while (all != NULL) {
        struct pool *pool = all;
        all = pool->next;
        free(pool);
    }
}

static void drop(struct pool *pool) {
    struct pool **p = &all;
    while (*p != pool)
        p = &(*p)->next;
    *p = pool->next;
    free(pool);
}

static void give_back(struct block *block) {
    struct pool *pool = block->pool;
    pool->reserved -= block->size;
    release(block);
    if (pool->destroyed && pool->reserved == 0)
        drop(pool);
}

/* Called when the stream has reached the free. */
void pool_block_freed(struct block *block) {
    struct pool *pool = block->pool;
    if (pool == NULL) {
        release(block);
        return;
    }
    pool->used -= block->size;
    block->freed = true;
    block->freeing = false;
    state.live_memory--;
    if (block->freed_at.stream != NULL)
        stream_unref(block->freed_at.stream);
    block->freed_at = (struct point){NULL, 0};
    if (pool->destroyed)
        give_back(block);
}

/* Releases free blocks of a pool until at most so many bytes are reserved. */
static bool trim(struct pool *pool, uint64_t keep) {
    bool any = false;
    for (size_t i = state.block_count; i-- > 0 && pool->reserved > keep;) {
        struct block *block = state.blocks[i];
        if (block->pool != pool || !block->freed)
            continue;
        give_back(block);
        any = true;
    }
    return any;
}

/* Whether a pool has memory to give back, what pending work frees included. */
static bool has_surplus(const struct pool *pool) {
    for (size_t i = 0; i < state.block_count; i++)
        if (state.blocks[i]->pool == pool && (state.blocks[i]->freed || state.blocks[i]->freeing))
            return true;
    return false;
}

bool pools_give_back(int device) {
    bool any = false;
    for (struct pool *pool = all; pool != NULL; pool = pool->next)
        if (pool->device == device && !pool->destroyed)
            any = trim(pool, 0) || any;
    return any;
}

/* Called when a thread has synchronized with the device. */
void pools_synchronized(int device) {
    for (struct pool *pool = all; pool != NULL; pool = pool->next)
        if (pool->device == device && !pool->destroyed && pool->reserved > pool->threshold)
            trim(pool, pool->threshold);
}

static CUresult default_pool(int device, struct pool **pool) {
    if (state.devices[device].pool == NULL) {
        CUresult code = pool_new(device, &state.devices[device].pool);
        if (code != SUCCESS)
            return code;
    }
    *pool = state.devices[device].pool;
    return SUCCESS;
}

/* ---- Allocation ---- */

/* Returns a block of exactly this size that the stream may use: one freed on the stream,
 * or an unused one. */
static struct block *used_before(struct pool *pool, uint64_t size, const struct stream *stream) {
    struct block *found = NULL;
    for (size_t i = 0; i < state.block_count; i++) {
        struct block *block = state.blocks[i];
        if (block->pool != pool || block->size != size)
            continue;
        if (block->freeing && block->freed_at.stream == stream)
            return block;
        if (block->freed && found == NULL)
            found = block;
    }
    return found;
}

static CUresult allocate_on(struct stream *stream, struct pool *pool, size_t size, CUdeviceptr *address) {
    uint64_t rounded = (size + GRANULE - 1) / GRANULE * GRANULE;
    if (address == NULL || size == 0)
        return INVALID_VALUE;
    if (stream->capture != NULL)
        return graph_allocate(stream, stream->context, size, address);
    struct block *block = used_before(pool, rounded, stream);
    if (block != NULL) {
        if (block->freed)
            state.live_memory++;
        else
            stream_unref(block->freed_at.stream);
        pool->used += block->freed ? rounded : 0;
        block->freed = block->freeing = false;
        block->freed_at = (struct point){NULL, 0};
        block->asked = size;
        block->id = ++state.next_id;
    } else {
        CUresult code = allocate(NULL, size, pool, &block);
        if (code != SUCCESS)
            return code;
        pool->used += rounded;
        pool->reserved += rounded;
    }
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    *address = block->address;
    /* It takes its turn in the hardware queue. */
    struct operation *turn = stream->queue == NULL ? NULL : operation_new(WAIT);
    if (turn == NULL)
        return SUCCESS;
    turn->of_memory = true;
    return submit(stream, turn, false);
}

#define HINT(stream) ((stream) > STREAM_PER_THREAD ? (stream) : 0)

static CUresult supported(void) {
    return state.settings.pools ? SUCCESS : NOT_SUPPORTED;
}

API cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream handle) {
    BEGIN(cuMemAllocAsync, HINT(handle));
    struct stream *stream;
    struct pool *pool;
    TRY(supported());
    TRY(find_stream(handle, &stream));
    TRY(make_room(stream));
    TRY(default_pool(stream->context->device, &pool));
    return end(allocate_on(stream, pool, size, address));
}

API cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool_number, CUstream handle) {
    BEGIN(cuMemAllocFromPoolAsync, HINT(handle));
    struct stream *stream;
    TRY(supported());
    TRY(find_stream(handle, &stream));
    TRY(make_room(stream));
    struct pool *pool = table_find(&state.pools, pool_number);
    if (pool == NULL)
        return end(INVALID_HANDLE);
    return end(allocate_on(stream, pool, size, address));
}

API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    BEGIN(cuMemFreeAsync, HINT(handle));
    struct stream *stream;
    TRY(supported());
    TRY(find_stream(handle, &stream));
    TRY(make_room(stream));
    struct block *block = address == 0 ? NULL : find_block(address, 1);
    if (block == NULL || block->address != address || block->where != DEVICE_MEMORY || block->freeing)
        return end(INVALID_VALUE);
    if (block->of_graph && stream->capture != NULL)
        return end(graph_free_node(stream, block));
    if (block->of_graph && !graph_block_leaves(block))
        return end(INVALID_VALUE);
    struct operation *operation = operation_new(FREE);
    if (operation == NULL)
        return end(OUT_OF_MEMORY);
    operation->block = block->id;
    TRY(submit(stream, operation, false));
    if (block->of_graph) {
        block->frees++;
        return end(SUCCESS);
    }
    block->freeing = true;
    stream_ref(stream);
    block->freed_at = (struct point){stream, stream->enqueued};
    return end(SUCCESS);
}

/* ---- Pools ---- */

static CUresult pool_of_device(CUmemoryPool *handle, CUdevice device) {
    struct pool *pool;
    if (!state.settings.pools)
        return NOT_SUPPORTED;
    if (handle == NULL)
        return INVALID_VALUE;
    if (device < 0 || device >= state.device_count)
        return INVALID_DEVICE;
    CUresult code = default_pool(device, &pool);
    if (code == SUCCESS)
        *handle = pool->handle;
    return code;
}

API cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    BEGIN(cuDeviceGetDefaultMemPool, 0);
    return end(pool_of_device(pool, device));
}

API cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    BEGIN(cuDeviceGetMemPool, 0);
    return end(pool_of_device(pool, device));
}

/* The fields of CUmemPoolProps that are read. */
struct properties {
    int kind, handles, location, device;
};

API cuMemPoolCreate(CUmemoryPool *handle, const struct properties *properties) {
    BEGIN(cuMemPoolCreate, 0);
    struct pool *pool;
    TRY(supported());
    if (handle == NULL || properties == NULL || properties->kind != 1 || properties->location != 1)
        return end(INVALID_VALUE);
    if (properties->device < 0 || properties->device >= state.device_count)
        return end(INVALID_DEVICE);
    if (properties->handles != 0)
        return end(NOT_SUPPORTED);
    TRY(pool_new(properties->device, &pool));
    *handle = pool->handle;
    return end(SUCCESS);
}

/* Finds a pool by its handle. The lock is held. */
#define FIND(pool, number) \
    TRY(supported()); \
    struct pool *pool = table_find(&state.pools, number); \
    if (pool == NULL) \
        return end(INVALID_HANDLE)

API cuMemPoolDestroy(CUmemoryPool handle) {
    BEGIN(cuMemPoolDestroy, 0);
    FIND(pool, handle);
    if (state.devices[pool->device].pool == pool)
        return end(INVALID_VALUE);
    trim(pool, 0);
    table_drop(&state.pools, handle);
    pool->destroyed = true;
    if (pool->reserved == 0)
        drop(pool);
    return end(SUCCESS);
}

API cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    BEGIN(cuMemPoolTrimTo, 0);
    FIND(pool, handle);
    if (pool->reserved > keep && has_surplus(pool))
        enter_trim(pool->device);
    if (table_get(&state.pools, handle) == pool) /* no other thread has destroyed it meanwhile */
        trim(pool, keep);
    return end(SUCCESS);
}

API cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void *value) {
    BEGIN(cuMemPoolSetAttribute, 0);
    FIND(pool, handle);
    if (value == NULL)
        return end(INVALID_VALUE);
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
        pool->reuse[attribute - REUSE_FIRST] = *(const int *)value;
    else if (attribute == THRESHOLD)
        pool->threshold = *(const uint64_t *)value;
    else if (attribute == RESERVED_HIGH && *(const uint64_t *)value == 0)
        pool->reserved_high = pool->reserved;
    else if (attribute == USED_HIGH && *(const uint64_t *)value == 0)
        pool->used_high = pool->used;
    else
        return end(INVALID_VALUE);
    return end(SUCCESS);
}

API cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void *value) {
    BEGIN(cuMemPoolGetAttribute, 0);
    FIND(pool, handle);
    if (value == NULL || attribute < REUSE_FIRST || attribute > USED_HIGH)
        return end(INVALID_VALUE);
    if (attribute <= REUSE_LAST)
        *(int *)value = pool->reuse[attribute - REUSE_FIRST];
    else
        *(uint64_t *)value = attribute == THRESHOLD       ? pool->threshold
                             : attribute == RESERVED      ? pool->reserved
                             : attribute == RESERVED_HIGH ? pool->reserved_high
                             : attribute == USED          ? pool->used
                                                          : pool->used_high;
    return end(SUCCESS);
}

/* ---- Access of other devices ---- */

struct access { int location, device, flags; };

API cuMemPoolSetAccess(CUmemoryPool handle, const struct access *list, size_t count) {
    BEGIN(cuMemPoolSetAccess, 0);
    FIND(pool, handle);
    if (list == NULL || count == 0)
        return end(INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        if (list[i].location != 1 || (list[i].flags != 0 && list[i].flags != 3))
            return end(INVALID_VALUE);
        if (list[i].device < 0 || list[i].device >= state.device_count)
            return end(INVALID_DEVICE);
        if (list[i].device == pool->device && list[i].flags != 3)
            return end(INVALID_DEVICE);
    }
    for (size_t i = 0; i < count; i++) {
        unsigned bit = 1u << list[i].device;
        pool->peers = list[i].flags != 0 ? pool->peers | bit : pool->peers & ~bit;
    }
    return end(SUCCESS);
}

API cuMemPoolGetAccess(int *flags, CUmemoryPool handle, const struct access *location) {
    BEGIN(cuMemPoolGetAccess, 0);
    FIND(pool, handle);
    if (flags == NULL || location == NULL || location->location != 1)
        return end(INVALID_VALUE);
    if (location->device < 0 || location->device >= state.device_count)
        return end(INVALID_DEVICE);
    *flags = pool_reaches(pool, location->device) ? 3 : 0;
    return end(SUCCESS);
}

/* Pools that were created; every device has a default pool besides. */
size_t live_pools(void) {
    size_t live = table_live(&state.pools);
    for (int i = 0; i < state.device_count; i++)
        live -= state.devices[i].pool != NULL;
    return live;
}
