/* libhalstream_cudart.so: the documented calls of CUDA's runtime over those of libcuda.so.1, for programs that nvcc has
 * compiled and that are linked to it in place of libcudart.
 *
 * Each function is the driver's with the program's current device, and the rules are the driver's. What is here beside that
 * is what the runtime alone has: the programs and variables that a compiled program registers, the last error of a thread,
 * and the numbers of its errors. Its symbols have a version of their own (cudart.map), so that a process that has loaded
 * NVIDIA's runtime as well, as every process of PyTorch has, does not take that for it.
 *
 * Source: the CUDA runtime API, and for the functions that begin with __cuda the header crt/host_runtime.h of nvcc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef struct dim3 {
    unsigned x, y, z;
} dim3;

/* cudaIpcMemHandle_t and cudaIpcEventHandle_t. */
typedef struct {
    char bytes[64];
} shared;

/* cudaError_t; those that are not here have the same numbers in the driver. */
enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INITIALIZATION = 3,
    INVALID_CONFIGURATION = 9,
    INVALID_SYMBOL = 13,
    INVALID_DIRECTION = 21,
    MISSING_CONFIGURATION = 52,
    INVALID_FUNCTION = 98,
    INVALID_DEVICE = 101,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_SUPPORTED = 801,
};

/* ---- The driver ---- */

#define DRIVER(X)                                                                                                      \
    X(cuInit, unsigned)                                                                                                \
    X(cuDriverGetVersion, int *)                                                                                       \
    X(cuGetProcAddress_v2, const char *, void **, int, uint64_t, int *)                                                \
    X(cuDeviceGetCount, int *)                                                                                         \
    X(cuDeviceGetAttribute, int *, int, int)                                                                           \
    X(cuDeviceGetName, char *, int, int)                                                                               \
    X(cuDeviceGetUuid_v2, void *, int)                                                                                 \
    X(cuDeviceTotalMem_v2, size_t *, int)                                                                              \
    X(cuDeviceCanAccessPeer, int *, int, int)                                                                          \
    X(cuDeviceGetPCIBusId, char *, int, int)                                                                           \
    X(cuDeviceGetByPCIBusId, int *, const char *)                                                                      \
    X(cuDeviceGetDefaultMemPool, void **, int)                                                                         \
    X(cuDeviceGetMemPool, void **, int)                                                                                \
    X(cuDeviceSetMemPool, int, void *)                                                                                 \
    X(cuDevicePrimaryCtxRetain, void **, int)                                                                          \
    X(cuDevicePrimaryCtxReset_v2, int)                                                                                 \
    X(cuDevicePrimaryCtxSetFlags_v2, int, unsigned)                                                                    \
    X(cuCtxGetCurrent, void **)                                                                                        \
    X(cuCtxSetCurrent, void *)                                                                                         \
    X(cuCtxGetDevice, int *)                                                                                           \
    X(cuCtxGetFlags, unsigned *)                                                                                       \
    X(cuCtxSynchronize, void)                                                                                          \
    X(cuCtxGetLimit, size_t *, int)                                                                                    \
    X(cuCtxSetLimit, int, size_t)                                                                                      \
    X(cuCtxGetCacheConfig, int *)                                                                                      \
    X(cuCtxSetCacheConfig, int)                                                                                        \
    X(cuCtxGetStreamPriorityRange, int *, int *)                                                                       \
    X(cuCtxEnablePeerAccess, void *, unsigned)                                                                         \
    X(cuCtxDisablePeerAccess, void *)                                                                                  \
    X(cuLibraryLoadData, void **, const void *, void *, void *, unsigned, void *, void *, unsigned)                    \
    X(cuLibraryUnload, void *)                                                                                         \
    X(cuLibraryGetKernel, void **, void *, const char *)                                                               \
    X(cuLibraryGetGlobal, uint64_t *, size_t *, void *, const char *)                                                  \
    X(cuKernelGetFunction, void **, void *)                                                                            \
    X(cuFuncGetAttribute, int *, int, void *)                                                                          \
    X(cuFuncSetAttribute, void *, int, int)                                                                            \
    X(cuFuncSetCacheConfig, void *, int)                                                                               \
    X(cuFuncGetName, const char **, void *)                                                                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *, void *, int, size_t, unsigned)                      \
    X(cuOccupancyAvailableDynamicSMemPerBlock, size_t *, void *, int, int)                                             \
    X(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,   \
      void **)                                                                                                         \
    X(cuLaunchCooperativeKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
      void **)                                                                                                         \
    X(cuLaunchKernelEx, const void *, void *, void **, void **)                                                        \
    X(cuLaunchHostFunc, void *, void (*)(void *), void *)                                                              \
    X(cuMemAlloc_v2, uint64_t *, size_t)                                                                               \
    X(cuMemFree_v2, uint64_t)                                                                                          \
    X(cuMemAllocPitch_v2, uint64_t *, size_t *, size_t, size_t, unsigned)                                              \
    X(cuMemAllocManaged, uint64_t *, size_t, unsigned)                                                                 \
    X(cuMemAllocAsync, uint64_t *, size_t, void *)                                                                     \
    X(cuMemAllocFromPoolAsync, uint64_t *, size_t, void *, void *)                                                     \
    X(cuMemFreeAsync, uint64_t, void *)                                                                                \
    X(cuMemPoolTrimTo, void *, size_t)                                                                                 \
    X(cuMemPoolGetAttribute, void *, int, void *)                                                                      \
    X(cuMemPoolSetAttribute, void *, int, void *)                                                                      \
    X(cuMemGetInfo_v2, size_t *, size_t *)                                                                             \
    X(cuIpcGetMemHandle, shared *, uint64_t)                                                                           \
    X(cuIpcOpenMemHandle_v2, uint64_t *, shared, unsigned)                                                             \
    X(cuIpcCloseMemHandle, uint64_t)                                                                                   \
    X(cuIpcGetEventHandle, shared *, void *)                                                                           \
    X(cuIpcOpenEventHandle, void **, shared)                                                                           \
    X(cuMemHostAlloc, void **, size_t, unsigned)                                                                       \
    X(cuMemFreeHost, void *)                                                                                           \
    X(cuMemHostRegister_v2, void *, size_t, unsigned)                                                                  \
    X(cuMemHostUnregister, void *)                                                                                     \
    X(cuMemHostGetDevicePointer_v2, uint64_t *, void *, unsigned)                                                      \
    X(cuMemHostGetFlags, unsigned *, void *)                                                                           \
    X(cuPointerGetAttribute, void *, int, uint64_t)                                                                    \
    X(cuMemcpy, uint64_t, uint64_t, size_t)                                                                            \
    X(cuMemcpyHtoD_v2, uint64_t, uint64_t, size_t)                                                                     \
    X(cuMemcpyDtoH_v2, uint64_t, uint64_t, size_t)                                                                     \
    X(cuMemcpyDtoD_v2, uint64_t, uint64_t, size_t)                                                                     \
    X(cuMemcpyPeer, uint64_t, void *, uint64_t, void *, size_t)                                                        \
    X(cuMemcpyAsync, uint64_t, uint64_t, size_t, void *)                                                               \
    X(cuMemcpyHtoDAsync_v2, uint64_t, uint64_t, size_t, void *)                                                        \
    X(cuMemcpyDtoHAsync_v2, uint64_t, uint64_t, size_t, void *)                                                        \
    X(cuMemcpyDtoDAsync_v2, uint64_t, uint64_t, size_t, void *)                                                        \
    X(cuMemcpyPeerAsync, uint64_t, void *, uint64_t, void *, size_t, void *)                                           \
    X(cuMemcpy2DUnaligned_v2, const void *)                                                                            \
    X(cuMemcpy2DAsync_v2, const void *, void *)                                                                        \
    X(cuMemsetD8_v2, uint64_t, unsigned char, size_t)                                                                  \
    X(cuMemsetD8Async, uint64_t, unsigned char, size_t, void *)                                                        \
    X(cuMemsetD2D8_v2, uint64_t, size_t, unsigned char, size_t, size_t)                                                \
    X(cuMemsetD2D8Async, uint64_t, size_t, unsigned char, size_t, size_t, void *)                                      \
    X(cuStreamCreateWithPriority, void **, unsigned, int)                                                              \
    X(cuStreamDestroy_v2, void *)                                                                                      \
    X(cuStreamQuery, void *)                                                                                           \
    X(cuStreamSynchronize, void *)                                                                                     \
    X(cuStreamWaitEvent, void *, void *, unsigned)                                                                     \
    X(cuStreamGetPriority, void *, int *)                                                                              \
    X(cuStreamGetFlags, void *, unsigned *)                                                                            \
    X(cuStreamGetId, void *, uint64_t *)                                                                               \
    X(cuStreamGetDevice, void *, int *)                                                                                \
    X(cuStreamAddCallback, void *, void (*)(void *, int, void *), void *, unsigned)                                    \
    X(cuStreamBeginCapture_v2, void *, int)                                                                            \
    X(cuStreamEndCapture, void *, void **)                                                                             \
    X(cuStreamIsCapturing, void *, int *)                                                                              \
    X(cuStreamGetCaptureInfo_v2, void *, int *, uint64_t *, void **, const void **, size_t *)                          \
    X(cuStreamGetCaptureInfo_v3, void *, int *, uint64_t *, void **, const void **, const void **, size_t *)           \
    X(cuThreadExchangeStreamCaptureMode, int *)                                                                        \
    X(cuEventCreate, void **, unsigned)                                                                                \
    X(cuEventDestroy_v2, void *)                                                                                       \
    X(cuEventRecordWithFlags, void *, void *, unsigned)                                                                \
    X(cuEventQuery, void *)                                                                                            \
    X(cuEventSynchronize, void *)                                                                                      \
    X(cuEventElapsedTime, float *, void *, void *)                                                                     \
    X(cuGraphCreate, void **, unsigned)                                                                                \
    X(cuGraphDestroy, void *)                                                                                          \
    X(cuGraphGetNodes, void *, void **, size_t *)                                                                      \
    X(cuGraphInstantiateWithFlags, void **, void *, uint64_t)                                                          \
    X(cuGraphExecDestroy, void *)                                                                                      \
    X(cuGraphLaunch, void *, void *)                                                                                   \
    X(cuGraphUpload, void *, void *)                                                                                   \
    X(cuProfilerStart, void)                                                                                           \
    X(cuProfilerStop, void)

#define X(name, ...) static int (*name)(__VA_ARGS__);
DRIVER(X)
#undef X

enum { DRIVER_VERSION = 13000 }; /* for which a program finds the driver's functions */
static int is_loaded;
/* Tells the driver where the program called, for reports; NULL when the call has ended. */
static void (*called_from)(void *);

/* The library is that in the folder above, and no other one of its name: a machine with a GPU has one as well. */
static void load_driver(void)
{
    Dl_info own;
    char path[PATH_MAX];
    if (!dladdr((void *)load_driver, &own)) return;
    const char *end = strrchr(own.dli_fname, '/');
    int length = end ? (int)(end - own.dli_fname) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s../libcuda.so.1", length, own.dli_fname) >= (int)sizeof path) return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "halstream: the CUDA runtime has no driver: %s\n", dlerror());
        return;
    }
#define X(name, ...)                                                                                                   \
    if ((*(void **)&name = dlsym(library, #name)) == NULL) {                                                           \
        fprintf(stderr, "halstream: %s has no %s; it is of another version\n", path, #name);                           \
        return;                                                                                                        \
    }
    DRIVER(X)
#undef X
    *(void **)&called_from = dlsym(library, "halstream_called_from");
    is_loaded = called_from != NULL;
}

/* Begins a call from a place in the program. cuInit is called without a lock: it may wait for Python's. */
static int initialized(void *here)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_int is;
    pthread_once(&once, load_driver);
    if (!is_loaded) return INITIALIZATION;
    called_from(here);
    if (atomic_load(&is)) return SUCCESS;
    int code = cuInit(0);
    if (code == SUCCESS) atomic_store(&is, 1);
    return code;
}

/* ---- Errors ---- */

static _Thread_local int last;

/* Ends a call. */
static int done(int code)
{
    if (is_loaded) called_from(NULL);
    if (code != SUCCESS) last = code;
    return code;
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, name, text) {code, name, text},
#include "errors.h"
#undef ERROR
};

static size_t place_of(int code)
{
    size_t i = 0;
    while (i < sizeof errors / sizeof *errors && errors[i].code != code) i++;
    return i;
}

static const char unknown[] = "unrecognized error code";

EXPORTED const char *cudaGetErrorName(int code)
{
    size_t i = place_of(code);
    return i < sizeof errors / sizeof *errors ? errors[i].name : unknown;
}

EXPORTED const char *cudaGetErrorString(int code)
{
    size_t i = place_of(code);
    return i < sizeof errors / sizeof *errors ? errors[i].text : unknown;
}

EXPORTED int cudaPeekAtLastError(void) { return last; }

EXPORTED int cudaGetLastError(void)
{
    int code = last;
    last = SUCCESS;
    return code;
}

/* ---- The current device ---- */

enum { MOST_DEVICES = 64 };

static _Atomic(void *) primary[MOST_DEVICES];

/* Of a library that has current devices of its own, as PyTorch on halstream: theirs is the program's then. */
static int (*device_elsewhere)(void);
static int (*set_device_elsewhere)(int);

EXPORTED void halstream_cudart_device(int (*get)(void), int (*set)(int))
{
    device_elsewhere = get;
    set_device_elsewhere = set;
}

static int primary_of(int device, void **context)
{
    if (device < 0 || device >= MOST_DEVICES) return INVALID_DEVICE;
    *context = atomic_load(&primary[device]);
    if (*context != NULL) return SUCCESS;
    int code = cuDevicePrimaryCtxRetain(context, device);
    if (code == SUCCESS) atomic_store(&primary[device], *context);
    return code;
}

static int set_current(int device)
{
    void *context;
    int code = primary_of(device, &context);
    return code ? code : cuCtxSetCurrent(context);
}

/* Begins a call that needs a device: the thread has the context that the program has made current, or a primary one. */
static int enter(void *here)
{
    void *now;
    int code = initialized(here);
    if (code == SUCCESS) code = cuCtxGetCurrent(&now);
    if (code != SUCCESS) return code;
    int device = device_elsewhere ? device_elsewhere() : 0;
    int is_right = now != NULL && (device_elsewhere == NULL || now == atomic_load(&primary[device]));
    return is_right ? SUCCESS : set_current(device);
}

#define ENTER(begin)                                                                                                   \
    do {                                                                                                               \
        int began = begin(__builtin_return_address(0));                                                                \
        if (began != SUCCESS) return done(began);                                                                      \
    } while (0)
/* A function that is the driver's. */
#define SAME(name, parameters, call)                                                                                   \
    EXPORTED int name parameters                                                                                       \
    {                                                                                                                  \
        ENTER(enter);                                                                                                  \
        return done(call);                                                                                             \
    }
/* One that needs no device. */
#define SAME_WITHOUT_DEVICE(name, parameters, call)                                                                    \
    EXPORTED int name parameters                                                                                       \
    {                                                                                                                  \
        ENTER(initialized);                                                                                            \
        return done(call);                                                                                             \
    }

/* The current device, also where it is lost. */
static int device_now(int *device)
{
    void *now;
    int code = cuCtxGetCurrent(&now);
    if (code != SUCCESS) return code;
    *device = device_elsewhere ? device_elsewhere() : 0;
    if (device_elsewhere != NULL || now == NULL) return SUCCESS;
    while (*device < MOST_DEVICES && now != atomic_load(&primary[*device])) ++*device;
    return *device < MOST_DEVICES ? SUCCESS : cuCtxGetDevice(device);
}

EXPORTED int cudaGetDevice(int *device)
{
    ENTER(initialized);
    return done(device ? device_now(device) : INVALID_VALUE);
}

EXPORTED int cudaSetDevice(int device)
{
    ENTER(initialized);
    return done(set_device_elsewhere ? set_device_elsewhere(device) : set_current(device));
}

EXPORTED int cudaDeviceReset(void)
{
    int device;
    ENTER(initialized);
    int code = device_now(&device);
    return done(code ? code : cuDevicePrimaryCtxReset_v2(device));
}

EXPORTED int cudaSetDeviceFlags(unsigned flags)
{
    int device;
    ENTER(initialized);
    int code = device_now(&device);
    return done(code ? code : cuDevicePrimaryCtxSetFlags_v2(device, flags));
}

static int peer(int device, int (*call)(void *, unsigned))
{
    void *context;
    int code = primary_of(device, &context);
    return code ? code : call(context, 0);
}

static int disable_peer(void *context, unsigned flags) { return (void)flags, cuCtxDisablePeerAccess(context); }

SAME_WITHOUT_DEVICE(cudaGetDeviceCount, (int *count), cuDeviceGetCount(count))
SAME_WITHOUT_DEVICE(cudaDriverGetVersion, (int *version), cuDriverGetVersion(version))
SAME_WITHOUT_DEVICE(cudaRuntimeGetVersion, (int *version), cuDriverGetVersion(version))
SAME_WITHOUT_DEVICE(cudaDeviceGetAttribute, (int *value, int which, int device), cuDeviceGetAttribute(value, which, device))
SAME_WITHOUT_DEVICE(cudaDeviceCanAccessPeer, (int *can, int device, int other), cuDeviceCanAccessPeer(can, device, other))
SAME_WITHOUT_DEVICE(cudaDeviceGetPCIBusId, (char *id, int size, int device), cuDeviceGetPCIBusId(id, size, device))
SAME_WITHOUT_DEVICE(cudaDeviceGetByPCIBusId, (int *device, const char *id), cuDeviceGetByPCIBusId(device, id))
SAME_WITHOUT_DEVICE(cudaDeviceGetDefaultMemPool, (void **pool, int device), cuDeviceGetDefaultMemPool(pool, device))
SAME_WITHOUT_DEVICE(cudaDeviceGetMemPool, (void **pool, int device), cuDeviceGetMemPool(pool, device))
SAME_WITHOUT_DEVICE(cudaDeviceSetMemPool, (int device, void *pool), cuDeviceSetMemPool(device, pool))
SAME(cudaGetDeviceFlags, (unsigned *flags), cuCtxGetFlags(flags))
SAME(cudaDeviceSynchronize, (void), cuCtxSynchronize())
SAME(cudaDeviceGetLimit, (size_t *value, int limit), cuCtxGetLimit(value, limit))
SAME(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit(limit, value))
SAME(cudaDeviceGetCacheConfig, (int *config), cuCtxGetCacheConfig(config))
SAME(cudaDeviceSetCacheConfig, (int config), cuCtxSetCacheConfig(config))
SAME(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange(least, greatest))
SAME(cudaDeviceEnablePeerAccess, (int device, unsigned flags), ((void)flags, peer(device, cuCtxEnablePeerAccess)))
SAME(cudaDeviceDisablePeerAccess, (int device), peer(device, disable_peer))
SAME(cudaProfilerStart, (void), cuProfilerStart())
SAME(cudaProfilerStop, (void), cuProfilerStop())
SAME_WITHOUT_DEVICE(cudaGetDriverEntryPointByVersion, (const char *name, void **found, unsigned version, uint64_t flags,
                    int *state), cuGetProcAddress_v2(name, found, (int)version, flags, state))
SAME_WITHOUT_DEVICE(cudaGetDriverEntryPoint, (const char *name, void **found, uint64_t flags, int *state),
                    cuGetProcAddress_v2(name, found, DRIVER_VERSION, flags, state))
SAME_WITHOUT_DEVICE(cudaThreadExchangeStreamCaptureMode, (int *mode), cuThreadExchangeStreamCaptureMode(mode))

/* Fields of cudaDeviceProp behind the identity of the device, in order, for the versions of CUDA that have them: `count`
 * numbers of `size` bytes, the attributes of the device from `attribute` on. Without an attribute they are 0. */
enum { IN_12 = 1, IN_13 = 2, IN_BOTH = 3, NO_ATTRIBUTE = 0, TOTAL_MEMORY = -1 };

static const struct field {
    uint8_t in, size, count;
    int16_t attribute;
} fields[] = {
    {IN_BOTH, 8, 1, TOTAL_MEMORY},
    {IN_BOTH, 8, 1, 8},   /* sharedMemPerBlock */
    {IN_BOTH, 4, 1, 12},  /* regsPerBlock */
    {IN_BOTH, 4, 1, 10},  /* warpSize */
    {IN_BOTH, 8, 1, 11},  /* memPitch */
    {IN_BOTH, 4, 7, 1},   /* maxThreadsPerBlock, maxThreadsDim, maxGridSize */
    {IN_12, 4, 1, 13},    /* clockRate */
    {IN_BOTH, 8, 1, 9},   /* totalConstMem */
    {IN_BOTH, 4, 2, 75},  /* major, minor */
    {IN_BOTH, 8, 1, 14},  /* textureAlignment */
    {IN_BOTH, 8, 1, 51},  /* texturePitchAlignment */
    {IN_12, 4, 1, 15},    /* deviceOverlap */
    {IN_BOTH, 4, 1, 16},  /* multiProcessorCount */
    {IN_12, 4, 1, 17},    /* kernelExecTimeoutEnabled */
    {IN_BOTH, 4, 2, 18},  /* integrated, canMapHostMemory */
    {IN_12, 4, 2, NO_ATTRIBUTE}, /* computeMode, maxTexture1DLinear */
    {IN_BOTH, 4, 39, NO_ATTRIBUTE}, /* the other textures and surfaces, of which there are none */
    {IN_BOTH, 8, 1, 30},  /* surfaceAlignment */
    {IN_BOTH, 4, 4, 31},  /* concurrentKernels, ECCEnabled, pciBusID, pciDeviceID */
    {IN_BOTH, 4, 1, 50},  /* pciDomainID */
    {IN_BOTH, 4, 1, 35},  /* tccDriver */
    {IN_BOTH, 4, 2, 40},  /* asyncEngineCount, unifiedAddressing */
    {IN_12, 4, 1, 36},    /* memoryClockRate */
    {IN_BOTH, 4, 2, 37},  /* memoryBusWidth, l2CacheSize */
    {IN_BOTH, 4, 1, 108}, /* persistingL2CacheMaxSize */
    {IN_BOTH, 4, 1, 39},  /* maxThreadsPerMultiProcessor */
    {IN_BOTH, 4, 3, 78},  /* streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported */
    {IN_BOTH, 8, 1, 81},  /* sharedMemPerMultiprocessor */
    {IN_BOTH, 4, 5, 82},  /* regsPerMultiprocessor, managedMemory, two of boards, hostNativeAtomicSupported */
    {IN_12, 4, 1, 87},    /* singleToDoublePrecisionPerfRatio */
    {IN_BOTH, 4, 4, 88},  /* pageableMemoryAccess, concurrentManagedAccess, computePreemption, host pointers */
    {IN_BOTH, 4, 1, 95},  /* cooperativeLaunch */
    {IN_12, 4, 1, 96},    /* cooperativeMultiDeviceLaunch */
    {IN_BOTH, 8, 1, 97},  /* sharedMemPerBlockOptin */
    {IN_BOTH, 4, 2, 100}, /* pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost */
    {IN_BOTH, 4, 1, 106}, /* maxBlocksPerMultiProcessor */
    {IN_BOTH, 4, 1, 109}, /* accessPolicyMaxWindowSize */
    {IN_BOTH, 8, 1, 111}, /* reservedSharedMemPerBlock */
    {IN_BOTH, 4, 1, 99},  /* hostRegisterSupported */
    {IN_BOTH, 4, 8, 112}, /* sparse arrays, registered memory that is only read, ..., memoryPoolSupportedHandleTypes */
    {IN_BOTH, 4, 1, 121}, /* deferredMappingCudaArraySupported */
    {IN_BOTH, 4, 1, 125}, /* ipcEventSupported */
    {IN_BOTH, 4, 1, 120}, /* clusterLaunch */
    {IN_BOTH, 4, 1, 129}, /* unifiedFunctionPointers */
    {IN_BOTH, 4, 63, NO_ATTRIBUTE}, /* of nodes of memory, and what is reserved */
};

static int fill(char *properties, int device, int version)
{
    enum { IDENTITY = 256 + 16 + 8 + 4, NAME = 256 };
    int code = properties == NULL ? INVALID_VALUE : cuDeviceGetName(properties, NAME, device);
    if (code == SUCCESS) code = cuDeviceGetUuid_v2(properties + NAME, device);
    if (code != SUCCESS) return code;
    memset(properties + NAME + 16, 0, IDENTITY - NAME - 16);
    size_t at = IDENTITY;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        if (!(f->in & version)) continue;
        at = (at + f->size - 1) / f->size * f->size;
        for (int k = 0; k < f->count; k++, at += f->size) {
            size_t value = 0;
            int number = 0;
            if (f->attribute == TOTAL_MEMORY) cuDeviceTotalMem_v2(&value, device);
            else if (f->attribute != NO_ATTRIBUTE && cuDeviceGetAttribute(&number, f->attribute + k, device) == SUCCESS)
                value = (size_t)number;
            memcpy(properties + at, &value, f->size);
        }
    }
    return SUCCESS;
}

/* The names of one function in the headers of CUDA 12 and of CUDA 13. */
SAME_WITHOUT_DEVICE(cudaGetDeviceProperties_v2, (char *properties, int device), fill(properties, device, IN_12))
SAME_WITHOUT_DEVICE(cudaGetDeviceProperties, (char *properties, int device), fill(properties, device, IN_13))

/* ---- What a compiled program registers ---- */

/* A fat binary, whose library of the driver is loaded at the first use of one of its names. */
typedef struct binary {
    const void *image;
    _Atomic(void *) library;
    struct registered *first;
} binary;

/* A kernel or a variable, by the address that stands for it on the host. */
typedef struct registered {
    const void *host;
    const char *name;
    binary *of;
    _Atomic(void *) kernel;
    struct registered *next_in_bucket, *next_in_binary;
} registered;

enum { BUCKETS = 1024 };
static registered *buckets[BUCKETS];
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER; /* guards the buckets; no driver's function is called with it */

static registered **bucket_of(const void *host) { return &buckets[((uintptr_t)host >> 4) % BUCKETS]; }

static registered *find(const void *host)
{
    pthread_mutex_lock(&registry);
    registered *r = *bucket_of(host);
    while (r != NULL && r->host != host) r = r->next_in_bucket;
    pthread_mutex_unlock(&registry);
    return r;
}

static void insert(void **handle, const void *host, const char *name)
{
    registered *r = calloc(1, sizeof *r);
    if (r == NULL) return; /* its use says that there is no such function */
    r->host = host;
    r->name = name;
    r->of = (binary *)handle;
    pthread_mutex_lock(&registry);
    r->next_in_bucket = *bucket_of(host);
    *bucket_of(host) = r;
    r->next_in_binary = r->of->first;
    r->of->first = r;
    pthread_mutex_unlock(&registry);
}

static int library_of(binary *b, void **library)
{
    *library = atomic_load(&b->library);
    if (*library != NULL) return SUCCESS;
    void *none = NULL;
    int code = cuLibraryLoadData(library, b->image, NULL, NULL, 0, NULL, NULL, 0);
    if (code != SUCCESS || atomic_compare_exchange_strong(&b->library, &none, *library)) return code;
    cuLibraryUnload(*library); /* another thread was first */
    *library = none;
    return SUCCESS;
}

/* The driver's kernel of a function of the program. What is registered nowhere may be one itself. */
static int kernel_of(const void *function, void **kernel)
{
    registered *r = find(function);
    void *library;
    *kernel = r ? atomic_load(&r->kernel) : (void *)function;
    if (*kernel != NULL) return SUCCESS;
    if (r == NULL) return INVALID_FUNCTION;
    int code = library_of(r->of, &library);
    if (code == SUCCESS) code = cuLibraryGetKernel(kernel, library, r->name);
    if (code == SUCCESS) atomic_store(&r->kernel, *kernel);
    return code == NOT_FOUND ? INVALID_FUNCTION : code;
}

static int variable_of(const void *symbol, uint64_t *address, size_t *size)
{
    registered *r = find(symbol);
    void *library;
    if (r == NULL) return INVALID_SYMBOL;
    int code = library_of(r->of, &library);
    if (code == SUCCESS) code = cuLibraryGetGlobal(address, size, library, r->name);
    return code == NOT_FOUND ? INVALID_SYMBOL : code;
}

EXPORTED void **__cudaRegisterFatBinary(void *image)
{
    binary *b = calloc(1, sizeof *b);
    if (b == NULL) abort(); /* a program begins, and nobody looks at a result */
    b->image = image;
    return (void **)b;
}

EXPORTED void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

EXPORTED void __cudaUnregisterFatBinary(void **handle)
{
    binary *b = (binary *)handle;
    pthread_mutex_lock(&registry);
    while (b->first != NULL) {
        registered *r = b->first, **link = bucket_of(r->host);
        while (*link != r) link = &(*link)->next_in_bucket;
        *link = r->next_in_bucket;
        b->first = r->next_in_binary;
        free(r);
    }
    pthread_mutex_unlock(&registry);
    void *library = atomic_load(&b->library);
    if (library != NULL) cuLibraryUnload(library);
    free(b);
}

EXPORTED void __cudaRegisterFunction(void **handle, const void *host, char *device, const char *name, int limit, void *tid,
                                     void *bid, void *block, void *grid, int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    insert(handle, host, name);
}

EXPORTED void __cudaRegisterVar(void **handle, const void *host, char *device, const char *name, int external, size_t size,
                                int constant, int global)
{
    (void)device, (void)external, (void)size, (void)constant, (void)global;
    insert(handle, host, name);
}

EXPORTED void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t size,
                                       int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)external, (void)size, (void)constant, (void)global;
    fprintf(stderr, "halstream: the variable %s is __managed__, which is not provided; make it __device__ and copy it with "
                    "cudaMemcpyToSymbol, or use cudaMallocManaged\n", name);
}

EXPORTED char __cudaInitModule(void **handle) { return (void)handle, 0; }

/* What <<<...>>> says, for the call of the kernel's stub that follows. Arguments of a launch may launch themselves. */
enum { DEPTH = 64 };
static _Thread_local struct configuration {
    dim3 grid, block;
    size_t shared;
    void *stream;
    void *here; /* in the program */
} configurations[DEPTH];
static _Thread_local int depth;
static _Thread_local void *launched_from; /* of the configuration that was popped last, until its launch */

EXPORTED unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    if (depth == DEPTH) return (unsigned)done(MISSING_CONFIGURATION);
    configurations[depth++] = (struct configuration){grid, block, shared, stream, __builtin_return_address(0)};
    return SUCCESS;
}

EXPORTED int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (depth == 0) return done(MISSING_CONFIGURATION);
    const struct configuration *c = &configurations[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *(void **)stream = c->stream;
    launched_from = c->here;
    return SUCCESS;
}

/* ---- Kernels ---- */

/* The driver calls a wrong number of blocks or threads an invalid value, as it does too much shared memory. */
static int launched(int code, void *kernel, size_t shared)
{
    enum { MOST_DYNAMIC = 8 };
    int most;
    if (code == INVALID_HANDLE) return INVALID_FUNCTION;
    if (code != INVALID_VALUE || cuFuncGetAttribute(&most, MOST_DYNAMIC, kernel) != SUCCESS) return code;
    return shared <= (size_t)most ? INVALID_CONFIGURATION : code;
}

/* Between the program and a launch by <<<...>>> is the kernel's stub. */
static void skip_stub(void)
{
    if (launched_from != NULL) called_from(launched_from);
    launched_from = NULL;
}

static int launch(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream)
{
    int code = cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, arguments,
                              NULL);
    return launched(code, kernel, shared);
}

EXPORTED int cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream)
{
    void *kernel;
    ENTER(enter);
    skip_stub();
    int code = kernel_of(function, &kernel);
    return done(code ? code : launch(kernel, grid, block, arguments, shared, stream));
}

EXPORTED int cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                         void *stream)
{
    void *kernel;
    ENTER(enter);
    int code = kernel_of(function, &kernel);
    if (code == SUCCESS)
        code = launched(cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                  (unsigned)shared, stream, arguments), kernel, shared);
    return done(code);
}

/* cudaLaunchConfig_t, and the driver's structure that differs in the size of one field. */
typedef struct runtime_config {
    dim3 grid, block;
    size_t shared;
    void *stream, *attributes;
    unsigned count;
} runtime_config;

EXPORTED int cudaLaunchKernelExC(const runtime_config *c, const void *function, void **arguments)
{
    void *kernel;
    ENTER(enter);
    int code = c == NULL ? INVALID_VALUE : kernel_of(function, &kernel);
    if (code != SUCCESS) return done(code);
    struct {
        dim3 grid, block;
        unsigned shared;
        void *stream, *attributes;
        unsigned count;
    } config = {c->grid, c->block, (unsigned)c->shared, c->stream, c->attributes, c->count};
    return done(launched(cuLaunchKernelEx(&config, kernel, arguments, NULL), kernel, c->shared));
}

EXPORTED int __cudaGetKernel(void **kernel, const void *function)
{
    ENTER(initialized);
    return done(kernel_of(function, kernel));
}
EXPORTED int cudaGetKernel(void **kernel, const void *function)
{
    ENTER(initialized);
    return done(kernel_of(function, kernel));
}

/* A kernel that __cudaGetKernel has not found is NULL. */
EXPORTED int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream)
{
    if (kernel == NULL) return done(last ? last : INVALID_FUNCTION);
    ENTER(enter);
    skip_stub();
    return done(launch(kernel, grid, block, arguments, shared, stream));
}

EXPORTED int cudaGetFuncBySymbol(void **driver_function, const void *function)
{
    void *kernel;
    ENTER(enter);
    int code = kernel_of(function, &kernel);
    return done(code ? code : cuKernelGetFunction(driver_function, kernel));
}

/* The first fields of cudaFuncAttributes are the attributes 1 to 3, and 0 and 4 to 9; those behind them are of clusters. */
EXPORTED int cudaFuncGetAttributes(char *into, const void *function)
{
    enum { SIZE = 144, SIZES = 3, NUMBERS = 7 };
    static const int numbers[NUMBERS] = {0, 4, 5, 6, 7, 8, 9};
    void *kernel;
    int value = 0;
    ENTER(enter);
    int code = into == NULL ? INVALID_VALUE : kernel_of(function, &kernel);
    if (code == SUCCESS) memset(into, 0, SIZE);
    for (int i = 0; i < SIZES && code == SUCCESS; i++) {
        code = cuFuncGetAttribute(&value, i + 1, kernel);
        memcpy(into + 8 * i, &(size_t){(size_t)value}, 8);
    }
    for (int i = 0; i < NUMBERS && code == SUCCESS; i++) {
        code = cuFuncGetAttribute(&value, numbers[i], kernel);
        memcpy(into + 8 * SIZES + 4 * i, &value, 4);
    }
    return done(code == INVALID_HANDLE ? INVALID_FUNCTION : code);
}

/* Functions that take a kernel where the driver's take its own. */
#define OF_KERNEL(name, parameters, call)                                                                              \
    EXPORTED int name parameters                                                                                       \
    {                                                                                                                  \
        void *kernel;                                                                                                  \
        ENTER(enter);                                                                                                  \
        int code = kernel_of(function, &kernel);                                                                       \
        if (code == SUCCESS) code = call;                                                                              \
        return done(code == INVALID_HANDLE ? INVALID_FUNCTION : code);                                                 \
    }
OF_KERNEL(cudaFuncSetAttribute, (const void *function, int which, int value), cuFuncSetAttribute(kernel, which, value))
OF_KERNEL(cudaFuncSetCacheConfig, (const void *function, int config), cuFuncSetCacheConfig(kernel, config))
OF_KERNEL(cudaFuncGetName, (const char **name, const void *function), cuFuncGetName(name, kernel))
OF_KERNEL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *function, int size, size_t shared),
          cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, size, shared, 0))
OF_KERNEL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int *blocks, const void *function, int size,
          size_t shared, unsigned flags),
          cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, size, shared, flags))
OF_KERNEL(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t *shared, const void *function, int blocks, int size),
          cuOccupancyAvailableDynamicSMemPerBlock(shared, kernel, blocks, size))

/* ---- Memory ---- */

/* No bytes are NULL. */
#define ALLOCATION(name, parameters, result, size, call)                                                               \
    EXPORTED int name parameters                                                                                       \
    {                                                                                                                  \
        ENTER(enter);                                                                                                  \
        if (result == NULL) return done(INVALID_VALUE);                                                                \
        *result = 0;                                                                                                   \
        return done((size) == 0 ? SUCCESS : (call));                                                                  \
    }
ALLOCATION(cudaMalloc, (uint64_t *p, size_t size), p, size, cuMemAlloc_v2(p, size))
ALLOCATION(cudaMallocManaged, (uint64_t *p, size_t size, unsigned flags), p, size, cuMemAllocManaged(p, size, flags))
ALLOCATION(cudaMallocAsync, (uint64_t *p, size_t size, void *stream), p, size, cuMemAllocAsync(p, size, stream))
ALLOCATION(cudaMallocFromPoolAsync, (uint64_t *p, size_t size, void *pool, void *stream), p, size,
           cuMemAllocFromPoolAsync(p, size, pool, stream))
ALLOCATION(cudaMallocPitch, (uint64_t *p, size_t *pitch, size_t width, size_t height), p, width *height,
           cuMemAllocPitch_v2(p, pitch, width, height, 4))
ALLOCATION(cudaHostAlloc, (void **p, size_t size, unsigned flags), p, size, cuMemHostAlloc(p, size, flags))
ALLOCATION(cudaMallocHost, (void **p, size_t size), p, size, cuMemHostAlloc(p, size, 0))
SAME(cudaFree, (uint64_t p), p ? cuMemFree_v2(p) : SUCCESS)
SAME(cudaFreeHost, (void *p), p ? cuMemFreeHost(p) : SUCCESS)
SAME(cudaFreeAsync, (uint64_t p, void *stream), p ? cuMemFreeAsync(p, stream) : SUCCESS)
SAME(cudaIpcGetMemHandle, (shared *handle, uint64_t p), cuIpcGetMemHandle(handle, p))
SAME(cudaIpcOpenMemHandle, (uint64_t *p, shared handle, unsigned flags), cuIpcOpenMemHandle_v2(p, handle, flags))
SAME(cudaIpcCloseMemHandle, (uint64_t p), cuIpcCloseMemHandle(p))
SAME(cudaMemGetInfo, (size_t *free, size_t *total), cuMemGetInfo_v2(free, total))
SAME(cudaHostRegister, (void *p, size_t size, unsigned flags), cuMemHostRegister_v2(p, size, flags))
SAME(cudaHostUnregister, (void *p), cuMemHostUnregister(p))
SAME(cudaHostGetDevicePointer, (uint64_t *device, void *p, unsigned flags), cuMemHostGetDevicePointer_v2(device, p, flags))
SAME(cudaHostGetFlags, (unsigned *flags, void *p), cuMemHostGetFlags(flags, p))
SAME(cudaMemPoolTrimTo, (void *pool, size_t keep), cuMemPoolTrimTo(pool, keep))
SAME(cudaMemPoolGetAttribute, (void *pool, int which, void *value), cuMemPoolGetAttribute(pool, which, value))
SAME(cudaMemPoolSetAttribute, (void *pool, int which, void *value), cuMemPoolSetAttribute(pool, which, value))

/* cudaPointerAttributes; CUDA 13 has reserved fields behind these. */
typedef struct pointer_attributes {
    int type, device;
    uint64_t on_device, on_host;
} pointer_attributes;

EXPORTED int cudaPointerGetAttributes(pointer_attributes *into, uint64_t p)
{
    enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, ORDINAL = 9, MANAGED = 3, NO_DEVICE = -2 };
    int managed = 0;
    ENTER(enter);
    if (into == NULL) return done(INVALID_VALUE);
    *into = (pointer_attributes){0, NO_DEVICE, 0, p};
    if (cuPointerGetAttribute(&into->type, MEMORY_TYPE, p) != SUCCESS) return done(SUCCESS); /* memory of others */
    if (cuPointerGetAttribute(&managed, IS_MANAGED, p) == SUCCESS && managed) into->type = MANAGED;
    if (cuPointerGetAttribute(&into->on_device, DEVICE_POINTER, p) != SUCCESS) into->on_device = 0;
    if (cuPointerGetAttribute(&into->on_host, HOST_POINTER, p) != SUCCESS) into->on_host = 0;
    return done(cuPointerGetAttribute(&into->device, ORDINAL, p));
}

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

static int copy(uint64_t to, uint64_t from, size_t size, int kind)
{
    switch (kind) {
    case HOST_TO_DEVICE: return cuMemcpyHtoD_v2(to, from, size);
    case DEVICE_TO_HOST: return cuMemcpyDtoH_v2(to, from, size);
    case DEVICE_TO_DEVICE: return cuMemcpyDtoD_v2(to, from, size);
    case HOST_TO_HOST:
    case BY_ADDRESS: return cuMemcpy(to, from, size);
    }
    return INVALID_DIRECTION;
}

static int copy_async(uint64_t to, uint64_t from, size_t size, int kind, void *stream)
{
    switch (kind) {
    case HOST_TO_DEVICE: return cuMemcpyHtoDAsync_v2(to, from, size, stream);
    case DEVICE_TO_HOST: return cuMemcpyDtoHAsync_v2(to, from, size, stream);
    case DEVICE_TO_DEVICE: return cuMemcpyDtoDAsync_v2(to, from, size, stream);
    case HOST_TO_HOST:
    case BY_ADDRESS: return cuMemcpyAsync(to, from, size, stream);
    }
    return INVALID_DIRECTION;
}

SAME(cudaMemcpy, (uint64_t to, uint64_t from, size_t size, int kind), copy(to, from, size, kind))
SAME(cudaMemcpyAsync, (uint64_t to, uint64_t from, size_t size, int kind, void *stream),
     copy_async(to, from, size, kind, stream))

/* CUDA_MEMCPY2D. */
typedef struct side {
    size_t x, y;
    int type;
    uint64_t host, device;
    void *array;
    size_t pitch;
} side;
typedef struct rectangle {
    side from, to;
    size_t width, height;
} rectangle;

static rectangle rectangle_of(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width, size_t height,
                              int kind)
{
    enum { HOST = 1, DEVICE = 2, UNIFIED = 4 };
    static const struct {
        int to, from;
    } types[] = {{HOST, HOST}, {DEVICE, HOST}, {HOST, DEVICE}, {DEVICE, DEVICE}, {UNIFIED, UNIFIED}};
    return (rectangle){{0, 0, types[kind].from, from, from, NULL, from_pitch}, {0, 0, types[kind].to, to, to, NULL, to_pitch},
                       width, height};
}

EXPORTED int cudaMemcpy2D(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width, size_t height,
                          int kind)
{
    ENTER(enter);
    if (kind < HOST_TO_HOST || kind > BY_ADDRESS) return done(INVALID_DIRECTION);
    rectangle r = rectangle_of(to, to_pitch, from, from_pitch, width, height, kind);
    return done(cuMemcpy2DUnaligned_v2(&r));
}

EXPORTED int cudaMemcpy2DAsync(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width, size_t height,
                               int kind, void *stream)
{
    ENTER(enter);
    if (kind < HOST_TO_HOST || kind > BY_ADDRESS) return done(INVALID_DIRECTION);
    rectangle r = rectangle_of(to, to_pitch, from, from_pitch, width, height, kind);
    return done(cuMemcpy2DAsync_v2(&r, stream));
}

static int copy_to_peer(uint64_t to, int device, uint64_t from, int other, size_t size, void *stream, int waits)
{
    void *context, *others;
    int code = primary_of(device, &context);
    if (code == SUCCESS) code = primary_of(other, &others);
    if (code != SUCCESS) return code;
    return waits ? cuMemcpyPeer(to, context, from, others, size)
                 : cuMemcpyPeerAsync(to, context, from, others, size, stream);
}

SAME(cudaMemcpyPeer, (uint64_t to, int device, uint64_t from, int other, size_t size),
     copy_to_peer(to, device, from, other, size, NULL, 1))
SAME(cudaMemcpyPeerAsync, (uint64_t to, int device, uint64_t from, int other, size_t size, void *stream),
     copy_to_peer(to, device, from, other, size, stream, 0))

SAME(cudaMemset, (uint64_t p, int value, size_t size), cuMemsetD8_v2(p, (unsigned char)value, size))
SAME(cudaMemsetAsync, (uint64_t p, int value, size_t size, void *stream),
     cuMemsetD8Async(p, (unsigned char)value, size, stream))
SAME(cudaMemset2D, (uint64_t p, size_t pitch, int value, size_t width, size_t height),
     cuMemsetD2D8_v2(p, pitch, (unsigned char)value, width, height))
SAME(cudaMemset2DAsync, (uint64_t p, size_t pitch, int value, size_t width, size_t height, void *stream),
     cuMemsetD2D8Async(p, pitch, (unsigned char)value, width, height, stream))

/* The bytes of a variable from an offset on. */
static int part_of(const void *symbol, size_t offset, size_t size, uint64_t *address)
{
    size_t whole;
    int code = variable_of(symbol, address, &whole);
    if (code != SUCCESS) return code;
    *address += offset;
    return offset <= whole && size <= whole - offset ? SUCCESS : INVALID_VALUE;
}

#define OF_VARIABLE(name, parameters, call)                                                                            \
    EXPORTED int name parameters                                                                                       \
    {                                                                                                                  \
        uint64_t address;                                                                                              \
        ENTER(enter);                                                                                                  \
        int code = part_of(symbol, offset, size, &address);                                                            \
        return done(code ? code : call);                                                                               \
    }
OF_VARIABLE(cudaMemcpyToSymbol, (const void *symbol, uint64_t from, size_t size, size_t offset, int kind),
            copy(address, from, size, kind))
OF_VARIABLE(cudaMemcpyFromSymbol, (uint64_t to, const void *symbol, size_t size, size_t offset, int kind),
            copy(to, address, size, kind))
OF_VARIABLE(cudaMemcpyToSymbolAsync, (const void *symbol, uint64_t from, size_t size, size_t offset, int kind, void *stream),
            copy_async(address, from, size, kind, stream))
OF_VARIABLE(cudaMemcpyFromSymbolAsync, (uint64_t to, const void *symbol, size_t size, size_t offset, int kind, void *stream),
            copy_async(to, address, size, kind, stream))
SAME(cudaGetSymbolAddress, (uint64_t *address, const void *symbol), variable_of(symbol, address, &(size_t){0}))
SAME(cudaGetSymbolSize, (size_t *size, const void *symbol), variable_of(symbol, &(uint64_t){0}, size))

/* ---- Streams, events, graphs ---- */

SAME(cudaStreamCreate, (void **stream), cuStreamCreateWithPriority(stream, 0, 0))
SAME(cudaStreamCreateWithFlags, (void **stream, unsigned flags), cuStreamCreateWithPriority(stream, flags, 0))
SAME(cudaStreamCreateWithPriority, (void **stream, unsigned flags, int priority),
     cuStreamCreateWithPriority(stream, flags, priority))
SAME(cudaStreamDestroy, (void *stream), cuStreamDestroy_v2(stream))
SAME(cudaStreamQuery, (void *stream), cuStreamQuery(stream))
SAME(cudaStreamSynchronize, (void *stream), cuStreamSynchronize(stream))
SAME(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags), cuStreamWaitEvent(stream, event, flags))
SAME(cudaStreamGetPriority, (void *stream, int *priority), cuStreamGetPriority(stream, priority))
SAME(cudaStreamGetFlags, (void *stream, unsigned *flags), cuStreamGetFlags(stream, flags))
SAME(cudaStreamGetId, (void *stream, uint64_t *id), cuStreamGetId(stream, id))
SAME(cudaStreamGetDevice, (void *stream, int *device), cuStreamGetDevice(stream, device))
SAME(cudaStreamAddCallback, (void *stream, void (*callback)(void *, int, void *), void *argument, unsigned flags),
     cuStreamAddCallback(stream, callback, argument, flags))
SAME(cudaLaunchHostFunc, (void *stream, void (*function)(void *), void *argument),
     cuLaunchHostFunc(stream, function, argument))
SAME(cudaStreamBeginCapture, (void *stream, int mode), cuStreamBeginCapture_v2(stream, mode))
SAME(cudaStreamEndCapture, (void *stream, void **graph), cuStreamEndCapture(stream, graph))
SAME(cudaStreamIsCapturing, (void *stream, int *state), cuStreamIsCapturing(stream, state))
/* The names of this function in the headers of CUDA 12 and of CUDA 13, with other parameters. */
SAME(cudaStreamGetCaptureInfo_v2, (void *stream, int *state, uint64_t *id, void **graph, const void **nodes, size_t *count),
     cuStreamGetCaptureInfo_v2(stream, state, id, graph, nodes, count))
SAME(cudaStreamGetCaptureInfo, (void *stream, int *state, uint64_t *id, void **graph, const void **nodes,
     const void **edges, size_t *count), cuStreamGetCaptureInfo_v3(stream, state, id, graph, nodes, edges, count))
SAME(cudaEventCreate, (void **event), cuEventCreate(event, 0))
SAME(cudaEventCreateWithFlags, (void **event, unsigned flags), cuEventCreate(event, flags))
SAME(cudaEventDestroy, (void *event), cuEventDestroy_v2(event))
SAME(cudaEventRecord, (void *event, void *stream), cuEventRecordWithFlags(event, stream, 0))
SAME(cudaEventRecordWithFlags, (void *event, void *stream, unsigned flags), cuEventRecordWithFlags(event, stream, flags))
SAME(cudaEventQuery, (void *event), cuEventQuery(event))
SAME(cudaEventSynchronize, (void *event), cuEventSynchronize(event))
SAME(cudaEventElapsedTime, (float *time, void *start, void *end), cuEventElapsedTime(time, start, end))
SAME(cudaIpcGetEventHandle, (shared *handle, void *event), cuIpcGetEventHandle(handle, event))
SAME(cudaIpcOpenEventHandle, (void **event, shared handle), cuIpcOpenEventHandle(event, handle))
SAME(cudaGraphCreate, (void **graph, unsigned flags), cuGraphCreate(graph, flags))
SAME(cudaGraphDestroy, (void *graph), cuGraphDestroy(graph))
SAME(cudaGraphGetNodes, (void *graph, void **nodes, size_t *count), cuGraphGetNodes(graph, nodes, count))
SAME(cudaGraphInstantiate, (void **made, void *graph, uint64_t flags), cuGraphInstantiateWithFlags(made, graph, flags))
SAME(cudaGraphInstantiateWithFlags, (void **made, void *graph, uint64_t flags),
     cuGraphInstantiateWithFlags(made, graph, flags))
SAME(cudaGraphExecDestroy, (void *graph), cuGraphExecDestroy(graph))
SAME(cudaGraphLaunch, (void *graph, void *stream), cuGraphLaunch(graph, stream))
SAME(cudaGraphUpload, (void *graph, void *stream), cuGraphUpload(graph, stream))

/* ---- What is not provided: without these names a program would take NVIDIA's, where that is loaded ---- */

static int refuse(const char *name)
{
    fprintf(stderr, "halstream: %s is not provided by its CUDA runtime\n", name);
    return done(NOT_SUPPORTED);
}

#define REFUSED(name)                                                                                                  \
    EXPORTED int name(void) { return refuse(#name); }
#include "cudart_refused.h"
