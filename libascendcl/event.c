/* Events, as in device.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

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

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle)
{
    CALL(hsAclIpcGetEventHandle, ME, HANDLE(event), handle ? handle->reserved : NULL);
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event)
{
    CALL(hsAclIpcOpenEventHandle, ME, handle.reserved, OUT(event));
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId) { CALL(hsAclGetEventId, ME, HANDLE(event), eventId); }
aclError aclrtGetEventAvailNum(uint32_t *eventCount) { CALL(hsAclGetEventAvailNum, ME, eventCount); }

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
