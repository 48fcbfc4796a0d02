/* The functions of the interface for versions, identities of devices and limits of kernels, as in calls.c; and
 * the functions of the program that aclInit and aclFinalize call. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
    if (!pkgName || !versionStr) CALL(hsAclMissing, ME);
    if (strcmp(pkgName, "runtime") != 0) CALL(hsAclNoPackage, ME, pkgName);
    strcpy(versionStr, ACL_LOOKALIKE_VERSION);
    return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
    int major = 0, minor = 0, patch = 0;
    if (!pkgName || !versionNum) CALL(hsAclMissing, ME);
    if (strcmp(pkgName, "runtime") != 0) CALL(hsAclNoPackage, ME, pkgName);
    sscanf(ACL_LOOKALIKE_VERSION, "%d.%d.%d", &major, &minor, &patch);
    *versionNum = major * 10000000 + minor * 100000 + patch * 1000;
    return ACL_SUCCESS;
}

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num)
{
    static const aclCannAttr none[1] = {ACL_CANN_ATTR_UNDEFINED};
    if (!cannAttrList || !num) CALL(hsAclMissing, ME);
    *cannAttrList = none;
    *num = 0;
    return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value)
{
    if (!value || cannAttr < ACL_CANN_ATTR_INF_NAN || cannAttr > ACL_CANN_ATTR_JIT_COMPILE) CALL(hsAclMissing, ME);
    *value = 0;
    return ACL_SUCCESS;
}

aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible)
{
    if (!socVersion || !canCompatible) CALL(hsAclMissing, ME);
    const char *name = aclrtGetSocName();
    *canCompatible = name != NULL && strcmp(name, socVersion) == 0;
    return ACL_SUCCESS;
}

/* The three numbers of a device differ where a variable hides some of a machine's; nothing does here. */
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevId, int32_t *const logicDevId)
{
    CALL(hsAclDeviceNumber, ME, userDevId, logicDevId);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevId)
{
    CALL(hsAclDeviceNumber, ME, logicDevId, userDevId);
}

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId)
{
    CALL(hsAclDeviceNumber, ME, phyDevId, logicDevId);
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId)
{
    CALL(hsAclDeviceNumber, ME, logicDevId, phyDevId);
}

aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t *const userDevId)
{
    CALL(hsAclDeviceNumber, ME, phyDevId, userDevId);
}

aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t *const phyDevId)
{
    CALL(hsAclDeviceNumber, ME, userDevId, phyDevId);
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType, int32_t *value)
{
    CALL(hsAclGetDeviceCapability, ME, deviceId, (int32_t)devFeatureType, value);
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid) { CALL(hsAclDeviceGetUuid, ME, deviceId, uuid); }

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char *pciBusId, int32_t len)
{
    if (!pciBusId || len <= 0) CALL(hsAclMissing, ME);
    CALL(hsAclNoBus, ME, deviceId);
}

aclError aclrtDeviceGetByPCIBusId(const char *pciBusId, int32_t *deviceId)
{
    if (!pciBusId || !deviceId) CALL(hsAclMissing, ME);
    CALL(hsAclNoBus, ME, 0);
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value)
{
    CALL(hsAclGetResInCurrentThread, ME, (int32_t)type, value);
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
    if (flags) *flags = 0; /* reserved */
    CALL(hsAclGetPrimaryCtxState, ME, deviceId, active);
}

/* -- limits of kernels, of which there are none: what was set is what is read -- */

enum { STEP = 1000000, MOST_STEPS = 254 }; /* microseconds */
static uint64_t kernel_limit; /* in microseconds; atomic */

static uint64_t set_kernel_limit(uint64_t us)
{
    uint64_t steps = us / STEP + (us % STEP != 0);
    uint64_t actual = STEP * (steps == 0 || steps > MOST_STEPS ? MOST_STEPS : steps);
    __atomic_store_n(&kernel_limit, actual, __ATOMIC_RELAXED);
    return actual;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
    set_kernel_limit((uint64_t)timeout * 1000000);
    return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout)
{
    set_kernel_limit((uint64_t)timeout * 1000);
    return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
    if (!actualTimeout) CALL(hsAclMissing, ME);
    *actualTimeout = set_kernel_limit(timeout);
    return ACL_SUCCESS;
}

aclError aclrtGetOpTimeOutInterval(uint64_t *interval)
{
    if (!interval) CALL(hsAclMissing, ME);
    *interval = STEP;
    return ACL_SUCCESS;
}

aclError aclrtGetOpExecuteTimeout(uint32_t *const timeoutMs)
{
    if (!timeoutMs) CALL(hsAclMissing, ME);
    uint64_t us = __atomic_load_n(&kernel_limit, __ATOMIC_RELAXED);
    *timeoutMs = (uint32_t)((us ? us : (uint64_t)STEP * MOST_STEPS) / 1000);
    return ACL_SUCCESS;
}

/* -- functions of the program at the beginning and at the end -- */

typedef struct hook {
    int32_t type;
    void *function, *data; /* an aclInitCallbackFunc or an aclFinalizeCallbackFunc */
} hook;
typedef struct hooks {
    hook *list;
    size_t count;
} hooks;
static hooks at_init, at_finalize;
static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;
static char *settings; /* the text that aclInit was given; under the lock */
static int running;    /* between aclInit and aclFinalize; under the lock */

static aclError add_hook(hooks *all, int32_t type, void *function, void *data)
{
    aclError code = ACL_SUCCESS;
    pthread_mutex_lock(&hooks_lock);
    for (size_t i = 0; i < all->count; i++)
        if (type != ACL_REG_TYPE_OTHER && all->list[i].type == type) code = ACL_ERROR_INTERNAL_ERROR; /* one of each */
    hook *list = code ? NULL : realloc(all->list, (all->count + 1) * sizeof *list);
    if (list != NULL) {
        all->list = list;
        list[all->count++] = (hook){type, function, data};
    } else if (!code) {
        code = ACL_ERROR_BAD_ALLOC;
    }
    pthread_mutex_unlock(&hooks_lock);
    return code;
}

static aclError remove_hook(hooks *all, int32_t type, void *function)
{
    aclError code = ACL_ERROR_INTERNAL_ERROR;
    pthread_mutex_lock(&hooks_lock);
    for (size_t i = 0; code && i < all->count; i++) {
        if (all->list[i].type != type || all->list[i].function != function) continue;
        memmove(&all->list[i], &all->list[i + 1], (--all->count - i) * sizeof *all->list);
        code = ACL_SUCCESS;
    }
    pthread_mutex_unlock(&hooks_lock);
    return code;
}

/* The lock is not held while the functions run, as they may call anything. */
static aclError run_hooks(hooks *all, int first)
{
    aclError code = ACL_SUCCESS;
    pthread_mutex_lock(&hooks_lock);
    size_t count = all->count;
    hook *list = malloc(count * sizeof *list + 1);
    char *text = strdup(settings ? settings : "");
    if (list != NULL && count) memcpy(list, all->list, count * sizeof *list);
    pthread_mutex_unlock(&hooks_lock);
    if (list == NULL || text == NULL) code = ACL_ERROR_BAD_ALLOC;
    for (size_t i = 0; !code && i < count; i++)
        code = first ? ((aclInitCallbackFunc)list[i].function)(text, strlen(text), list[i].data)
                     : ((aclFinalizeCallbackFunc)list[i].function)(list[i].data);
    free(list);
    free(text);
    return code;
}

static void set_running(int now, char *text)
{
    pthread_mutex_lock(&hooks_lock);
    free(settings);
    settings = text;
    running = now;
    pthread_mutex_unlock(&hooks_lock);
}

aclError hs_acl_begun(char *text)
{
    set_running(1, text);
    return run_hooks(&at_init, 1);
}

aclError hs_acl_ended(void)
{
    pthread_mutex_lock(&hooks_lock);
    int begun = running;
    pthread_mutex_unlock(&hooks_lock);
    aclError code = begun ? run_hooks(&at_finalize, 0) : ACL_SUCCESS;
    set_running(0, NULL);
    return code;
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc, void *userData)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    aclError code = add_hook(&at_init, (int32_t)type, (void *)cbFunc, userData);
    if (code) return code;
    pthread_mutex_lock(&hooks_lock);
    char *text = running ? strdup(settings ? settings : "") : NULL;
    pthread_mutex_unlock(&hooks_lock);
    if (text != NULL) cbFunc(text, strlen(text), userData); /* aclInit was called already */
    free(text);
    return ACL_SUCCESS;
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    return remove_hook(&at_init, (int32_t)type, (void *)cbFunc);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc, void *userData)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    return add_hook(&at_finalize, (int32_t)type, (void *)cbFunc, userData);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    return remove_hook(&at_finalize, (int32_t)type, (void *)cbFunc);
}
