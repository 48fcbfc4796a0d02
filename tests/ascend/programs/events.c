/* Both kinds of events: unrecorded, recorded again, reset, timed, with limits. */
#include "check.h"

int main(void)
{
    aclrtEvent ex, plain, sync, end, bad;
    aclrtStream s, t;
    gate g, h;
    float ms;
    uint64_t first, second;
    aclrtEventStatus status;
    aclrtEventWaitStatus waits;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    OK(aclrtCreateStreamWithConfig(&t, 3, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));

    const uint32_t refused[] = {0, ACL_EVENT_DEVICE_USE_ONLY, ACL_EVENT_EXTERNAL, ACL_EVENT_IPC | ACL_EVENT_SYNC, 0x80};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateEventExWithFlag(&bad, refused[i]));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateEventWithFlag(&bad, ACL_EVENT_IPC));
    OK(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    OK(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE));
    OK(aclrtCreateEvent(&plain));
    OK(aclrtCreateEventWithFlag(&sync, ACL_EVENT_SYNC));

    /* Never recorded: the newer kind is complete, the older ones are not. */
    CHECK(event_complete(ex) && !event_complete(plain) && !event_complete(sync));
    OK(aclrtQueryEvent(plain, &status));
    CHECK(status == ACL_EVENT_STATUS_COMPLETE);
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEvent(ex, &status));
    OK(aclrtSynchronizeEvent(plain));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtStreamWaitEvent(s, plain));
    RETURNS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtEventElapsedTime(&ms, ex, end));

    /* A wait for a SYNC event waits for a record that comes later. */
    OK(aclrtStreamWaitEvent(t, sync));
    OK(aclrtQueryEventWaitStatus(sync, &waits));
    CHECK(waits == ACL_EVENT_WAIT_STATUS_NOT_READY && stream_pending(t));
    OK(aclrtRecordEvent(sync, s));
    OK(aclrtSynchronizeStream(t));
    OK(aclrtQueryEventWaitStatus(sync, &waits));
    CHECK(waits == ACL_EVENT_WAIT_STATUS_COMPLETE);
    OK(aclrtStreamWaitEvent(t, sync)); /* still set */
    OK(aclrtSynchronizeStream(t));
    OK(aclrtResetEvent(sync, t));
    OK(aclrtSynchronizeStream(t)); /* or the record could come before the reset */
    OK(aclrtStreamWaitEvent(t, sync));
    CHECK(stream_pending(t));
    OK(aclrtRecordEvent(sync, s));
    OK(aclrtSynchronizeStream(t));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(ex, s));

    /* A wait stays with the record that it was made for. */
    hold(&g, s);
    OK(aclrtRecordEvent(ex, s));
    OK(aclrtStreamWaitEvent(t, ex));
    hold(&h, s);
    OK(aclrtRecordEvent(ex, s));
    CHECK(!event_complete(ex));
    RETURNS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(ex, 10));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEventWithTimeout(ex, 0));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEventWithTimeout(ex, -2));
    RETURNS(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventElapsedTime(&ms, ex, ex));
    open_gate(&g);
    OK(aclrtSynchronizeStream(t));
    CHECK(!event_complete(ex));
    open_gate(&h);
    OK(aclrtSynchronizeEvent(ex));

    OK(aclrtRecordEvent(end, s));
    OK(aclrtSynchronizeEventWithTimeout(end, -1));
    OK(aclrtEventElapsedTime(&ms, ex, end));
    CHECK(ms >= 0);
    OK(aclrtEventElapsedTime(&ms, end, ex));
    CHECK(ms <= 0);
    RETURNS(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventElapsedTime(&ms, sync, end));
    OK(aclrtEventGetTimestamp(ex, &first));
    OK(aclrtEventGetTimestamp(end, &second));
    CHECK(first <= second);

    /* The limit of a wait on a stream is in seconds, and the stream's next wait reports it. */
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtStreamWaitEventWithTimeout(t, ex, -1));
    hold(&g, s);
    OK(aclrtRecordEvent(ex, s));
    OK(aclrtStreamWaitEventWithTimeout(t, ex, 1));
    RETURNS(ACL_ERROR_RT_TASK_TIMEOUT, aclrtSynchronizeStream(t));
    OK(aclrtSynchronizeStream(t));
    open_gate(&g);

    OK(aclrtDestroyEvent(ex));
    OK(aclrtDestroyEvent(plain));
    OK(aclrtDestroyEvent(sync));
    OK(aclrtDestroyEvent(end));
    OK(aclrtDestroyStream(s));
    OK(aclrtDestroyStream(t));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
