/* The functions of acl_rt_chip.h: what is left of them without a chip. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "states.h"
#include "thread.h"

#define UNSUPPORTED CALL(hsAclUnsupported, ME)

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag)
{
    if (flag == ACL_EVENT_RECORD_EXTERNAL) CALL(hsAclExternal, ME, (uintptr_t)stream);
    if (flag != ACL_EVENT_RECORD_DEFAULT) CALL(hsAclMissing, ME);
    return aclrtRecordEvent(event, stream);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag)
{
    if (flag == ACL_EVENT_WAIT_EXTERNAL) CALL(hsAclExternal, ME, (uintptr_t)stream);
    if (flag != ACL_EVENT_WAIT_DEFAULT || timeout > INT32_MAX) CALL(hsAclMissing, ME);
    return timeout ? aclrtStreamWaitEventWithTimeout(stream, event, (int32_t)timeout) : aclrtStreamWaitEvent(stream, event);
}

/* -- settings -- */

enum { OPTIONS = 4 };
static struct {
    pthread_mutex_t lock;
    aclrtFloatOverflowMode mode;
    int64_t values[OPTIONS];
    int given[OPTIONS];
} settings = {.lock = PTHREAD_MUTEX_INITIALIZER};

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    if ((unsigned)mode > ACL_RT_OVERFLOW_MODE_UNDEF) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&settings.lock);
    settings.mode = mode;
    pthread_mutex_unlock(&settings.lock);
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    if (!mode) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&settings.lock);
    *mode = settings.mode;
    pthread_mutex_unlock(&settings.lock);
    return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    if ((unsigned)opt >= OPTIONS) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&settings.lock);
    settings.values[opt] = value;
    settings.given[opt] = 1;
    pthread_mutex_unlock(&settings.lock);
    return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    if ((unsigned)opt >= OPTIONS || !value) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&settings.lock);
    int given = settings.given[opt];
    if (given) *value = settings.values[opt];
    pthread_mutex_unlock(&settings.lock);
    return given ? ACL_SUCCESS : ACL_ERROR_RT_SYSPARAMOPT_NOT_SET;
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
    if (!version || (unsigned)name > ACL_PKG_NAME_DRIVER) CALL(hsAclMissing, ME);
    CALL(hsAclNoPackage, ME, "CANN");
}

/* -- functions of the program for the states of devices and streams -- */

typedef struct watcher {
    struct watcher *next;
    char *name;
    void *function, *argument;
} watcher;
static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static watcher *of_devices, *of_streams;

/* The one with this name takes the place of an earlier one. */
static aclError watch(watcher **list, const char *name, void *function, void *argument)
{
    aclError code = ACL_SUCCESS;
    pthread_mutex_lock(&watchers_lock);
    watcher **at = list;
    while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    watcher *found = *at;
    if (found == NULL && function != NULL) {
        found = calloc(1, sizeof *found);
        if (found != NULL && (found->name = strdup(name)) == NULL) free(found), found = NULL;
        if (found != NULL) *at = found;
        else code = ACL_ERROR_BAD_ALLOC;
    } else if (found != NULL && function == NULL) {
        *at = found->next;
        free(found->name);
        free(found);
        found = NULL;
    }
    if (found != NULL) found->function = function, found->argument = argument;
    pthread_mutex_unlock(&watchers_lock);
    return code;
}

aclError aclrtRegDeviceStateCallback(const char *regName, aclrtDeviceStateCallback callback, void *args)
{
    if (!regName) CALL(hsAclMissing, ME);
    return watch(&of_devices, regName, (void *)callback, args);
}

aclError aclrtRegStreamStateCallback(const char *regName, aclrtStreamStateCallback callback, void *args)
{
    if (!regName) CALL(hsAclMissing, ME);
    return watch(&of_streams, regName, (void *)callback, args);
}

/* A copy of a list without names, so that the functions run without the lock; NULL if it is empty. */
static watcher *copy_of(watcher *const *list)
{
    if (__atomic_load_n(list, __ATOMIC_ACQUIRE) == NULL) return NULL;
    watcher *first = NULL, **end = &first;
    pthread_mutex_lock(&watchers_lock);
    for (watcher *w = *list; w != NULL; w = w->next) {
        *end = malloc(sizeof **end);
        if (*end == NULL) break;
        **end = (watcher){.function = w->function, .argument = w->argument};
        end = &(*end)->next;
    }
    pthread_mutex_unlock(&watchers_lock);
    return first;
}

static watcher *dropped(watcher *w)
{
    watcher *next = w->next;
    free(w);
    return next;
}

void hs_acl_device_state(int32_t device, int state)
{
    for (watcher *w = copy_of(&of_devices); w != NULL; w = dropped(w))
        ((aclrtDeviceStateCallback)w->function)(device, (aclrtDeviceState)state, w->argument);
}

void hs_acl_stream_state(void *stream, int state)
{
    for (watcher *w = copy_of(&of_streams); w != NULL; w = dropped(w))
        ((aclrtStreamStateCallback)w->function)(stream, (aclrtStreamState)state, w->argument);
}

/* -- what is not there -- */

#define ABSENT(function, ...)                                                                                          \
    aclError function(__VA_ARGS__)                                                                                     \
    {                                                                                                                  \
        UNSUPPORTED;                                                                                                   \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(aclrtStreamStop, aclrtStream stream)
ABSENT(aclrtCtxSetSysParamOpt, aclSysParamOpt opt, int64_t value)
ABSENT(aclrtCtxGetSysParamOpt, aclSysParamOpt opt, int64_t *value)
ABSENT(aclrtActiveStream, aclrtStream activeStream, aclrtStream stream)
ABSENT(aclrtSwitchStream, void *leftValue, aclrtCondition cond, void *rightValue, aclrtCompareDataType dataType,
       aclrtStream trueStream, aclrtStream falseStream, aclrtStream stream)
ABSENT(aclrtGetThreadLastTaskId, uint32_t *taskId)
ABSENT(aclrtSetStreamResLimit, aclrtStream stream, aclrtDevResLimitType type, uint32_t value)
ABSENT(aclrtGetStreamResLimit, aclrtStream stream, aclrtDevResLimitType type, uint32_t *value)
ABSENT(aclrtResetStreamResLimit, aclrtStream stream)
ABSENT(aclrtUseStreamResInCurrentThread, aclrtStream stream)
ABSENT(aclrtUnuseStreamResInCurrentThread, aclrtStream stream)
ABSENT(aclrtReduceAsync, void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
       aclrtStream stream, void *reserve)
ABSENT(aclrtMemPoolMallocAsync, void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream)
ABSENT(aclrtMemPoolFreeAsync, void *ptr, aclrtStream stream)
ABSENT(aclrtIpcGetEventHandle, aclrtEvent event, aclrtIpcEventHandle *handle)
ABSENT(aclrtIpcOpenEventHandle, aclrtIpcEventHandle handle, aclrtEvent *event)
ABSENT(aclrtNotifyGetExportKey, aclrtNotify notify, char *key, size_t len, uint64_t flags)
ABSENT(aclrtNotifyImportByKey, aclrtNotify *notify, const char *key, uint64_t flags)
ABSENT(aclrtNotifySetImportPid, aclrtNotify notify, int32_t *pid, size_t num)
