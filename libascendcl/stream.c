/* Streams, as in device.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "states.h"
#include "thread.h"

static aclError create(const char *function, void *here, aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    int code = hs_acl_enter(function, here);
    if (!code) code = hsAclCreateStream(ME, OUT(stream), priority, flag);
    hs_program_come_behind();
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
        hs_program_note_stack();
        code = hsAclGoOn(ME);
    }
    hs_program_come_behind();
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
