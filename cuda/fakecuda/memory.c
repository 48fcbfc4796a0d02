/* Memory. The device addresses that callers get are in an inaccessible range; the bytes
 * are in a file that is mapped at other addresses. */
#include "memory.h"
#include "contention.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRESH 0xCD /* new memory is not zero */

/* A range of a device that is free. */
struct hole { uint64_t offset, size; };

struct block **blocks;
size_t block_count;
static size_t block_room;
struct live live_blocks;

static bool pool_reaches(const struct pool *pool, int device); /* for kernels of a device */
static int pool_device(const struct pool *pool);
static CUmemoryPool pool_handle(const struct pool *pool);
static bool pools_give_back(int device);
static void pool_block_freed(struct block *block);

/* ---- The table of blocks, by address ---- */

static size_t place_of(uint64_t address) {
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t *live_count(const struct block *block) {
    switch (block->where) {
    case DEVICE_MEMORY:
        return &live_blocks.memory;
    case PINNED_MEMORY:
        return &live_blocks.pinned;
    default:
        return &live_blocks.registered;
    }
}

static void add_block(struct block *block) {
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 64;
        blocks = realloc(blocks, block_room * sizeof *blocks);
        if (blocks == NULL)
            abort();
    }
    size_t place = place_of(block->address);
    memmove(&blocks[place + 1], &blocks[place],
        (block_count - place) * sizeof *blocks);
    blocks[place] = block;
    block_count++;
    block->id = ++state.next_id;
    ++*live_count(block);
}

static void remove_block(struct block *block) {
    size_t place = place_of(block->address) - 1;
    memmove(&blocks[place], &blocks[place + 1],
        (--block_count - place) * sizeof *blocks);
    if (!block->freed)
        --*live_count(block);
}

/* The block that holds all of a range, or NULL. */
struct block *find_block(uint64_t address, uint64_t size) {
    size_t place = place_of(address);
    if (place == 0)
        return NULL;
    struct block *block = blocks[place - 1];
    uint64_t length = block->where == REGISTERED_MEMORY ? block->size : block->asked;
    uint64_t offset = address - block->address;
    if (block->freed || offset >= length || size > length - offset)
        return NULL;
    return block;
}

struct block *block_by_id(uint64_t id) {
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->id == id)
            return blocks[i];
    return NULL;
}

static struct device *device_of(uint64_t address) {
    for (int i = 0; i < device_count; i++)
        if (address - devices[i].base < devices[i].size)
            return &devices[i];
    return NULL;
}

/* bad: it lies in a device's address range outside of a block, or crosses the end of
 * one. */
enum where classify(uint64_t address, uint64_t size, bool *bad) {
    const struct block *block = find_block(address, size);
    *bad = false;
    if (block != NULL)
        return block->where;
    block = find_block(address, 1);
    *bad = device_of(address) != NULL || (block != NULL && block->where == PINNED_MEMORY);
    return UNKNOWN_MEMORY;
}

/* Returns the bytes of an address, for kernels of a context (NULL: for copies, which may
 * access every device). NULL if the device has no access to them. */
void *reach(struct context *context, uint64_t address, uint64_t size) {
    const struct block *block = find_block(address, size);
    if (block == NULL || block->unmapped)
        return NULL;
    if (block->where != DEVICE_MEMORY)
        return (void *)(uintptr_t)address;
    /* Peer access that is enabled between contexts does not include memory of pools. */
    if (context != NULL && block->device != context->device &&
        !(block->pool != NULL ? pool_reaches(block->pool, context->device) : context->peers >> block->device & 1))
        return NULL;
    const struct device *device = &devices[block->device];
    return device->bytes + (address - device->base);
}

/* ---- Devices ---- */

static int visible_devices(int *numbers) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    if (visible == NULL) {
        for (; count < state.settings.devices; count++)
            numbers[count] = count;
        return count;
    }
    char *end_of_number;
    while (count < MAX_DEVICES) {
        long number = strtol(visible, &end_of_number, 10);
        if (end_of_number == visible || number < 0 || number >= state.settings.devices)
            break;
        numbers[count++] = (int)number;
        if (*end_of_number != ',')
            break;
        visible = end_of_number + 1;
    }
    return count;
}

CUresult open_devices(void) {
    int numbers[MAX_DEVICES];
    int count = visible_devices(numbers);
    for (int i = 0; i < count; i++) {
        struct device *device = &devices[i];
        size_t size = state.settings.memory;
        memset(device, 0, sizeof *device);
        int file = memfd_create("fakecuda", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, (off_t)size) != 0)
            return OUT_OF_MEMORY;
        void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        if (base == MAP_FAILED || bytes == MAP_FAILED)
            return OUT_OF_MEMORY;
        device->number = numbers[i];
        device->base = (uint64_t)(uintptr_t)base;
        device->bytes = bytes;
        device->size = size;
        device->hole_room = 64;
        device->holes = malloc(device->hole_room * sizeof *device->holes);
        if (device->holes == NULL)
            return OUT_OF_MEMORY;
        device->holes[0] = (struct hole){0, size};
        device->hole_count = 1;
    }
    device_count = count;
    return SUCCESS;
}

/* For reset, when no thread uses memory any more. */
void close_devices(void) {
    while (block_count > 0)
        release(blocks[block_count - 1]);
    for (int i = 0; i < device_count; i++) {
        struct device *device = &devices[i];
        munmap((void *)(uintptr_t)device->base, device->size);
        munmap(device->bytes, device->size);
        free(device->holes);
        memset(device, 0, sizeof *device);
    }
}

uint64_t bytes_in_use(void) {
    uint64_t used = 0;
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->where == DEVICE_MEMORY && !blocks[i]->freed)
            used += blocks[i]->asked;
    return used;
}

/* ---- Allocation ---- */

static bool take(struct device *device, uint64_t size, uint64_t *offset) {
    for (size_t i = 0; i < device->hole_count; i++) {
        struct hole *hole = &device->holes[i];
        if (hole->size < size)
            continue;
        *offset = hole->offset;
        hole->offset += size;
        hole->size -= size;
        if (hole->size == 0)
            memmove(hole, hole + 1, (--device->hole_count - i) * sizeof *hole);
        device->used += size;
        return true;
    }
    return false;
}

static void give_back(struct device *device, uint64_t offset, uint64_t size) {
    device->used -= size;
    /* Returns whole pages to the system; for small blocks the call costs more than it
     * saves. */
    uint64_t first = (offset + 4095) / 4096 * 4096, last = (offset + size) / 4096 * 4096;
    if (size >= 1 << 20)
        madvise(device->bytes + first, last - first, MADV_REMOVE);
    size_t i = 0;
    while (i < device->hole_count && device->holes[i].offset < offset)
        i++;
    bool left = i > 0 && device->holes[i - 1].offset + device->holes[i - 1].size == offset;
    bool right = i < device->hole_count && offset + size == device->holes[i].offset;
    if (left) {
        device->holes[i - 1].size += size + (right ? device->holes[i].size : 0);
        if (right)
            memmove(&device->holes[i], &device->holes[i + 1],
                (--device->hole_count - i) * sizeof *device->holes);
    } else if (right) {
        device->holes[i].offset = offset;
        device->holes[i].size += size;
    } else {
        if (device->hole_count == device->hole_room) {
            device->hole_room *= 2;
            device->holes = realloc(device->holes, device->hole_room * sizeof *device->holes);
            if (device->holes == NULL)
                abort();
        }
        memmove(&device->holes[i + 1], &device->holes[i], (device->hole_count++ - i) * sizeof *device->holes);
        device->holes[i] = (struct hole){offset, size};
    }
}


/* Allocates device memory; that of a pool belongs to no context. */
CUresult allocate(struct context *context, uint64_t size, struct pool *pool, struct block **found) {
    int number = pool != NULL ? pool_device(pool) : context->device;
    struct device *device = &devices[number];
    uint64_t rounded = (size + GRANULE - 1) / GRANULE * GRANULE, offset;
    if (size > device->size)
        return OUT_OF_MEMORY;
    if (!take(device, rounded, &offset) && !(pools_give_back(number) && take(device, rounded, &offset)))
        return OUT_OF_MEMORY;
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL)
        abort();
    block->address = block->start = device->base + offset;
    block->size = rounded;
    block->asked = size;
    block->where = DEVICE_MEMORY;
    block->device = number;
    block->context = pool == NULL ? context : NULL;
    block->pool = pool;
    memset(device->bytes + offset, FRESH, size < 4096 ? size : 4096);
    add_block(block);
    *found = block;
    return SUCCESS;
}

/* Frees a block of any kind. */
void release(struct block *block) {
    remove_block(block);
    if (block->where == DEVICE_MEMORY)
        give_back(&devices[block->device], block->address - devices[block->device].base,
            block->size);
    else if (block->where == PINNED_MEMORY)
        munmap((void *)(uintptr_t)block->address, block->size);
    if (block->freed_at.stream != NULL)
        stream_unref(block->freed_at.stream);
    free(block);
}

/* ---- Memory of graphs, which is in the table from when its node is made until the graph is gone ---- */

/* At the call that frees it; false: it is not allocated. */
static bool graph_block_leaves(struct block *block) {
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

/* ---- The functions that allocate, and those of pinned memory. ---- */

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
    const struct device *device = &devices[context->device];
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
    for (size_t i = 0; i < contexts.count; i++) {
        struct context *other = contexts.items[i];
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
    for (size_t i = 0; i < block_count; i++) {
        const struct block *block = blocks[i];
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

/* ---- Attributes of addresses. ---- */

enum {
    CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, SYNC_MEMOPS = 6, BUFFER_ID = 7,
    IS_MANAGED = 8, DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12, MAPPED = 13, MEMPOOL_HANDLE = 17,
};

/* Whether the attribute has 4 bytes; the others have 8, and flags 1. */
static size_t size_of(int attribute) {
    switch (attribute) {
    case MEMORY_TYPE:
    case DEVICE_ORDINAL:
    case SYNC_MEMOPS:
        return 4;
    case IS_MANAGED:
    case MAPPED:
        return 1;
    case CONTEXT:
    case DEVICE_POINTER:
    case HOST_POINTER:
    case BUFFER_ID:
    case RANGE_START:
    case RANGE_SIZE:
    case MEMPOOL_HANDLE:
        return 8;
    }
    return 0;
}

/* false if this kind of memory does not have the attribute. */
static bool attribute_of(const struct block *block, int attribute, uint64_t address, uint64_t *value) {
    *value = 0;
    switch (attribute) {
    case CONTEXT:
        *value = block->context != NULL ? block->context->handle : 0;
        break;
    case MEMORY_TYPE:
        *value = block->where == DEVICE_MEMORY || block->managed ? 2 : 1;
        break;
    case IS_MANAGED:
        *value = block->managed;
        break;
    case DEVICE_POINTER:
        *value = address;
        break;
    case HOST_POINTER:
        *value = block->where == DEVICE_MEMORY ? 0 : address;
        return block->where != DEVICE_MEMORY;
    case BUFFER_ID:
        *value = block->id;
        break;
    case DEVICE_ORDINAL:
        *value = (uint64_t)block->device;
        break;
    case RANGE_START:
        *value = block->start;
        break;
    case RANGE_SIZE:
        *value = block->asked;
        break;
    case MAPPED:
        *value = 1;
        break;
    case MEMPOOL_HANDLE:
        *value = block->pool != NULL ? pool_handle(block->pool) : 0;
        break;
    }
    return true;
}

API cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
    BEGIN(cuPointerGetAttribute, 0);
    uint64_t value;
    const struct block *block = find_block(address, 1);
    if (data == NULL || block == NULL || size_of(attribute) == 0)
        return end(INVALID_VALUE);
    if (!attribute_of(block, attribute, address, &value))
        return end(INVALID_VALUE);
    memcpy(data, &value, size_of(attribute));
    return end(SUCCESS);
}

/* What the plural form says of an address that is not known here: memory of the host, of no device. */
static uint64_t attribute_of_none(int attribute, uint64_t address) {
    bool bad;
    if (attribute == DEVICE_ORDINAL)
        return (uint64_t)-2;
    classify(address, 1, &bad);
    return attribute == HOST_POINTER && !bad ? address : 0;
}

API cuPointerGetAttributes(unsigned int count, const int *attributes, void **data, CUdeviceptr address) {
    BEGIN(cuPointerGetAttributes, 0);
    const struct block *block = find_block(address, 1);
    if (attributes == NULL || data == NULL)
        return end(INVALID_VALUE);
    for (unsigned i = 0; i < count; i++)
        if (size_of(attributes[i]) == 0 || data[i] == NULL)
            return end(INVALID_VALUE);
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0;
        if (block != NULL)
            attribute_of(block, attributes[i], address, &value);
        else
            value = attribute_of_none(attributes[i], address);
        memcpy(data[i], &value, size_of(attributes[i]));
    }
    return end(SUCCESS);
}

/* Returns where a test can read the bytes of an address; NULL for an unknown address. */
CONTROL void *fakecuda_host(unsigned long long address) {
    pthread_mutex_lock(&state.lock);
    void *bytes = reach(NULL, address, 1);
    pthread_mutex_unlock(&state.lock);
    return bytes;
}

/* ---- Memory in stream order. A block freed on a stream is given to the next allocation of
 * its size there, even before the stream has reached the free. ---- */

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
static struct table pools = {.kind = POOLS, .name = "pool"};

static bool pool_reaches(const struct pool *pool, int device) {
    return pool->device == device || (pool->peers & 1u << device) != 0;
}

static int pool_device(const struct pool *pool) {
    return pool->device;
}

static CUmemoryPool pool_handle(const struct pool *pool) {
    return pool->destroyed ? 0 : pool->handle;
}

static CUresult pool_new(int device, struct pool **found) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return OUT_OF_MEMORY;
    pool->device = device;
    for (int i = 0; i < REUSE_LAST; i++)
        pool->reuse[i] = 1;
    pool->handle = table_put(&pools, pool);
    pool->next = all;
    *found = all = pool;
    return SUCCESS;
}

/* For reset. */
void pools_reset(void) {
    for (size_t i = 0; i < block_count; i++)
        blocks[i]->pool = NULL;
    while (all != NULL) {
        struct pool *pool = all;
        all = pool->next;
        free(pool);
    }
    table_clear(&pools);
}

static void drop(struct pool *pool) {
    struct pool **p = &all;
    while (*p != pool)
        p = &(*p)->next;
    *p = pool->next;
    free(pool);
}

static void return_block(struct block *block) {
    struct pool *pool = block->pool;
    pool->reserved -= block->size;
    release(block);
    if (pool->destroyed && pool->reserved == 0)
        drop(pool);
}

/* Called when the stream has reached the free. */
static void pool_block_freed(struct block *block) {
    struct pool *pool = block->pool;
    if (pool == NULL) {
        release(block);
        return;
    }
    pool->used -= block->size;
    block->freed = true;
    block->freeing = false;
    live_blocks.memory--;
    if (block->freed_at.stream != NULL)
        stream_unref(block->freed_at.stream);
    block->freed_at = (struct point){NULL, 0};
    if (pool->destroyed)
        return_block(block);
}

/* Releases free blocks of a pool until at most so many bytes are reserved. */
static bool trim(struct pool *pool, uint64_t keep) {
    bool any = false;
    for (size_t i = block_count; i-- > 0 && pool->reserved > keep;) {
        struct block *block = blocks[i];
        if (block->pool != pool || !block->freed)
            continue;
        return_block(block);
        any = true;
    }
    return any;
}

/* Whether a pool has memory to give back, what pending work frees included. */
static bool has_surplus(const struct pool *pool) {
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->pool == pool && (blocks[i]->freed || blocks[i]->freeing))
            return true;
    return false;
}

static bool pools_give_back(int device) {
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
    if (devices[device].pool == NULL) {
        CUresult code = pool_new(device, &devices[device].pool);
        if (code != SUCCESS)
            return code;
    }
    *pool = devices[device].pool;
    return SUCCESS;
}

/* ---- Allocation ---- */

/* Returns a block of exactly this size that the stream may use: one freed on the stream,
 * or an unused one. */
static struct block *used_before(struct pool *pool, uint64_t size, const struct stream *stream) {
    struct block *found = NULL;
    for (size_t i = 0; i < block_count; i++) {
        struct block *block = blocks[i];
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
        return stream->capture->recorder->allocate(stream, stream->context, size, address);
    struct block *block = used_before(pool, rounded, stream);
    if (block != NULL) {
        if (block->freed)
            live_blocks.memory++;
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
    struct operation *turn = stream->queue == NULL ? NULL : operation_new(&wait_kind);
    if (turn == NULL)
        return SUCCESS;
    turn->of_memory = true;
    return submit(stream, turn, false);
}

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
    struct pool *pool = table_find(&pools, pool_number);
    if (pool == NULL)
        return end(INVALID_HANDLE);
    return end(allocate_on(stream, pool, size, address));
}

static CUresult run_free(struct stream *stream, struct operation *operation) {
    (void)stream;
    pthread_mutex_lock(&state.lock);
    struct block *block = block_by_id(operation->block);
    /* A block that was allocated again in stream order has another id. */
    if (block != NULL && block->of_graph) {
        block->frees--;
        graph_block_freed(block);
    } else if (block != NULL && block->freeing)
        pool_block_freed(block);
    pthread_mutex_unlock(&state.lock);
    return SUCCESS;
}

const struct kind free_kind = {.node = 5, .run = run_free};

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
        return end(stream->capture->recorder->free(stream, block));
    if (block->of_graph && !graph_block_leaves(block))
        return end(INVALID_VALUE);
    struct operation *operation = operation_new(&free_kind);
    if (operation == NULL)
        return end(OUT_OF_MEMORY);
    operation->block = block->id;
    operation->of_memory = true;
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
    if (device < 0 || device >= device_count)
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
    if (properties->device < 0 || properties->device >= device_count)
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
    struct pool *pool = table_find(&pools, number); \
    if (pool == NULL) \
        return end(INVALID_HANDLE)

API cuMemPoolDestroy(CUmemoryPool handle) {
    BEGIN(cuMemPoolDestroy, 0);
    FIND(pool, handle);
    if (devices[pool->device].pool == pool)
        return end(INVALID_VALUE);
    trim(pool, 0);
    table_drop(&pools, handle);
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
    if (table_get(&pools, handle) == pool) /* no other thread has destroyed it meanwhile */
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
        if (list[i].device < 0 || list[i].device >= device_count)
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
    if (location->device < 0 || location->device >= device_count)
        return end(INVALID_DEVICE);
    *flags = pool_reaches(pool, location->device) ? 3 : 0;
    return end(SUCCESS);
}

/* Pools that were created; every device has a default pool besides. */
size_t live_pools(void) {
    size_t live = table_live(&pools);
    for (int i = 0; i < device_count; i++)
        live -= devices[i].pool != NULL;
    return live;
}
