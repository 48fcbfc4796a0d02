/* The functions of the interface for devices, contexts, streams and events. Each one converts
 * its arguments and calls Go; NULL pointers and codes are Go's business. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "states.h"
#include "thread.h"

#define HANDLE(pointer) ((uintptr_t)(pointer))
#define OUT(pointer) ((uintptr_t *)(pointer))
#define STATUS(pointer) ((int32_t *)(pointer))
enum { FOREVER = -1 }; /* milliseconds */

aclError aclInit(const char *configPath)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclInit(ME, (char *)configPath);
    if (code) return code;
    hs_acl_come_behind();
    code = hs_acl_begun(hsAclSettings());
    if (code) hsAclFinalize(ME);
    return code;
}

aclError aclFinalize(void)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclFinalize(ME);
    return code ? code : hs_acl_ended();
}

aclError aclFinalizeReference(uint64_t *refCount)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclFinalizeReference(ME, refCount);
    return code || *refCount > 0 ? code : hs_acl_ended();
}

const char *aclGetRecentErrMsg(void)
{
    if (hs_acl_forked)
        return "EE9999: error code is 507033.\n        this process was forked after the library was used, and the "
               "runtime's threads stayed in the parent; start other programs with exec instead";
    return hs_acl_enter(__func__, __builtin_return_address(0)) ? NULL : hsAclGetRecentErrMsg(ME);
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
    if (!majorVersion || !minorVersion || !patchVersion) CALL(hsAclMissing, ME);
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void)
{
    return hs_acl_enter(__func__, __builtin_return_address(0)) ? NULL : hsAclGetSocName();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) { CALL(hsAclLastError, ME, (int32_t)level, 0); }
aclError aclrtGetLastError(aclrtLastErrLevel level) { CALL(hsAclLastError, ME, (int32_t)level, 1); }

/* -- devices -- */

aclError aclrtSetDevice(int32_t deviceId)
{
    hs_acl_device_state(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclSetDevice(ME, deviceId);
    if (!code) hs_acl_device_state(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
    hs_acl_come_behind();
    return code;
}

static aclError reset(const char *function, void *here, int32_t device, int force)
{
    hs_acl_device_state(device, ACL_RT_DEVICE_STATE_RESET_PRE);
    int code = hs_acl_enter(function, here);
    if (!code) code = hsAclResetDevice(ME, device, force);
    if (!code) hs_acl_device_state(device, ACL_RT_DEVICE_STATE_RESET_POST);
    hs_acl_come_behind();
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

/* -- streams -- */

static aclError create(const char *function, void *here, aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    int code = hs_acl_enter(function, here);
    if (!code) code = hsAclCreateStream(ME, OUT(stream), priority, flag);
    hs_acl_come_behind();
    if (!code) hs_acl_stream_state(*stream, ACL_RT_STREAM_STATE_CREATE_POST);
    return code;
}

aclError aclrtCreateStream(aclrtStream *stream) { return create(__func__, __builtin_return_address(0), stream, 0, 0); }

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    return create(__func__, __builtin_return_address(0), stream, priority, flag);
}

static aclError destroy(const char *function, void *here, aclrtStream stream, int force)
{
    if (stream != NULL) hs_acl_stream_state(stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
    int code = hs_acl_enter(function, here);
    if (!code) code = hsAclDestroyStream(ME, HANDLE(stream), force);
    if (code == HS_ACL_WAITS) {
        hs_acl_note_stack();
        code = hsAclGoOn(ME);
    }
    hs_acl_come_behind();
    return code;
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy(__func__, __builtin_return_address(0), stream, 0); }
aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy(__func__, __builtin_return_address(0), stream, 1); }

aclError aclrtSynchronizeStream(aclrtStream stream) { WAIT(hsAclSynchronizeStream, ME, HANDLE(stream), FOREVER); }

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
    WAIT(hsAclSynchronizeStream, ME, HANDLE(stream), timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
    CALL(hsAclStreamQuery, ME, HANDLE(stream), STATUS(status));
}

aclError aclrtStreamAbort(aclrtStream stream) { CALL(hsAclStreamAbort, ME, HANDLE(stream)); }

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    CALL(hsAclStreamWaitEvent, ME, HANDLE(stream), HANDLE(event), 0, 1);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
    CALL(hsAclStreamWaitEvent, ME, HANDLE(stream), HANDLE(event), timeout, 0);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
    CALL(hsAclStreamFigure, ME, HANDLE(stream), 0, (uint32_t *)streamId);
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
    CALL(hsAclStreamFigure, ME, HANDLE(stream), 1, priority);
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
    CALL(hsAclStreamFigure, ME, HANDLE(stream), 2, flags);
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount) { CALL(hsAclGetStreamAvailableNum, ME, streamCount); }

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr attribute, aclrtStreamAttrValue *value)
{
    if (!value) CALL(hsAclMissing, ME);
    uint64_t number = attribute == ACL_STREAM_ATTR_FAILURE_MODE ? value->failureMode : value->overflowSwitch;
    CALL(hsAclSetStreamAttribute, ME, HANDLE(stream), (int32_t)attribute, number);
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr attribute, aclrtStreamAttrValue *value)
{
    if (!value) CALL(hsAclMissing, ME);
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    uint64_t number = 0;
    if (!code) code = hsAclGetStreamAttribute(ME, HANDLE(stream), (int32_t)attribute, &number);
    if (code) return code;
    *value = (aclrtStreamAttrValue){.reserve = {0}};
    if (attribute == ACL_STREAM_ATTR_FAILURE_MODE) value->failureMode = number;
    else value->overflowSwitch = (uint32_t)number;
    return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
    CALL(hsAclSetStreamAttribute, ME, HANDLE(stream), ACL_STREAM_ATTR_FAILURE_MODE, mode);
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
{
    CALL(hsAclSetStreamAttribute, ME, HANDLE(stream), ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, flag);
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag)
{
    aclrtStreamAttrValue value;
    if (!flag) CALL(hsAclMissing, ME);
    int code = aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value);
    if (!code) *flag = value.overflowSwitch;
    return code;
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) { CALL(hsAclSetOpWaitTimeout, ME, timeout); }

/* -- events -- */

aclError aclrtCreateEvent(aclrtEvent *event) { CALL(hsAclCreateEvent, ME, OUT(event), 0, 0); }
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) { CALL(hsAclCreateEvent, ME, OUT(event), 1, flag); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) { CALL(hsAclCreateEvent, ME, OUT(event), 2, flag); }
aclError aclrtDestroyEvent(aclrtEvent event) { CALL(hsAclDestroyEvent, ME, HANDLE(event)); }

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    CALL(hsAclRecordEvent, ME, HANDLE(event), HANDLE(stream));
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    CALL(hsAclResetEvent, ME, HANDLE(event), HANDLE(stream));
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
    CALL(hsAclQueryEvent, ME, HANDLE(event), 0, STATUS(status));
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    CALL(hsAclQueryEvent, ME, HANDLE(event), 1, STATUS(status));
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
    CALL(hsAclQueryEvent, ME, HANDLE(event), 2, STATUS(status));
}

aclError aclrtSynchronizeEvent(aclrtEvent event) { WAIT(hsAclSynchronizeEvent, ME, HANDLE(event), FOREVER); }

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
    WAIT(hsAclSynchronizeEvent, ME, HANDLE(event), timeout);
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    CALL(hsAclEventElapsedTime, ME, ms, HANDLE(startEvent), HANDLE(endEvent));
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
    CALL(hsAclEventGetTimestamp, ME, HANDLE(event), timestamp);
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId) { CALL(hsAclGetEventId, ME, HANDLE(event), eventId); }
aclError aclrtGetEventAvailNum(uint32_t *eventCount) { CALL(hsAclGetEventAvailNum, ME, eventCount); }
