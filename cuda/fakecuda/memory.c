/* Memory. The device addresses that callers get are in an inaccessible range; the bytes
 * are in a file that is mapped at other addresses. */
#include "fakecuda.h"

#include <sys/mman.h>
#include <unistd.h>

#define FRESH 0xCD /* new memory is not zero */

/* ---- The table of blocks, by address ---- */

static size_t place_of(uint64_t address) {
    size_t low = 0, high = state.block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (state.blocks[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t *live_count(const struct block *block) {
    switch (block->where) {
    case DEVICE_MEMORY:
        return &state.live_memory;
    case PINNED_MEMORY:
        return &state.live_pinned;
    default:
        return &state.live_registered;
    }
}

void add_block(struct block *block) {
    if (state.block_count == state.block_room) {
        state.block_room = state.block_room ? 2 * state.block_room : 64;
        state.blocks = realloc(state.blocks, state.block_room * sizeof *state.blocks);
        if (state.blocks == NULL)
            abort();
    }
    size_t place = place_of(block->address);
    memmove(&state.blocks[place + 1], &state.blocks[place],
        (state.block_count - place) * sizeof *state.blocks);
    state.blocks[place] = block;
    state.block_count++;
    block->id = ++state.next_id;
    ++*live_count(block);
}

void remove_block(struct block *block) {
    size_t place = place_of(block->address) - 1;
    memmove(&state.blocks[place], &state.blocks[place + 1],
        (--state.block_count - place) * sizeof *state.blocks);
    if (!block->freed)
        --*live_count(block);
}

/* The block that holds all of a range, or NULL. */
struct block *find_block(uint64_t address, uint64_t size) {
    size_t place = place_of(address);
    if (place == 0)
        return NULL;
    struct block *block = state.blocks[place - 1];
    uint64_t length = block->where == REGISTERED_MEMORY ? block->size : block->asked;
    uint64_t offset = address - block->address;
    if (block->freed || offset >= length || size > length - offset)
        return NULL;
    return block;
}

struct block *block_by_id(uint64_t id) {
    for (size_t i = 0; i < state.block_count; i++)
        if (state.blocks[i]->id == id)
            return state.blocks[i];
    return NULL;
}

static struct device *device_of(uint64_t address) {
    for (int i = 0; i < state.device_count; i++)
        if (address - state.devices[i].base < state.devices[i].size)
            return &state.devices[i];
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
    const struct device *device = &state.devices[block->device];
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
        struct device *device = &state.devices[i];
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
    state.device_count = count;
    return SUCCESS;
}

/* For reset, when no thread uses memory any more. */
void close_devices(void) {
    while (state.block_count > 0)
        release(state.blocks[state.block_count - 1]);
    for (int i = 0; i < state.device_count; i++) {
        struct device *device = &state.devices[i];
        munmap((void *)(uintptr_t)device->base, device->size);
        munmap(device->bytes, device->size);
        free(device->holes);
        memset(device, 0, sizeof *device);
    }
}

uint64_t bytes_in_use(void) {
    uint64_t used = 0;
    for (size_t i = 0; i < state.block_count; i++)
        if (state.blocks[i]->where == DEVICE_MEMORY && !state.blocks[i]->freed)
            used += state.blocks[i]->asked;
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
    struct device *device = &state.devices[number];
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
        give_back(&state.devices[block->device], block->address - state.devices[block->device].base,
            block->size);
    else if (block->where == PINNED_MEMORY)
        munmap((void *)(uintptr_t)block->address, block->size);
    if (block->freed_at.stream != NULL)
        stream_unref(block->freed_at.stream);
    free(block);
}
