/* The library itself: its beginning and its end, its functions by name, and the names of codes. */
#include "memory.h"

#include <sys/mman.h>
#include <time.h>

#define LONGEST_MS 2000

/* ---- The end of the process: pinned memory is unmapped while threads of the program may still run ---- */

/* Called at exit, after what the program has registered since cuInit. */
static void leave(void) {
    atomic_store(&ended, true);
    if (!state.settings.unmap_at_exit || atomic_load(&forked))
        return;
    pthread_mutex_lock(&state.lock);
    for (size_t i = 0; i < contexts.count; i++)
        if (contexts.items[i] != NULL)
            poison(contexts.items[i], DEINITIALIZED); /* which ends the waits of streams */
    pthread_mutex_unlock(&state.lock);
    for (int i = 0; i < LONGEST_MS && anything_executes(); i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (anything_executes())
        return; /* a host function of the program, for instance */
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->where == PINNED_MEMORY)
            (void)mprotect((void *)(uintptr_t)blocks[i]->address, (blocks[i]->size + 4095) & ~4095ull, PROT_NONE);
    /* To take a device down takes a while, in which the threads of the program run on. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

static void watch_exit(void) {
    static bool watched;
    if (!watched)
        watched = atexit(leave) == 0;
}

/* ---- Its beginning ---- */

API cuInit(unsigned int flags) {
    BEGIN(cuInit, 0);
    if (flags != 0)
        return end(INVALID_VALUE);
    if (state.initialized)
        return end(SUCCESS);
    TRY(open_devices());
    if (device_count == 0)
        return end(NO_DEVICE);
    state.initialized = true;
    watch_exit();
    return end(SUCCESS);
}

API cuDriverGetVersion(int *version) {
    BEGIN(cuDriverGetVersion, 0);
    if (version == NULL)
        return end(INVALID_VALUE);
    *version = state.settings.version;
    return end(SUCCESS);
}

/* Tables of functions that are in no header. Clients of the vendor that need one do not run here;
 * others ask, and do without. */
API cuGetExportTable(const void **table, const unsigned char *id) {
    BEGIN(cuGetExportTable, 0);
    if (table == NULL || id == NULL)
        return end(INVALID_VALUE);
    *table = NULL;
    return end(NOT_FOUND);
}

/* There is no profiler, and nothing to turn on. */
API cuProfilerStart(void) {
    BEGIN(cuProfilerStart, 0);
    struct context *context;
    return end(current_context(&context));
}

API cuProfilerStop(void) {
    BEGIN(cuProfilerStop, 0);
    struct context *context;
    return end(current_context(&context));
}

/* ---- Functions by name ---- */

/* Where each function is. They have types of their own, so they are declared as data of their names. */
#define FUNCTION(name, base, version) extern const char at_##name[] __asm__(#name);
#include "functions.h"
#undef FUNCTION

static const struct { const char *base; int version; void *address; } functions[] = {
#define FUNCTION(name, base, version) {base, version, (void *)(uintptr_t)at_##name},
#include "functions.h"
#undef FUNCTION
};

/* The status is 2 for a name whose version is newer than requested, and 1 for one that
 * the driver lacks; the call succeeds in any case. */
API cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status) {
    BEGIN(cuGetProcAddress_v2, 0);
    if (symbol == NULL || found == NULL || flags > 2)
        return end(INVALID_VALUE);
    int best = 0, result = 1;
    *found = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].base, symbol) != 0 || functions[i].version > state.settings.version)
            continue;
        if (functions[i].version > version) {
            result = result == 1 ? 2 : result;
        } else if (functions[i].version > best) {
            best = functions[i].version;
            *found = functions[i].address;
            result = 0;
        }
    }
    if (status != NULL)
        *status = result;
    return end(SUCCESS);
}

/* ---- Names of codes ---- */

static const struct { int code; const char *name, *text; } codes[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device is busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no device is there"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is for this device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is too new for the driver"},
    {226, "CUDA_ERROR_CONTAINED", "an error that the device has contained"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the object is in another state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch took too long"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "an assertion on the device failed"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory is already registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "wrong address space"},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in a cooperative launch"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory not given back"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and library do not match"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS client was ended"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error has made the capture invalid"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "the wait would make one capture of two"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin on this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "work of another stream was not joined to the origin"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the event was recorded outside the capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the call depends on a capturing stream by the legacy stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "the event was last recorded in a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread began the capture"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph differs in more than what its nodes do"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "an external device failed"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "clusters of so many blocks are not supported"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult text_of(CUresult code, bool name, const char **text) {
    if (text == NULL)
        return INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            *text = name ? codes[i].name : codes[i].text;
    return *text == NULL ? INVALID_VALUE : SUCCESS;
}

API cuGetErrorName(CUresult code, const char **name) {
    BEGIN(cuGetErrorName, 0);
    return end(text_of(code, true, name));
}

API cuGetErrorString(CUresult code, const char **text) {
    BEGIN(cuGetErrorString, 0);
    return end(text_of(code, false, text));
}
