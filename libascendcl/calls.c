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
    int code = lookalike_enter(__func__, __builtin_return_address(0));
    if (!code) code = lookalikeInit(ME, (char *)configPath);
    if (code) return code;
    lookalike_come_behind();
    code = lookalike_begun(lookalikeSettings());
    if (code) lookalikeFinalize(ME);
    return code;
}

aclError aclFinalize(void)
{
    int code = lookalike_enter(__func__, __builtin_return_address(0));
    if (!code) code = lookalikeFinalize(ME);
    return code ? code : lookalike_ended();
}

aclError aclFinalizeReference(uint64_t *refCount)
{
    int code = lookalike_enter(__func__, __builtin_return_address(0));
    if (!code) code = lookalikeFinalizeReference(ME, refCount);
    return code || *refCount > 0 ? code : lookalike_ended();
}

const char *aclGetRecentErrMsg(void)
{
    if (lookalike_forked)
        return "EE9999: error code is 507033.\n        this process was forked after the library was used, and the "
               "runtime's threads stayed in the parent; start other programs with exec instead";
    return lookalike_enter(__func__, __builtin_return_address(0)) ? NULL : lookalikeGetRecentErrMsg(ME);
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
    if (!majorVersion || !minorVersion || !patchVersion) CALL(lookalikeMissing, ME);
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void)
{
    return lookalike_enter(__func__, __builtin_return_address(0)) ? NULL : lookalikeGetSocName();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) { CALL(lookalikeLastError, ME, (int32_t)level, 0); }
aclError aclrtGetLastError(aclrtLastErrLevel level) { CALL(lookalikeLastError, ME, (int32_t)level, 1); }

/* -- devices -- */

aclError aclrtSetDevice(int32_t deviceId)
{
    lookalike_device_state(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
    int code = lookalike_enter(__func__, __builtin_return_address(0));
    if (!code) code = lookalikeSetDevice(ME, deviceId);
    if (!code) lookalike_device_state(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
    lookalike_come_behind();
    return code;
}

static aclError reset(const char *function, void *here, int32_t device, int force)
{
    lookalike_device_state(device, ACL_RT_DEVICE_STATE_RESET_PRE);
    int code = lookalike_enter(function, here);
    if (!code) code = lookalikeResetDevice(ME, device, force);
    if (!code) lookalike_device_state(device, ACL_RT_DEVICE_STATE_RESET_POST);
    lookalike_come_behind();
    return code;
}

aclError aclrtResetDevice(int32_t deviceId) { return reset(__func__, __builtin_return_address(0), deviceId, 0); }
aclError aclrtResetDeviceForce(int32_t deviceId) { return reset(__func__, __builtin_return_address(0), deviceId, 1); }
aclError aclrtGetDevice(int32_t *deviceId) { CALL(lookalikeGetDevice, ME, deviceId); }
aclError aclrtGetDeviceCount(uint32_t *count) { CALL(lookalikeGetDeviceCount, ME, count); }

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
    if (!runMode) CALL(lookalikeMissing, ME);
    *runMode = ACL_HOST; /* the program always runs beside the device */
    return ACL_SUCCESS;
}

aclError aclrtSetTsDevice(aclrtTsId tsId) { CALL(lookalikeSetTsDevice, ME, (int32_t)tsId); }
aclError aclrtSynchronizeDevice(void) { WAIT(lookalikeSynchronizeDevice, ME, FOREVER); }
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) { WAIT(lookalikeSynchronizeDevice, ME, timeout); }

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *status)
{
    CALL(lookalikeQueryDeviceStatus, ME, deviceId, STATUS(status));
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout)
{
    WAIT(lookalikeDeviceTaskAbort, ME, deviceId, timeout);
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
    if (leastPriority) *leastPriority = 7;
    if (greatestPriority) *greatestPriority = 0;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
    CALL(lookalikeGetDeviceInfo, ME, deviceId, (int32_t)attr, value);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilization)
{
    CALL(lookalikeGetDeviceUtilizationRate, ME, deviceId, utilization);
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
    CALL(lookalikeDeviceCanAccessPeer, ME, canAccessPeer, deviceId, peerDeviceId);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
    CALL(lookalikeDevicePeerAccess, ME, peerDeviceId, flags, 1);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) { CALL(lookalikeDevicePeerAccess, ME, peerDeviceId, 0, 0); }

/* -- contexts -- */

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    CALL(lookalikeCreateContext, ME, OUT(context), deviceId);
}

aclError aclrtDestroyContext(aclrtContext context) { CALL(lookalikeDestroyContext, ME, HANDLE(context)); }
aclError aclrtSetCurrentContext(aclrtContext context) { CALL(lookalikeSetCurrentContext, ME, HANDLE(context)); }
aclError aclrtGetCurrentContext(aclrtContext *context) { CALL(lookalikeGetCurrentContext, ME, OUT(context), 0); }
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) { CALL(lookalikeGetCurrentContext, ME, OUT(stream), 1); }

/* -- streams -- */

static aclError create(const char *function, void *here, aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    int code = lookalike_enter(function, here);
    if (!code) code = lookalikeCreateStream(ME, OUT(stream), priority, flag);
    lookalike_come_behind();
    if (!code) lookalike_stream_state(*stream, ACL_RT_STREAM_STATE_CREATE_POST);
    return code;
}

aclError aclrtCreateStream(aclrtStream *stream) { return create(__func__, __builtin_return_address(0), stream, 0, 0); }

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    return create(__func__, __builtin_return_address(0), stream, priority, flag);
}

static aclError destroy(const char *function, void *here, aclrtStream stream, int force)
{
    if (stream != NULL) lookalike_stream_state(stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
    int code = lookalike_enter(function, here);
    if (!code) code = lookalikeDestroyStream(ME, HANDLE(stream), force);
    if (code == LOOKALIKE_WAITS) {
        lookalike_note_stack();
        code = lookalikeGoOn(ME);
    }
    lookalike_come_behind();
    return code;
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy(__func__, __builtin_return_address(0), stream, 0); }
aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy(__func__, __builtin_return_address(0), stream, 1); }

aclError aclrtSynchronizeStream(aclrtStream stream) { WAIT(lookalikeSynchronizeStream, ME, HANDLE(stream), FOREVER); }

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
    WAIT(lookalikeSynchronizeStream, ME, HANDLE(stream), timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
    CALL(lookalikeStreamQuery, ME, HANDLE(stream), STATUS(status));
}

aclError aclrtStreamAbort(aclrtStream stream) { CALL(lookalikeStreamAbort, ME, HANDLE(stream)); }

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    CALL(lookalikeStreamWaitEvent, ME, HANDLE(stream), HANDLE(event), 0, 1);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
    CALL(lookalikeStreamWaitEvent, ME, HANDLE(stream), HANDLE(event), timeout, 0);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
    CALL(lookalikeStreamFigure, ME, HANDLE(stream), 0, (uint32_t *)streamId);
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
    CALL(lookalikeStreamFigure, ME, HANDLE(stream), 1, priority);
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
    CALL(lookalikeStreamFigure, ME, HANDLE(stream), 2, flags);
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount) { CALL(lookalikeGetStreamAvailableNum, ME, streamCount); }

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr attribute, aclrtStreamAttrValue *value)
{
    if (!value) CALL(lookalikeMissing, ME);
    uint64_t number = attribute == ACL_STREAM_ATTR_FAILURE_MODE ? value->failureMode : value->overflowSwitch;
    CALL(lookalikeSetStreamAttribute, ME, HANDLE(stream), (int32_t)attribute, number);
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr attribute, aclrtStreamAttrValue *value)
{
    if (!value) CALL(lookalikeMissing, ME);
    int code = lookalike_enter(__func__, __builtin_return_address(0));
    uint64_t number = 0;
    if (!code) code = lookalikeGetStreamAttribute(ME, HANDLE(stream), (int32_t)attribute, &number);
    if (code) return code;
    *value = (aclrtStreamAttrValue){.reserve = {0}};
    if (attribute == ACL_STREAM_ATTR_FAILURE_MODE) value->failureMode = number;
    else value->overflowSwitch = (uint32_t)number;
    return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
    CALL(lookalikeSetStreamAttribute, ME, HANDLE(stream), ACL_STREAM_ATTR_FAILURE_MODE, mode);
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
{
    CALL(lookalikeSetStreamAttribute, ME, HANDLE(stream), ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, flag);
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag)
{
    aclrtStreamAttrValue value;
    if (!flag) CALL(lookalikeMissing, ME);
    int code = aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value);
    if (!code) *flag = value.overflowSwitch;
    return code;
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) { CALL(lookalikeSetOpWaitTimeout, ME, timeout); }

/* -- events -- */

aclError aclrtCreateEvent(aclrtEvent *event) { CALL(lookalikeCreateEvent, ME, OUT(event), 0, 0); }
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) { CALL(lookalikeCreateEvent, ME, OUT(event), 1, flag); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) { CALL(lookalikeCreateEvent, ME, OUT(event), 2, flag); }
aclError aclrtDestroyEvent(aclrtEvent event) { CALL(lookalikeDestroyEvent, ME, HANDLE(event)); }

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    CALL(lookalikeRecordEvent, ME, HANDLE(event), HANDLE(stream));
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    CALL(lookalikeResetEvent, ME, HANDLE(event), HANDLE(stream));
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
    CALL(lookalikeQueryEvent, ME, HANDLE(event), 0, STATUS(status));
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    CALL(lookalikeQueryEvent, ME, HANDLE(event), 1, STATUS(status));
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
    CALL(lookalikeQueryEvent, ME, HANDLE(event), 2, STATUS(status));
}

aclError aclrtSynchronizeEvent(aclrtEvent event) { WAIT(lookalikeSynchronizeEvent, ME, HANDLE(event), FOREVER); }

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
    WAIT(lookalikeSynchronizeEvent, ME, HANDLE(event), timeout);
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    CALL(lookalikeEventElapsedTime, ME, ms, HANDLE(startEvent), HANDLE(endEvent));
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
    CALL(lookalikeEventGetTimestamp, ME, HANDLE(event), timestamp);
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId) { CALL(lookalikeGetEventId, ME, HANDLE(event), eventId); }
aclError aclrtGetEventAvailNum(uint32_t *eventCount) { CALL(lookalikeGetEventAvailNum, ME, eventCount); }
