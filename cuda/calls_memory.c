#include <stdbool.h>
#include <string.h>

#include "frame.h"

hs_status hs_pool_new(CUdevice device, CUcontext ctx, CUmemoryPool *pool)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = HS_ALLOCATION_PINNED;
    props.location.type = HS_LOCATION_DEVICE;
    props.location.id = device;
    *pool = 0;
    HS_STEP(status, cuMemPoolCreate, pool, &props);
    /* With the default threshold each synchronize would release unused memory. */
    uint64_t all = UINT64_MAX;
    HS_STEP(status, cuMemPoolSetAttribute, *pool, HS_POOL_RELEASE_THRESHOLD, &all);
    if (status != 0 && *pool != 0) {
        HS_CALL(cuMemPoolDestroy, *pool);
        *pool = 0;
    }
    return hs_leave(&frame, status);
}

hs_status hs_pool_destroy(CUcontext ctx, CUmemoryPool pool) { HS_RELAXED(ctx, cuMemPoolDestroy, pool); }

hs_status hs_pool_trim(CUcontext ctx, CUmemoryPool pool) { HS_RELAXED(ctx, cuMemPoolTrimTo, pool, 0); }

hs_status hs_pool_access(CUcontext ctx, CUmemoryPool pool, CUdevice device)
{
    CUmemAccessDesc access = {{HS_LOCATION_DEVICE, device}, HS_ACCESS_READ_WRITE};
    HS_RELAXED(ctx, cuMemPoolSetAccess, pool, &access, 1);
}

hs_status hs_pool_kept(CUcontext ctx, CUmemoryPool pool, uint64_t *bytes)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    uint64_t reserved = 0, used = 0;
    HS_STEP(status, cuMemPoolGetAttribute, pool, HS_POOL_RESERVED, &reserved);
    HS_STEP(status, cuMemPoolGetAttribute, pool, HS_POOL_USED, &used);
    *bytes = reserved - used;
    return hs_leave(&frame, status);
}

hs_status hs_alloc(CUcontext ctx, uint64_t size, CUdeviceptr *address) { HS_RELAXED(ctx, cuMemAlloc_v2, address, size); }

hs_status hs_alloc_pool(CUcontext ctx, uint64_t size, CUmemoryPool pool, CUstream stream, CUdeviceptr *address)
{
    HS_ONE(ctx, cuMemAllocFromPoolAsync, address, size, pool, stream);
}

hs_status hs_free(CUcontext ctx, CUdeviceptr address) { HS_RELAXED(ctx, cuMemFree_v2, address); }

hs_status hs_free_pool(CUcontext ctx, CUdeviceptr address, CUstream stream)
{
    HS_ONE(ctx, cuMemFreeAsync, address, stream);
}

hs_status hs_info(CUcontext ctx, uint64_t *free, uint64_t *total)
{
    size_t unused = 0, all = 0;
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuMemGetInfo_v2, &unused, &all);
    *free = unused;
    *total = all;
    return hs_leave(&frame, status);
}

hs_status hs_host_alloc(CUcontext ctx, uint64_t size, uint64_t *address)
{
    void *found = NULL;
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuMemHostAlloc, &found, size, HS_HOST_PORTABLE | HS_HOST_MAPPED);
    *address = (uint64_t)(uintptr_t)found;
    return hs_leave(&frame, status);
}

hs_status hs_host_free(CUcontext ctx, uint64_t address)
{
    HS_RELAXED(ctx, cuMemFreeHost, (void *)(uintptr_t)address);
}

hs_status hs_host_device(CUcontext ctx, uint64_t address, CUdeviceptr *device)
{
    HS_RELAXED(ctx, cuMemHostGetDevicePointer_v2, device, (void *)(uintptr_t)address, 0);
}

hs_status hs_register(CUcontext ctx, uint64_t address, uint64_t size)
{
    HS_RELAXED(ctx, cuMemHostRegister_v2, (void *)(uintptr_t)address, size, HS_REGISTER_PORTABLE | HS_REGISTER_MAPPED);
}

hs_status hs_unregister(CUcontext ctx, uint64_t address)
{
    HS_RELAXED(ctx, cuMemHostUnregister, (void *)(uintptr_t)address);
}

hs_status hs_probe(CUcontext ctx, CUdeviceptr address, uint32_t *type, int *ordinal, uint64_t *start, uint64_t *size,
                   CUmemoryPool *pool)
{
    int attributes[] = {HS_POINTER_TYPE, HS_POINTER_DEVICE, HS_POINTER_START, HS_POINTER_SIZE, HS_POINTER_POOL};
    CUdeviceptr base = 0;
    size_t bytes = 0;
    *type = 0;
    *ordinal = -1;
    *pool = 0;
    void *data[] = {type, ordinal, &base, &bytes, pool};
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    /* For memory that the driver does not know it writes zeros and returns success. */
    HS_STEP(status, cuPointerGetAttributes, hs_api.cuMemPoolCreate != NULL ? 5 : 4, attributes, data, address);
    *start = base;
    *size = bytes;
    return hs_leave(&frame, status);
}

/* The greatest distance between rows that the driver's copies of rows take, in bytes. */
#define MAX_PITCH 0x7fffffffu

/* A copy of bytes that lie one after the other. */
static hs_status copy_line(hs_status status, CUstream stream, const hs_copy *c, uint64_t dst, uint64_t src, size_t n)
{
    if (c->to != c->from) HS_STEP(status, cuMemcpyPeerAsync, dst, c->to, src, c->from, n, stream);
    else if (c->direction == HS_HOST_TO_DEVICE)
        HS_STEP(status, cuMemcpyHtoDAsync_v2, dst, (const void *)(uintptr_t)src, n, stream);
    else if (c->direction == HS_DEVICE_TO_HOST)
        HS_STEP(status, cuMemcpyDtoHAsync_v2, (void *)(uintptr_t)dst, src, n, stream);
    else HS_STEP(status, cuMemcpyDtoDAsync_v2, dst, src, n, stream);
    return status;
}

/* Rows of two devices: cuMemcpy2D needs peer access, this does not. */
static hs_status copy_peer_rows(hs_status status, CUstream stream, const hs_copy *c)
{
    CUDA_MEMCPY3D_PEER rows;
    memset(&rows, 0, sizeof rows);
    rows.srcMemoryType = rows.dstMemoryType = HS_MEMORY_DEVICE;
    rows.srcDevice = c->src;
    rows.dstDevice = c->dst;
    rows.srcContext = c->from;
    rows.dstContext = c->to;
    rows.srcPitch = c->spitch;
    rows.dstPitch = c->dpitch;
    rows.srcHeight = rows.dstHeight = rows.Height = c->height;
    rows.WidthInBytes = c->width;
    rows.Depth = 1;
    HS_STEP(status, cuMemcpy3DPeerAsync, &rows, stream);
    return status;
}

static hs_status copy_rows(hs_status status, CUstream stream, const hs_copy *c)
{
    CUDA_MEMCPY2D rows;
    memset(&rows, 0, sizeof rows);
    rows.srcMemoryType = c->direction == HS_HOST_TO_DEVICE ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    rows.dstMemoryType = c->direction == HS_DEVICE_TO_HOST ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    if (rows.srcMemoryType == HS_MEMORY_HOST) rows.srcHost = (const void *)(uintptr_t)c->src;
    else rows.srcDevice = c->src;
    if (rows.dstMemoryType == HS_MEMORY_HOST) rows.dstHost = (void *)(uintptr_t)c->dst;
    else rows.dstDevice = c->dst;
    rows.srcPitch = c->spitch;
    rows.dstPitch = c->dpitch;
    rows.WidthInBytes = c->width;
    rows.Height = c->height;
    HS_STEP(status, cuMemcpy2DAsync_v2, &rows, stream);
    return status;
}

hs_status hs_copy_async(CUcontext ctx, CUstream stream, const hs_copy *c)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    bool peers = c->to != c->from;
    if (c->height == 1 || (c->dpitch == c->width && c->spitch == c->width))
        status = copy_line(status, stream, c, c->dst, c->src, c->width * c->height);
    else if (c->dpitch > MAX_PITCH || c->spitch > MAX_PITCH || (peers && hs_api.cuMemcpy3DPeerAsync == NULL))
        for (uint64_t i = 0; i < c->height; i++)
            status = copy_line(status, stream, c, c->dst + i * c->dpitch, c->src + i * c->spitch, c->width);
    else status = peers ? copy_peer_rows(status, stream, c) : copy_rows(status, stream, c);
    return hs_leave(&frame, status);
}

hs_status hs_fill(CUcontext ctx, CUstream stream, uint64_t dst, uint64_t count, uint32_t value, int size)
{
    if (size == 1) HS_ONE(ctx, cuMemsetD8Async, dst, (unsigned char)value, count, stream);
    if (size == 2) HS_ONE(ctx, cuMemsetD16Async, dst, (unsigned short)value, count, stream);
    HS_ONE(ctx, cuMemsetD32Async, dst, value, count, stream);
}

static void copy_on_host(const hs_copy *c)
{
    char *to = (char *)(uintptr_t)c->dst;
    const char *from = (const char *)(uintptr_t)c->src;
    if (c->height == 1 || (c->dpitch == c->width && c->spitch == c->width)) {
        memcpy(to, from, c->width * c->height);
        return;
    }
    for (uint64_t i = 0; i < c->height; i++) memcpy(to + i * c->dpitch, from + i * c->spitch, c->width);
}

void hs_host_copy(const hs_copy *copy)
{
    if (!hs_begin_pinned()) return;
    copy_on_host(copy);
    hs_end_pinned();
}

static void fill_on_host(char *to, uint64_t count, uint32_t value, int size)
{
    if (size == 1) {
        memset(to, (int)value, count);
        return;
    }
    uint16_t half = (uint16_t)value;
    for (uint64_t i = 0; i < count; i++, to += size) memcpy(to, size == 2 ? (void *)&half : (void *)&value, (size_t)size);
}

void hs_host_fill(uint64_t dst, uint64_t count, uint32_t value, int size)
{
    if (!hs_begin_pinned()) return;
    fill_on_host((char *)(uintptr_t)dst, count, value, size);
    hs_end_pinned();
}

void hs_host_native(uint64_t fn, uint64_t arg) { ((void (*)(void *))(uintptr_t)fn)((void *)(uintptr_t)arg); }
