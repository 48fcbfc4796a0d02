/* Memory of devices and of the host, copies and fills. */
#include "fakeacl.h"

#include <sys/mman.h>

enum { PADDING = 32, GARBAGE = 0xA5 };

/* The block that holds a range; NULL for memory of the program, or a range that leaves its block. */
struct block *block_of(const void *address, size_t size) {
    uintptr_t at = (uintptr_t)address;
    for (struct block *b = state.blocks; b != NULL; b = b->next)
        if (at >= b->start && at - b->start < b->taken && size <= b->taken - (at - b->start)) return b;
    return NULL;
}

char *reachable(const void *address) {
    for (int i = 0; i < state.device_count; i++) {
        struct device *d = &state.devices[i];
        uintptr_t offset = (uintptr_t)address - (uintptr_t)d->range;
        if (d->range != NULL && offset < d->size) return d->bytes + offset;
    }
    return (char *)(uintptr_t)address;
}

static void add_block(uintptr_t start, size_t size, size_t taken, enum where where, int device) {
    struct block *b = calloc(1, sizeof *b);
    if (b == NULL) abort();
    *b = (struct block){state.blocks, start, size, taken, where, device};
    state.blocks = b;
}

static struct block *take_block(uintptr_t start, enum where where) {
    for (struct block **b = &state.blocks; *b != NULL; b = &(*b)->next) {
        if ((*b)->start == start && (*b)->where == where) {
            struct block *found = *b;
            *b = found->next;
            return found;
        }
    }
    return NULL;
}

/* The lowest place of a device's memory with room. */
static char *place(struct device *d, int ordinal, size_t size) {
    uintptr_t at = (uintptr_t)d->range + ALIGNMENT, last = (uintptr_t)d->range + d->size; /* aligned to no more than promised */
    for (bool moved = true; moved;) {
        moved = false;
        for (struct block *b = state.blocks; b != NULL; b = b->next) {
            if (b->where != ON_DEVICE || b->device != ordinal || b->start >= at + size || b->start + b->taken <= at) continue;
            at = (b->start + b->taken + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            moved = true;
        }
    }
    return at + size <= last ? (char *)at : NULL;
}

API aclrtMalloc(void **address, size_t size, aclrtMemMallocPolicy policy) {
    BEGIN(aclrtMalloc);
    (void)policy;
    struct context *context;
    CHECK(address != NULL && size > 0, ACL_ERROR_INVALID_PARAM);
    TRY(current(&context));
    struct device *d = &state.devices[context->device];
    CHECK(size < d->size, ACL_ERROR_RT_MEMORY_ALLOCATION);
    size_t taken = (size + PADDING - 1) / PADDING * PADDING + PADDING;
    char *at = place(d, context->device, taken);
    CHECK(at != NULL, ACL_ERROR_RT_MEMORY_ALLOCATION);
    d->used += taken;
    add_block((uintptr_t)at, size, taken, ON_DEVICE, context->device);
    state.live_memory++;
    memset(reachable(at), GARBAGE, size < 4096 ? size : 4096);
    *address = at;
    END(ACL_SUCCESS);
}

API aclrtFree(void *address) {
    BEGIN(aclrtFree);
    CHECK(address != NULL, ACL_ERROR_INVALID_PARAM);
    struct block *b = take_block((uintptr_t)address, ON_DEVICE);
    CHECK(b != NULL, ACL_ERROR_RT_PARAM_INVALID);
    state.devices[b->device].used -= b->taken;
    state.live_memory--;
    free(b);
    END(ACL_SUCCESS);
}

API aclrtMallocHost(void **address, size_t size) {
    BEGIN(aclrtMallocHost);
    struct context *context;
    CHECK(address != NULL && size > 0, ACL_ERROR_INVALID_PARAM);
    TRY(current(&context));
    CHECK(posix_memalign(address, ALIGNMENT, size) == 0, ACL_ERROR_RT_MEMORY_ALLOCATION);
    add_block((uintptr_t)*address, size, size, PINNED, -1);
    state.live_pinned++;
    END(ACL_SUCCESS);
}

API aclrtFreeHost(void *address) {
    BEGIN(aclrtFreeHost);
    CHECK(address != NULL, ACL_ERROR_INVALID_PARAM);
    struct block *b = take_block((uintptr_t)address, PINNED);
    CHECK(b != NULL && b->device == -1, ACL_ERROR_RT_PARAM_INVALID);
    free(b);
    free(address);
    state.live_pinned--;
    END(ACL_SUCCESS);
}

enum { OF_PROGRAM = -2 };

/* Whether all pages of a range are mapped: a driver cannot pin others. */
static bool mapped(const void *address, uint64_t size) {
    enum { PAGE = 4096 };
    uintptr_t first = (uintptr_t)address / PAGE * PAGE, last = (uintptr_t)address + size - 1;
    if (last < first || reachable(address) != address) return false;
    unsigned char resident;
    for (uintptr_t at = first; at <= last; at += PAGE)
        if (mincore((void *)at, PAGE, &resident) != 0) return false;
    return true;
}

API aclrtHostRegisterV2(void *address, uint64_t size, uint32_t flags) {
    BEGIN(aclrtHostRegisterV2);
    struct context *context;
    CHECK(address != NULL && size > 0, ACL_ERROR_INVALID_PARAM);
    CHECK(flags & ACL_HOST_REG_PINNED, ACL_ERROR_RT_PARAM_INVALID);
    TRY(current(&context));
    CHECK(mapped(address, size), ACL_ERROR_RT_PARAM_INVALID);
    CHECK(block_of(address, 1) == NULL, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    add_block((uintptr_t)address, size, size, PINNED, OF_PROGRAM);
    state.live_registered++;
    END(ACL_SUCCESS);
}

API aclrtHostUnregister(void *address) {
    BEGIN(aclrtHostUnregister);
    struct block *b = take_block((uintptr_t)address, PINNED);
    CHECK(b != NULL && b->device == OF_PROGRAM, ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
    free(b);
    state.live_registered--;
    END(ACL_SUCCESS);
}

void memory_drop(void) {
    while (state.blocks != NULL) {
        struct block *b = state.blocks;
        state.blocks = b->next;
        if (b->where == PINNED && b->device == -1) free((void *)b->start);
        free(b);
    }
    state.live_memory = state.live_pinned = state.live_registered = 0;
}

API aclrtPointerGetAttributes(const void *address, aclrtPtrAttributes *attributes) {
    BEGIN(aclrtPointerGetAttributes);
    CHECK(attributes != NULL, ACL_ERROR_INVALID_PARAM);
    const struct block *b = block_of(address, 1);
    memset(attributes, 0, sizeof *attributes);
    attributes->location.type = b == NULL ? ACL_MEM_LOCATION_TYPE_UNREGISTERED
                                : b->where == ON_DEVICE ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
    attributes->location.id = b != NULL && b->where == ON_DEVICE ? (uint32_t)b->device : 0;
    END(ACL_SUCCESS);
}

API aclrtGetMemInfo(aclrtMemAttr attribute, size_t *free_bytes, size_t *total) {
    BEGIN(aclrtGetMemInfo);
    (void)attribute;
    struct context *context;
    CHECK(free_bytes != NULL && total != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(current(&context));
    *total = state.devices[context->device].size;
    *free_bytes = *total - state.devices[context->device].used;
    END(ACL_SUCCESS);
}

/* A range is of one kind of memory as a whole, and of a device that the stream's device may use. */
static aclError side(const void *address, size_t size, const struct stream *stream, enum where *where) {
    const struct block *b = block_of(address, size);
    if (b == NULL && block_of(address, 1) != NULL) return ACL_ERROR_RT_PARAM_INVALID;
    *where = b == NULL ? PAGEABLE : b->where;
    int own = stream->context->device;
    if (*where == ON_DEVICE && b->device != own && !state.devices[own].peers[b->device]) return ACL_ERROR_RT_PARAM_INVALID;
    return ACL_SUCCESS;
}

/* Copies from and to pageable memory are done when the call returns. */
static aclError copy(struct stream *stream, struct copy c, aclrtMemcpyKind kind) {
    enum where to, from;
    if (c.to == NULL || c.from == NULL) return ACL_ERROR_INVALID_PARAM;
    aclError code = side(c.to, (c.height - 1) * c.to_pitch + c.width, stream, &to);
    if (code == ACL_SUCCESS) code = side(c.from, (c.height - 1) * c.from_pitch + c.width, stream, &from);
    if (code != ACL_SUCCESS) return code;
    if (to != ON_DEVICE && from != ON_DEVICE) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    aclrtMemcpyKind is_kind = to != ON_DEVICE ? ACL_MEMCPY_DEVICE_TO_HOST
                              : from != ON_DEVICE ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_DEVICE;
    if (kind != ACL_MEMCPY_DEFAULT && kind != is_kind) return ACL_ERROR_RT_PARAM_INVALID;
    c.to = reachable(c.to);
    c.from = reachable(c.from);
    struct operation *operation = operation_new(COPY);
    operation->copy = c;
    code = submit(stream, operation);
    if (code == ACL_SUCCESS && (to == PAGEABLE || from == PAGEABLE)) wait_point(stream, stream->enqueued);
    return code;
}

API aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t size, aclrtMemcpyKind kind, aclrtStream handle) {
    BEGIN(aclrtMemcpyAsync);
    struct stream *stream;
    CHECK(kind >= 0 && kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, ACL_ERROR_INVALID_PARAM);
    CHECK(size <= most, ACL_ERROR_RT_PARAM_INVALID);
    TRY(stream_for(handle, &stream));
    CHECK(size > 0, ACL_SUCCESS);
    END(copy(stream, (struct copy){to, from, size, 1, size, size}, kind));
}

API aclrtMemcpy2dAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       aclrtMemcpyKind kind, aclrtStream handle) {
    BEGIN(aclrtMemcpy2dAsync);
    struct stream *stream;
    CHECK(kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_HOST ||
              (state.settings.planes && kind == ACL_MEMCPY_DEVICE_TO_DEVICE),
          ACL_ERROR_RT_PARAM_INVALID);
    CHECK(width > 0 && height > 0 && width <= to_pitch && width <= from_pitch, ACL_ERROR_RT_PARAM_INVALID);
    TRY(stream_for(handle, &stream));
    END(copy(stream, (struct copy){to, from, width, height, to_pitch, from_pitch}, kind));
}

API aclrtMemsetAsync(void *address, size_t most, int32_t value, size_t size, aclrtStream handle) {
    BEGIN(aclrtMemsetAsync);
    struct stream *stream;
    CHECK(address != NULL, ACL_ERROR_INVALID_PARAM);
    CHECK(size <= most, ACL_ERROR_RT_PARAM_INVALID);
    TRY(stream_for(handle, &stream));
    enum where where;
    TRY(side(address, size, stream, &where));
    CHECK(where == ON_DEVICE, ACL_ERROR_RT_PARAM_INVALID);
    struct operation *operation = operation_new(FILL);
    operation->fill.to = reachable(address);
    operation->fill.size = size;
    operation->fill.value = value;
    END(submit(stream, operation));
}

static aclError value(void *address, uint64_t number, uint32_t how, aclrtStream handle, enum operation_kind kind) {
    struct stream *stream;
    enum where where;
    if (address == NULL) return ACL_ERROR_INVALID_PARAM;
    if ((uintptr_t)address % 8 != 0 || how > ACL_STREAM_WAIT_VALUE_NOR || (kind == VALUE_WRITE && how != 0))
        return ACL_ERROR_RT_PARAM_INVALID;
    aclError code = stream_for(handle, &stream);
    if (code == ACL_SUCCESS) code = side(address, 8, stream, &where);
    if (code != ACL_SUCCESS) return code;
    if (where != ON_DEVICE) return ACL_ERROR_RT_PARAM_INVALID;
    struct operation *operation = operation_new(kind);
    operation->value.word = (_Atomic uint64_t *)reachable(address);
    operation->value.value = number;
    operation->value.how = how;
    return submit(stream, operation);
}

API aclrtValueWrite(void *address, uint64_t number, uint32_t flags, aclrtStream stream) {
    BEGIN(aclrtValueWrite);
    END(value(address, number, flags, stream, VALUE_WRITE));
}

API aclrtValueWait(void *address, uint64_t number, uint32_t flags, aclrtStream stream) {
    BEGIN(aclrtValueWait);
    END(value(address, number, flags, stream, VALUE_WAIT));
}
