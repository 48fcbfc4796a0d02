/* Models of captures under way, calls that a capture refuses, aborts, and what an exception callback is told. */
#include "check.h"

#include <pthread.h>
#include <string.h>

static void add_one(void *pointer) { ++*(int *)pointer; }

/* The model of a capture has a handle while the capture goes on, which its end returns. */
static void a_model_under_way(aclrtStream s, aclrtStream t)
{
    aclmdlRI early, joined, model;
    aclmdlRICaptureStatus status;
    aclrtEvent fork, join;
    int n = 0;
    OK(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC));
    OK(aclmdlRICaptureGetInfo(s, &status, &early));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_NONE && early == NULL);
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlRICaptureGetInfo(s, &status, &early));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE && early != NULL);
    RETURNS(ACL_ERROR_RT_MODEL_CAPTURED, aclmdlRIExecuteAsync(early, t));
    OK(aclrtRecordEvent(fork, s));
    OK(aclrtStreamWaitEvent(t, fork));
    OK(aclmdlRICaptureGetInfo(t, &status, &joined));
    CHECK(joined == early);
    OK(aclrtLaunchHostFunc(t, add_one, &n));
    OK(aclrtRecordEvent(join, t));
    OK(aclrtStreamWaitEvent(s, join));
    OK(aclmdlRICaptureEnd(s, &model));
    CHECK(model == early);
    OK(aclmdlRIExecute(model, -1));
    CHECK(n == 1);
    OK(aclmdlRIDestroy(model));

    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlRICaptureGetInfo(s, &status, &early));
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeStream(s));
    OK(aclmdlRICaptureGetInfo(s, &status, &joined));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED && joined == NULL);
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, aclmdlRICaptureEnd(s, &model));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRIDestroy(early)); /* it has come to nothing */
    OK(aclrtDestroyEvent(fork));
    OK(aclrtDestroyEvent(join));
}

static void begin(aclrtStream s) { OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)); }

static void end_in_vain(aclrtStream s)
{
    aclmdlRI model;
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, aclmdlRICaptureEnd(s, &model));
}

static void refused_while_capturing(aclrtStream s)
{
    char pageable[64] = {0};
    void *device;
    aclmdlRI model;
    aclrtEvent plain, old, unwaitable;
    OK(aclrtMalloc(&device, sizeof pageable, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtCreateEvent(&plain));
    OK(aclrtCreateEventWithFlag(&old, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&unwaitable, ACL_EVENT_CAPTURE_STREAM_PROGRESS));
    begin(s);
    RETURNS(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeDevice());
    end_in_vain(s);
    begin(s);
    RETURNS(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
            aclrtMemcpyAsync(device, sizeof pageable, pageable, sizeof pageable, ACL_MEMCPY_HOST_TO_DEVICE, s));
    end_in_vain(s);
    begin(s);
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtRecordEvent(plain, s));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtRecordEvent(old, s));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtRecordEvent(unwaitable, s));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtStreamWaitEvent(s, old));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(old, s));
    OK(aclmdlRICaptureEnd(s, &model));
    OK(aclmdlRIDestroy(model));
    OK(aclrtDestroyEvent(plain));
    OK(aclrtDestroyEvent(old));
    OK(aclrtDestroyEvent(unwaitable));
    OK(aclrtFree(device));
}

static aclrtContext context;
static sem_t waits;
static int code;

static void *synchronize_device(void *unused)
{
    OK(aclrtSetCurrentContext(context));
    sem_post(&waits);
    code = aclrtSynchronizeDevice();
    return unused;
}

/* After an abort of the device waits say so, and the streams that lost work report it. */
static void an_abort_of_the_device(aclrtStream s)
{
    gate held;
    int n = 0;
    pthread_t thread;
    OK(aclrtGetCurrentContext(&context));
    hold(&held, s);
    OK(aclrtLaunchHostFunc(s, add_one, &n));
    CHECK(pthread_create(&thread, NULL, synchronize_device, NULL) == 0);
    sem_wait(&waits);
    RETURNS(ACL_ERROR_RT_WAIT_TIMEOUT, aclrtDeviceTaskAbort(0, 10)); /* the function runs on */
    open_gate(&held);
    pthread_join(thread, NULL);
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_DEVICE_TASK_ABORT); /* it may have begun to wait afterwards */
    RETURNS(ACL_ERROR_RT_DEVICE_TASK_ABORT, aclrtSynchronizeStream(s));
    OK(aclrtSynchronizeStream(s));
    CHECK(n == 0);
}

static uint32_t told[3];

static void failed(aclrtExceptionInfo *info)
{
    told[0] = aclrtGetErrorCodeFromExceptionInfo(info);
    told[1] = aclrtGetDeviceIdFromExceptionInfo(info);
    told[2] = aclrtGetStreamIdFromExceptionInfo(info);
}

static void an_exception(aclrtStream s, aclrtStream t)
{
    gate held;
    aclrtEvent event;
    int32_t id;
    OK(aclrtSetExceptionInfoCallback(failed));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    hold(&held, s);
    OK(aclrtRecordEvent(event, s));
    OK(aclrtStreamWaitEventWithTimeout(t, event, 1));
    RETURNS(ACL_ERROR_RT_TASK_TIMEOUT, aclrtSynchronizeStream(t));
    OK(aclrtStreamGetId(t, &id));
    CHECK(told[0] == ACL_ERROR_RT_TASK_TIMEOUT && told[1] == 0 && told[2] == (uint32_t)id);
    CHECK(aclrtGetStreamIdFromExceptionInfo(NULL) == 0xFFFFFFFFU);
    open_gate(&held);
    OK(aclrtSynchronizeStream(s));
    OK(aclrtDestroyEvent(event));
}

int main(void)
{
    aclrtStream s, t;
    aclrtStreamAttrValue value;
    int64_t cores;
    sem_init(&waits, 0, 0);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    OK(aclrtCreateStream(&t));
    a_model_under_way(s, t);
    refused_while_capturing(s);
    an_abort_of_the_device(s);
    an_exception(s, t);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICPU_CORE_NUM, &cores));
    CHECK(cores > 0);
    value.cacheOpInfoSwitch = 1;
    OK(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_CACHE_OP_INFO, &value));
    value.cacheOpInfoSwitch = 0;
    OK(aclrtGetStreamAttribute(s, ACL_STREAM_ATTR_CACHE_OP_INFO, &value));
    CHECK(value.cacheOpInfoSwitch == 1);
    OK(aclrtDestroyStream(s));
    OK(aclrtDestroyStream(t));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
