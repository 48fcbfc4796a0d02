/* Devices, their identities and limits, and contexts. Each function converts its arguments and calls Go; NULL
 * pointers and codes are Go's business. */
#include <pthread.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "states.h"
#include "thread.h"

aclError aclrtSetDevice(int32_t deviceId)
{
    hs_acl_device_state(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclSetDevice(ME, deviceId);
    if (!code) hs_acl_device_state(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
    hs_program_come_behind();
    return code;
}

static aclError reset(const char *function, void *here, int32_t device, int force)
{
    hs_acl_device_state(device, ACL_RT_DEVICE_STATE_RESET_PRE);
    int code = hs_acl_enter(function, here);
    if (!code) code = hsAclResetDevice(ME, device, force);
    if (!code) hs_acl_device_state(device, ACL_RT_DEVICE_STATE_RESET_POST);
    hs_program_come_behind();
    return code;
}

aclError aclrtResetDevice(int32_t deviceId) { return reset(__func__, __builtin_return_address(0), deviceId, 0); }
aclError aclrtResetDeviceForce(int32_t deviceId) { return reset(__func__, __builtin_return_address(0), deviceId, 1); }
aclError aclrtGetDevice(int32_t *deviceId) { CALL(hsAclGetDevice, ME, deviceId); }
aclError aclrtGetDeviceCount(uint32_t *count) { CALL(hsAclGetDeviceCount, ME, count); }

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
    if (!runMode) CALL(hsAclMissing, ME);
    *runMode = ACL_HOST; /* the program always runs beside the device */
    return ACL_SUCCESS;
}

aclError aclrtSetTsDevice(aclrtTsId tsId) { CALL(hsAclSetTsDevice, ME, (int32_t)tsId); }
aclError aclrtSynchronizeDevice(void) { WAIT(hsAclSynchronizeDevice, ME, FOREVER); }
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) { WAIT(hsAclSynchronizeDevice, ME, timeout); }

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *status)
{
    CALL(hsAclQueryDeviceStatus, ME, deviceId, STATUS(status));
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout)
{
    WAIT(hsAclDeviceTaskAbort, ME, deviceId, timeout);
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
    if (leastPriority) *leastPriority = 7;
    if (greatestPriority) *greatestPriority = 0;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
    CALL(hsAclGetDeviceInfo, ME, deviceId, (int32_t)attr, value);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilization)
{
    CALL(hsAclGetDeviceUtilizationRate, ME, deviceId, utilization);
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
    CALL(hsAclDeviceCanAccessPeer, ME, canAccessPeer, deviceId, peerDeviceId);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
    CALL(hsAclDevicePeerAccess, ME, peerDeviceId, flags, 1);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) { CALL(hsAclDevicePeerAccess, ME, peerDeviceId, 0, 0); }

/* -- contexts -- */

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    CALL(hsAclCreateContext, ME, OUT(context), deviceId);
}

aclError aclrtDestroyContext(aclrtContext context) { CALL(hsAclDestroyContext, ME, HANDLE(context)); }
aclError aclrtSetCurrentContext(aclrtContext context) { CALL(hsAclSetCurrentContext, ME, HANDLE(context)); }
aclError aclrtGetCurrentContext(aclrtContext *context) { CALL(hsAclGetCurrentContext, ME, OUT(context), 0); }
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) { CALL(hsAclGetCurrentContext, ME, OUT(stream), 1); }

/* -- identities and abilities -- */

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

static struct {
    pthread_mutex_t lock;
    aclrtFloatOverflowMode mode;
} saturation = {.lock = PTHREAD_MUTEX_INITIALIZER};

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    if ((unsigned)mode > ACL_RT_OVERFLOW_MODE_UNDEF) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&saturation.lock);
    saturation.mode = mode;
    pthread_mutex_unlock(&saturation.lock);
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    if (!mode) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&saturation.lock);
    *mode = saturation.mode;
    pthread_mutex_unlock(&saturation.lock);
    return ACL_SUCCESS;
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
