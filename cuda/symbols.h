/* The driver library's functions, found at run time: nothing is linked, and no
 * toolkit is needed to build. Types and numbers are those of the driver's ABI. */
#ifndef HALSTREAM_CUDA_SYMBOLS_H
#define HALSTREAM_CUDA_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

typedef int32_t CUresult;
typedef int32_t CUdevice;
typedef uint64_t CUdeviceptr;
/* Handles are integers, not pointers: 1 and 2 are predefined streams, and Go's
 * collector must not take a handle for an address in its heap. */
typedef uintptr_t CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUmemoryPool, CUgraph, CUgraphNode, CUgraphExec;
typedef void (*CUhostFn)(void *data);

typedef struct {
    int32_t allocType, handleTypes;
    struct { int32_t type, id; } location;
    void *win32SecurityAttributes;
    uint64_t maxSize;
    uint16_t usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
    struct { int32_t type, id; } location;
    int32_t flags;
} CUmemAccessDesc;

typedef struct {
    uint64_t srcXInBytes, srcY;
    int32_t srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    uintptr_t srcArray;
    uint64_t srcPitch, dstXInBytes, dstY;
    int32_t dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    uintptr_t dstArray;
    uint64_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
    uint64_t srcXInBytes, srcY, srcZ, srcLOD;
    int32_t srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    uintptr_t srcArray;
    CUcontext srcContext;
    uint64_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
    int32_t dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    uintptr_t dstArray;
    CUcontext dstContext;
    uint64_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

typedef struct {
    uint64_t srcXInBytes, srcY, srcZ, srcLOD;
    int32_t srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    uintptr_t srcArray;
    void *reserved0;
    uint64_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
    int32_t dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    uintptr_t dstArray;
    void *reserved1;
    uint64_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
    CUdeviceptr dst;
    uint64_t pitch;
    uint32_t value, elementSize;
    uint64_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    CUfunction func;
    uint32_t gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
    void **params, **extra;
    uintptr_t kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    int32_t type, reserved0[3];
    union {
        struct {
            uint64_t handle;
            int32_t type;
            uint32_t size;
            CUgraph *phGraph_out;
            CUcontext ctx;
        } conditional;
        int64_t reserved1[29];
    };
    int64_t reserved2;
} CUgraphNodeParams;

typedef struct {
    uint32_t gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
    CUstream stream;
    void *attrs;
    uint32_t numAttrs;
} CUlaunchConfig;

typedef struct {
    int32_t id;
    char pad[4];
    union { uint64_t words[8]; int32_t cooperative; struct { uint32_t x, y, z; } clusterDim; } value;
} CUlaunchAttribute;

typedef union {
    int32_t operation;
    struct {
        int32_t operation;
        CUdeviceptr address;
        uint64_t value;
        uint32_t flags;
        CUdeviceptr alias;
    } word;
    uint64_t pad[6];
} CUstreamBatchMemOpParams;

/* X(symbol, base name and version for cuGetProcAddress, whether it is required,
 * parameters). A base name differs from its symbol where the symbol has a suffix that
 * only names a newer form of the same function. */
#define HS_SYMBOLS(X) \
    X(cuInit, "cuInit", 2000, 1, (unsigned flags)) \
    X(cuDriverGetVersion, "cuDriverGetVersion", 2020, 1, (int *version)) \
    X(cuGetErrorName, "cuGetErrorName", 6000, 1, (CUresult code, const char **text)) \
    X(cuGetErrorString, "cuGetErrorString", 6000, 1, (CUresult code, const char **text)) \
    X(cuDeviceGetCount, "cuDeviceGetCount", 2000, 1, (int *count)) \
    X(cuDeviceGet, "cuDeviceGet", 2000, 1, (CUdevice *device, int ordinal)) \
    X(cuDeviceGetName, "cuDeviceGetName", 2000, 1, (char *name, int len, CUdevice device)) \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, 1, (int *value, int attribute, CUdevice device)) \
    X(cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040, 0, (unsigned char *uuid, CUdevice device)) \
    X(cuDeviceGetUuid, "cuDeviceGetUuid", 9020, 0, (unsigned char *uuid, CUdevice device)) \
    X(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, 1, (size_t *bytes, CUdevice device)) \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010, 0, (char *id, int len, CUdevice device)) \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000, 0, (int *can, CUdevice device, CUdevice peer)) \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 1, (CUcontext *ctx, CUdevice device)) \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 1, (CUdevice device)) \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 1, (CUcontext ctx)) \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, 1, (CUcontext *ctx)) \
    X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, 1, (int *least, int *greatest)) \
    X(cuCtxRecordEvent, "cuCtxRecordEvent", 12050, 0, (CUcontext ctx, CUevent event)) \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, 0, (CUcontext peer, unsigned flags)) \
    X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, 1, (CUstream *stream, unsigned flags, int priority)) \
    X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, 1, (CUstream stream)) \
    X(cuStreamQuery, "cuStreamQuery", 2000, 1, (CUstream stream)) \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, 1, (CUstream stream, CUevent event, unsigned flags)) \
    X(cuStreamGetFlags, "cuStreamGetFlags", 5050, 1, (CUstream stream, unsigned *flags)) \
    X(cuStreamGetPriority, "cuStreamGetPriority", 5050, 1, (CUstream stream, int *priority)) \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, 1, (CUstream stream, int *status)) \
    X(cuStreamGetCtx, "cuStreamGetCtx", 9020, 1, (CUstream stream, CUcontext *ctx)) \
    X(cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 11070, 0, \
      (CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags)) \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, 0, (int *mode)) \
    X(cuEventCreate, "cuEventCreate", 2000, 1, (CUevent *event, unsigned flags)) \
    X(cuEventRecord, "cuEventRecord", 2000, 1, (CUevent event, CUstream stream)) \
    X(cuEventQuery, "cuEventQuery", 2000, 1, (CUevent event)) \
    X(cuEventDestroy_v2, "cuEventDestroy", 4000, 1, (CUevent event)) \
    X(cuEventElapsedTime, "cuEventElapsedTime", 2000, 1, (float *ms, CUevent start, CUevent end)) \
    X(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, 1, (CUstream stream, CUhostFn fn, void *data)) \
    X(cuMemAlloc_v2, "cuMemAlloc", 3020, 1, (CUdeviceptr *address, size_t size)) \
    X(cuMemFree_v2, "cuMemFree", 3020, 1, (CUdeviceptr address)) \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, 1, (void **address, size_t size, unsigned flags)) \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, 1, (void *address)) \
    X(cuMemHostRegister_v2, "cuMemHostRegister", 6050, 1, (void *address, size_t size, unsigned flags)) \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, 1, (void *address)) \
    X(cuMemHostGetDevicePointer_v2, "cuMemHostGetDevicePointer", 3020, 0, (CUdeviceptr *address, void *host, unsigned flags)) \
    X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 1, (size_t *free, size_t *total)) \
    X(cuMemcpyAsync, "cuMemcpyAsync", 4000, 1, (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)) \
    X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, 1, (CUdeviceptr dst, const void *src, size_t size, CUstream stream)) \
    X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, 1, (void *dst, CUdeviceptr src, size_t size, CUstream stream)) \
    X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, 1, (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)) \
    X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, 0, \
      (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size, CUstream stream)) \
    X(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 3020, 0, (const CUDA_MEMCPY2D *copy, CUstream stream)) \
    X(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, 0, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream)) \
    X(cuMemsetD8Async, "cuMemsetD8Async", 3020, 1, (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)) \
    X(cuMemsetD16Async, "cuMemsetD16Async", 3020, 1, (CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)) \
    X(cuMemsetD32Async, "cuMemsetD32Async", 3020, 1, (CUdeviceptr dst, unsigned value, size_t n, CUstream stream)) \
    X(cuMemPoolCreate, "cuMemPoolCreate", 11020, 0, (CUmemoryPool *pool, const CUmemPoolProps *props)) \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0, (CUmemoryPool pool)) \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0, (CUmemoryPool pool, size_t keep)) \
    X(cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, 0, \
      (CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)) \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, 0, (CUmemoryPool pool, int attribute, void *value)) \
    X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, 0, (CUmemoryPool pool, int attribute, void *value)) \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0, \
      (CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)) \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0, (CUdeviceptr address, CUstream stream)) \
    X(cuPointerGetAttributes, "cuPointerGetAttributes", 7000, 1, \
      (unsigned count, int *attributes, void **data, CUdeviceptr address)) \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 1, \
      (CUmodule *module, const void *image, unsigned count, int *options, void **values)) \
    X(cuModuleUnload, "cuModuleUnload", 2000, 1, (CUmodule module)) \
    X(cuModuleGetFunction, "cuModuleGetFunction", 2000, 1, (CUfunction *function, CUmodule module, const char *name)) \
    X(cuModuleGetGlobal_v2, "cuModuleGetGlobal", 3020, 1, \
      (CUdeviceptr *address, size_t *size, CUmodule module, const char *name)) \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, 1, (int *value, int attribute, CUfunction function)) \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, 0, (CUfunction function, int attribute, int value)) \
    X(cuFuncGetParamInfo, "cuFuncGetParamInfo", 12040, 0, (CUfunction function, size_t index, size_t *offset, size_t *size)) \
    X(cuFuncLoad, "cuFuncLoad", 12040, 0, (CUfunction function)) \
    X(cuLaunchKernel, "cuLaunchKernel", 4000, 1, \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
       unsigned shared, CUstream stream, void **params, void **extra)) \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 0, \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra)) \
    X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, 0, \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
       unsigned shared, CUstream stream, void **params)) \
    X(cuGraphCreate, "cuGraphCreate", 10000, 0, (CUgraph *graph, unsigned flags)) \
    X(cuGraphDestroy, "cuGraphDestroy", 10000, 0, (CUgraph graph)) \
    X(cuGraphAddEmptyNode, "cuGraphAddEmptyNode", 10000, 0, \
      (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count)) \
    X(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode", 10000, 0, \
      (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_MEMCPY3D *copy, CUcontext ctx)) \
    X(cuGraphAddMemsetNode, "cuGraphAddMemsetNode", 10000, 0, \
      (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_MEMSET_NODE_PARAMS *fill, \
       CUcontext ctx)) \
    X(cuGraphAddKernelNode_v2, "cuGraphAddKernelNode", 12000, 0, \
      (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_KERNEL_NODE_PARAMS *launch)) \
    X(cuGraphConditionalHandleCreate, "cuGraphConditionalHandleCreate", 12030, 0, \
      (uint64_t *handle, CUgraph graph, CUcontext ctx, unsigned value, unsigned flags)) \
    X(cuGraphAddNode_v2, "cuGraphAddNode", 12030, 0, \
      (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count, CUgraphNodeParams *params)) \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, 0, \
      (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
    X(cuGraphLaunch, "cuGraphLaunch", 10000, 0, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, 0, (CUgraphExec exec))

enum {
#define X(name, base, version, must, params) HS_##name,
    HS_SYMBOLS(X)
#undef X
    HS_COUNT
};

typedef struct {
#define X(name, base, version, must, params) CUresult (*name) params;
    HS_SYMBOLS(X)
#undef X
} hs_api_table;

extern hs_api_table hs_api;

/* Calls a function of the library; one that it lacks is not supported. */
#define HS_CALL(name, ...) (hs_api.name ? hs_api.name(__VA_ARGS__) : HS_NOT_SUPPORTED)

/* Results of hs_load. */
enum { HS_LOADED, HS_NO_LIBRARY, HS_NOT_DRIVER, HS_TOO_OLD, HS_LACKS, HS_OTHER };

/* Opens the library at path, or by its usual names if path is NULL, and fills the
 * table. May be called by any thread, but not by two at the same time. On failure text
 * is the loader's message, or the symbol that is missing. While in_use is not 0 a
 * library other than the table's is refused. A library is never unloaded. */
int hs_load(const char *path, int least, int in_use, int *version, char *text, size_t size);

/* The name of a function of the table. */
const char *hs_symbol(int number);

/* Whether the library has it. */
int hs_has(int number);

#endif /* HALSTREAM_CUDA_SYMBOLS_H */
