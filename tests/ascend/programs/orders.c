/* Notifies, values in memory, and captures. */
#include "check.h"

static void add_one(void *pointer) { ++*(int *)pointer; }

static void notifies(aclrtStream s, aclrtStream t, aclrtStream u)
{
    aclrtNotify notify, bad;
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateNotify(&bad, 2));
    OK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    OK(aclrtWaitAndResetNotify(notify, t, 0));
    OK(aclrtWaitAndResetNotify(notify, u, 0));
    CHECK(stream_pending(t) && stream_pending(u));
    OK(aclrtRecordNotify(notify, s)); /* one record lets one wait pass */
    OK(aclrtSynchronizeStream(t));
    CHECK(stream_pending(u));
    OK(aclrtRecordNotify(notify, s));
    OK(aclrtSynchronizeStream(u));
    OK(aclrtRecordNotify(notify, s));
    OK(aclrtSynchronizeStream(s));
    OK(aclrtNotifyBatchReset(&notify, 1));
    OK(aclrtWaitAndResetNotify(notify, t, 1));
    RETURNS(ACL_ERROR_RT_TASK_TIMEOUT, aclrtSynchronizeStream(t));
    OK(aclrtDestroyNotify(notify));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordNotify(notify, s));
}

static void values(aclrtStream s, aclrtStream t)
{
    void *pinned;
    uint64_t *value;
    OK(aclrtMallocHost(&pinned, 64));
    value = (uint64_t *)pinned;
    *value = 0;
    OK(aclrtValueWait(value, 5, ACL_STREAM_WAIT_VALUE_GEQ, t));
    CHECK(stream_pending(t));
    OK(aclrtValueWrite(value, 4, 0, s));
    OK(aclrtSynchronizeStream(s));
    CHECK(stream_pending(t));
    OK(aclrtValueWrite(value, 5, 0, s));
    OK(aclrtSynchronizeStream(t));
    OK(aclrtValueWait(value, 7, ACL_STREAM_WAIT_VALUE_EQ, t));
    __atomic_store_n(value, 7, __ATOMIC_SEQ_CST); /* by the host */
    OK(aclrtSynchronizeStream(t));
    OK(aclrtValueWait(value, 4, ACL_STREAM_WAIT_VALUE_AND, t));
    OK(aclrtSynchronizeStream(t));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtValueWait(value, 4, 9, t));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtValueWrite(value, 4, 1, t));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtValueWrite(NULL, 4, 0, t));
    OK(aclrtFreeHost(pinned));
}

static void captures(aclrtStream s, aclrtStream t)
{
    int n = 0;
    aclmdlRI model, other;
    aclmdlRICaptureStatus status;
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
    aclrtEvent fork, join, outside;
    char byte = 0;
    void *device;
    OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&outside, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(outside, t));

    RETURNS(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, aclmdlRICaptureBegin(NULL, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    RETURNS(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclmdlRICaptureEnd(s, &model));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURED, aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclmdlRICaptureGetInfo(s, &status, NULL));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    OK(aclrtMemsetAsync(device, 64, 1, 64, s));
    OK(aclrtRecordEvent(fork, s));
    OK(aclrtStreamWaitEvent(t, fork));
    OK(aclrtLaunchHostFunc(t, add_one, &n));
    OK(aclrtRecordEvent(join, t));
    OK(aclrtStreamWaitEvent(s, join));
    OK(aclmdlRICaptureEnd(s, &model));
    OK(aclrtMemcpy(&byte, 1, device, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(n == 0 && byte != 1); /* nothing has run */
    for (int i = 0; i < 3; i++) OK(aclmdlRIExecuteAsync(model, s));
    OK(aclrtSynchronizeStream(s));
    CHECK(n == 3);
    OK(aclmdlRIExecute(model, -1));
    OK(aclrtMemcpy(&byte, 1, device, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(n == 4 && byte == 1);
    OK(aclmdlRIDestroy(model));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRIExecuteAsync(model, s));

    /* Waits and queries of a stream that captures, and of its events, invalidate the capture. */
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtDestroyStream(s));
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeStream(s));
    OK(aclmdlRICaptureGetInfo(s, &status, NULL));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, aclmdlRICaptureEnd(s, &other));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    RETURNS(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(aclmdlRICaptureEnd(s, &other) == ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    RETURNS(ACL_ERROR_RT_CAPTURE_DEPENDENCY, aclrtStreamWaitEvent(s, outside));
    CHECK(aclmdlRICaptureEnd(s, &other) == ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    OK(aclrtRecordEvent(fork, s));
    OK(aclrtStreamWaitEvent(t, fork));
    OK(aclrtLaunchHostFunc(t, add_one, &n));
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, aclmdlRICaptureEnd(t, &other));
    CHECK(aclmdlRICaptureEnd(s, &other) != 0);
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    OK(aclrtRecordEvent(fork, s));
    OK(aclrtStreamWaitEvent(t, fork));
    OK(aclrtLaunchHostFunc(t, add_one, &n));
    RETURNS(ACL_ERROR_RT_STREAM_UNJOINED, aclmdlRICaptureEnd(s, &other));
    OK(aclmdlRICaptureThreadExchangeMode(&mode));
    CHECK(mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
    OK(aclrtSynchronizeStream(s)); /* usable again */
    CHECK(n == 4);
    OK(aclrtDestroyEvent(fork));
    OK(aclrtDestroyEvent(join));
    OK(aclrtDestroyEvent(outside));
    OK(aclrtFree(device));
}

int main(void)
{
    aclrtStream s, t, u;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    OK(aclrtCreateStream(&t));
    OK(aclrtCreateStream(&u));
    notifies(s, t, u);
    values(s, t);
    captures(s, t);
    OK(aclrtDestroyStream(s));
    OK(aclrtDestroyStream(t));
    OK(aclrtDestroyStream(u));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
