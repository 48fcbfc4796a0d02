/* Attributes of addresses. */
#include "fakecuda.h"

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
