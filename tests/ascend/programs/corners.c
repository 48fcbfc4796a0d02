/* ./corners FILE: models of captures under way and what they are called, what a capture refuses, aborts, and what
 * callbacks for exceptions are told. */
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

static void count_end(void *pointer)
{
    int32_t device;
    OK(aclrtGetDevice(&device)); /* it may call */
    add_one(pointer);
}

/* Names, numbers and lists of models, and functions that are told of their end. */
static void what_models_are_called(aclrtStream s, const char *path)
{
    aclmdlRI first, second;
    uint32_t ids[2];
    char name[16] = "unset", file[4096] = "";
    int ends = 0, never = 0;
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtLaunchHostFunc(s, add_one, &never));
    OK(aclmdlRICaptureEnd(s, &first));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclmdlRICaptureEnd(s, &second));
    OK(aclmdlRIGetId(first, &ids[0]));
    OK(aclmdlRIGetId(second, &ids[1]));
    CHECK(ids[0] != ids[1]);
    OK(aclmdlRIGetName(first, sizeof name, name));
    CHECK(name[0] == 0);
    OK(aclmdlRISetName(first, "forward"));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclmdlRIGetName(first, 7, name));
    OK(aclmdlRIGetName(first, 8, name));
    CHECK(strcmp(name, "forward") == 0);
    OK(aclmdlRIDebugJsonPrint(first, path, 0));
    FILE *written = fopen(path, "r");
    CHECK(written != NULL && fread(file, 1, sizeof file - 1, written) > 0);
    fclose(written);
    CHECK(strstr(file, "\"forward\"") != NULL && strstr(file, "\"call\"") != NULL);
    RETURNS(ACL_ERROR_RT_FILE_OPEN, aclmdlRIDebugJsonPrint(first, "/no/such/folder/file", 0));
    OK(aclmdlRIDebugPrint(second));
    OK(aclmdlRIDestroyRegisterCallback(first, count_end, &ends));
    OK(aclmdlRIDestroyRegisterCallback(first, add_one, &never));
    OK(aclmdlRIDestroyUnregisterCallback(first, add_one));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclmdlRIDestroyUnregisterCallback(second, count_end));
    OK(aclmdlRIDestroy(second));
    CHECK(ends == 0);
    OK(aclmdlRIDestroy(first));
    CHECK(ends == 1 && never == 0);
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

/* An abort of the device ends waits for it, and the streams that were waited for report it, too. Nothing tells that
 * the thread waits already, so there are several rounds. */
static void an_abort_of_the_device(aclrtStream s)
{
    enum { ROUNDS = 200 };
    int n = 0, round = 0, seen = 0;
    OK(aclrtGetCurrentContext(&context));
    for (; round < ROUNDS && !seen; round++) {
        gate held;
        pthread_t thread;
        hold(&held, s);
        sem_wait(&held.entered);
        OK(aclrtLaunchHostFunc(s, add_one, &n));
        CHECK(pthread_create(&thread, NULL, synchronize_device, NULL) == 0);
        sem_wait(&waits);
        RETURNS(ACL_ERROR_RT_WAIT_TIMEOUT, aclrtDeviceTaskAbort(0, 5)); /* the function that runs goes on */
        open_gate(&held);
        pthread_join(thread, NULL);
        CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_DEVICE_TASK_ABORT);
        int of_stream = aclrtSynchronizeStream(s);
        CHECK(of_stream == ACL_SUCCESS || of_stream == ACL_ERROR_RT_DEVICE_TASK_ABORT);
        seen = code == of_stream && code != ACL_SUCCESS;
        OK(aclrtSynchronizeStream(s));
        CHECK(n == 0);
    }
    CHECK(seen);
}

static uint32_t told[3];
static int told_twice;

static void also_failed(aclrtExceptionInfo *info) { told_twice += aclrtGetErrorCodeFromExceptionInfo(info) != 0; }

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
    OK(aclrtExceptionInfoCallbackRegister(also_failed));
    OK(aclrtExceptionInfoCallbackRegister(also_failed)); /* it is called once */
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    hold(&held, s);
    OK(aclrtRecordEvent(event, s));
    OK(aclrtStreamWaitEventWithTimeout(t, event, 1));
    RETURNS(ACL_ERROR_RT_TASK_TIMEOUT, aclrtSynchronizeStream(t));
    OK(aclrtStreamGetId(t, &id));
    CHECK(told[0] == ACL_ERROR_RT_TASK_TIMEOUT && told[1] == 0 && told[2] == (uint32_t)id);
    CHECK(told_twice == 1 && aclrtGetStreamIdFromExceptionInfo(NULL) == 0xFFFFFFFFU);
    OK(aclrtExceptionInfoCallbackUnregister(also_failed));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtExceptionInfoCallbackUnregister(also_failed));
    open_gate(&held);
    OK(aclrtSynchronizeStream(s));
    OK(aclrtDestroyEvent(event));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2); /* where to write a file */
    aclrtStream s, t;
    aclrtStreamAttrValue value;
    int64_t cores;
    sem_init(&waits, 0, 0);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    OK(aclrtCreateStream(&t));
    a_model_under_way(s, t);
    what_models_are_called(s, argv[1]);
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
