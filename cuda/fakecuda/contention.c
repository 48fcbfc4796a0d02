/* What calls of a driver wait for besides their own work: the lock of a context, and an idle
 * device. */
#include "contention.h"

#include <stdio.h>

/* ---- Calls that a test stops ---- */

static bool stopping[FN_COUNT];
static pthread_cond_t stops_changed = PTHREAD_COND_INITIALIZER;
static unsigned long long stopped;

/* Makes calls of a function stop as if another one had a lock that they need, or go on. */
int make_stopping(const char *name, bool on) {
    int function = number_of(name);
    if (function < 0)
        return -1;
    stopping[function] = on;
    pthread_cond_broadcast(&stops_changed);
    return 0;
}

void stop_calls_no_more(void) {
    memset(stopping, 0, sizeof stopping);
    pthread_cond_broadcast(&stops_changed);
}

/* How many calls are stopped now. */
unsigned long long stopped_calls(void) { return stopped; }

static void stop_here(int function) {
    stopped++;
    while (stopping[function])
        pthread_cond_wait(&stops_changed, &state.lock);
    stopped--;
}

/* ---- Calls that wait for the device ---- */

static atomic_bool draining[FN_COUNT];
static bool first_launches_drain;

/* Functions that concern no context, or only which one is current on the thread. */
static bool needs_no_context(int function) {
    switch (function) {
    case FN_cuInit: case FN_cuDriverGetVersion: case FN_cuGetProcAddress_v2: case FN_cuGetErrorName:
    case FN_cuGetErrorString: case FN_cuGetExportTable: case FN_cuDeviceGetCount: case FN_cuDeviceGet: case FN_cuDeviceGetName:
    case FN_cuDeviceGetAttribute: case FN_cuDeviceGetUuid: case FN_cuDeviceGetUuid_v2:
    case FN_cuDeviceTotalMem_v2: case FN_cuDeviceGetPCIBusId: case FN_cuDeviceCanAccessPeer:
    case FN_cuDevicePrimaryCtxRetain: case FN_cuDevicePrimaryCtxRelease_v2: case FN_cuDevicePrimaryCtxGetState:
    case FN_cuCtxSetCurrent: case FN_cuCtxGetCurrent: case FN_cuCtxPushCurrent_v2: case FN_cuCtxPopCurrent_v2:
    case FN_cuCtxGetDevice: case FN_cuCtxCreate_v2: case FN_cuCtxCreate_v4: case FN_cuCtxDestroy_v2:
    case FN_cuLibraryLoadData: case FN_cuLibraryGetKernel: case FN_cuLibraryGetKernelCount:
    case FN_cuLibraryEnumerateKernels: case FN_cuKernelGetLibrary: case FN_cuKernelGetName:
    case FN_cuKernelGetParamInfo: case FN_cuKernelGetAttribute: case FN_cuKernelSetAttribute:
    case FN_cuKernelSetCacheConfig:
    case FN_cuThreadExchangeStreamCaptureMode: case FN_cuModuleGetLoadingMode:
        return true;
    }
    return false;
}

/* Functions that change what a context has mapped: they hold its lock, and wait until
 * the device is idle. */
static bool writes_context(int function) {
    switch (function) {
    case FN_cuMemFree_v2: case FN_cuMemFreeHost: case FN_cuMemHostUnregister: case FN_cuModuleLoadData:
    case FN_cuModuleLoadDataEx: case FN_cuFuncLoad: case FN_cuLibraryUnload: case FN_cuLibraryGetModule:
    case FN_cuKernelGetFunction:
        return true;
    }
    return false;
}

/* Takes the lock of a context for the calling thread until `end`. */
static void lock_context(struct context *context) {
    struct thread *thread = this_thread();
    while (context->locked_by != NULL && context->locked_by != thread)
        pthread_cond_wait(&context->unlocked, &state.lock);
    if (context->locked_by == thread)
        return;
    context->locked_by = thread;
    context->refs++;
    thread->locked = context;
}

/* At the end of each call. */
void leave_context(void) {
    struct thread *thread = this_thread();
    struct context *context = thread->locked;
    if (context == NULL)
        return;
    thread->locked = NULL;
    context->locked_by = NULL;
    pthread_cond_broadcast(&context->unlocked);
    context_unref(context);
}

/* Waits for the context's lock, and for its device where the function does that. */
void enter_context(int function, uint64_t handle) {
    if (stopping[function])
        stop_here(function);
    struct context *context = needs_no_context(function) ? NULL : rules.context_of(handle);
    if (context == NULL)
        return;
    context->refs++;
    while (context->locked_by != NULL && context->locked_by != this_thread())
        pthread_cond_wait(&context->unlocked, &state.lock);
    if (state.settings.context_lock && writes_context(function)) {
        lock_context(context);
        synchronize_context(context);
    } else if (atomic_load(&draining[function]) && function != FN_cuMemPoolTrimTo) {
        synchronize_context(context);
    }
    context_unref(context);
}

/* A pool waits only when it has memory to give back. */
void enter_trim(int device) {
    struct context *context = devices[device].context;
    if (context == NULL || !atomic_load(&draining[FN_cuMemPoolTrimTo]))
        return;
    context->refs++;
    synchronize_context(context);
    context_unref(context);
}

/* A kernel that is loaded at its first launch is loaded as a module is. */
void enter_first_launch(struct context *context) {
    if (!first_launches_drain)
        return;
    context->refs++;
    if (state.settings.context_lock)
        lock_context(context);
    synchronize_context(context);
    context_unref(context);
}

/* Makes a function wait for the device, or the first launches ("first_launch"). */
int make_draining(const char *name, bool on) {
    int function = number_of(name);
    if (strcmp(name, "first_launch") == 0)
        first_launches_drain = on;
    else if (function >= 0)
        atomic_store(&draining[function], on);
    return function >= 0 || strcmp(name, "first_launch") == 0 ? 0 : -1;
}

/* Reads a list like "cuMemHostAlloc,first_launch". */
void read_draining(const char *otherwise) {
    const char *text = getenv("FAKECUDA_DRAIN");
    first_launches_drain = false;
    for (int i = 0; i < FN_COUNT; i++)
        atomic_store(&draining[i], false);
    char *list = strdup(text != NULL ? text : otherwise), *rest = list, *name;
    while (list != NULL && (name = strsep(&rest, ",")) != NULL) {
        if (*name && make_draining(name, true) != 0) {
            fprintf(stderr, "fakecuda: FAKECUDA_DRAIN: there is no function \"%s\"\n", name);
            abort();
        }
    }
    free(list);
}
