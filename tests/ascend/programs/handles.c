/* Handles that name nothing, outputs that are NULL, and the texts of failures; before aclInit, too. */
#include "check.h"

#include <pthread.h>
#include <string.h>

/* The call fails with this code, and leaves a text. */
#define REFUSED(wanted, call)                                                                                          \
    do {                                                                                                               \
        RETURNS(wanted, call);                                                                                         \
        CHECK(aclGetRecentErrMsg() != NULL);                                                                           \
    } while (0)

static void *without_a_text(void *unused)
{
    CHECK(aclGetRecentErrMsg() == NULL); /* the failure is the other thread's */
    return unused;
}

static void texts(void)
{
    aclrtStream stream;
    pthread_t thread;
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateStream(&stream));
    CHECK(pthread_create(&thread, NULL, without_a_text, NULL) == 0);
    pthread_join(thread, NULL);
    const char *text = aclGetRecentErrMsg();
    CHECK(text != NULL && strstr(text, "aclrtCreateStream") && strstr(text, "107002") && strstr(text, "set a device"));
    CHECK(aclGetRecentErrMsg() == NULL); /* once */
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDeviceWithTimeout(1));
    CHECK(strstr(aclGetRecentErrMsg(), "aclrtSynchronizeDeviceWithTimeout") != NULL); /* which call it was */
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    OK(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
}

static void foreign(void *handle)
{
    aclrtStreamStatus stream;
    aclrtEventRecordedStatus event;
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamQuery(handle, &stream));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStream(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordEvent(handle, NULL));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtQueryEventStatus(handle, &event));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeEvent(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamWaitEvent(NULL, handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyEvent(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtSetCurrentContext(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyContext(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyNotify(handle));
    REFUSED(ACL_ERROR_RT_INVALID_HANDLE, aclmdlRIDestroy(handle));
}

static void missing(aclrtStream stream, aclrtEvent event)
{
    size_t size;
    float ms;
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtCreateStream(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtCreateEvent(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtCreateEventExWithFlag(NULL, ACL_EVENT_SYNC));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtCreateContext(NULL, 0));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtGetCurrentContext(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtGetDevice(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtGetRunMode(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtStreamQuery(stream, NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtQueryEventStatus(event, NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtEventElapsedTime(NULL, event, event));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtEventElapsedTime(&ms, NULL, event));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtMalloc(NULL, 1, ACL_MEM_MALLOC_NORMAL_ONLY));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtMallocHost(NULL, 1));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, &size, NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtCreateNotify(NULL, ACL_NOTIFY_DEFAULT));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtDestroyStream(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtDestroyEvent(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtRecordEvent(NULL, stream));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtSetCurrentContext(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtFree(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtFreeHost(NULL));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtLaunchHostFunc(stream, NULL, NULL));
}

static void memory(void)
{
    char host[64];
    void *device;
    OK(aclrtMalloc(&device, sizeof host, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK((uintptr_t)device % 64 == 0);
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(NULL, 1, host, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(device, 1, NULL, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    REFUSED(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(device, 1, host, 1, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE));
    REFUSED(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(device, 1, host, 2, ACL_MEMCPY_HOST_TO_DEVICE));
    REFUSED(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(device, 1, 0, 2));
    REFUSED(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMemcpyAsync(host, 64, host, 1, ACL_MEMCPY_HOST_TO_HOST, NULL));
    REFUSED(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpyAsync(host, 64, device, 1, ACL_MEMCPY_HOST_TO_DEVICE, NULL));
    REFUSED(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpyAsync(host, 64, device, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
    OK(aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_DEVICE)); /* nothing to copy */
    OK(aclrtFree(device));
    CHECK(aclrtFree(device) != ACL_SUCCESS);
    CHECK(aclrtFree(host) != ACL_SUCCESS);
}

int main(void)
{
    int32_t major, minor, patch;
    uint64_t left;
    aclrtStream stream, other;
    aclrtEvent event;
    texts(); /* before aclInit */
    OK(aclInit(NULL));
    RETURNS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(NULL)); /* it counts all the same */
    CHECK(aclInit("no such file") / 1000 == 100);
    OK(aclrtGetVersion(&major, &minor, &patch));
    CHECK(major == ACL_MAJOR_VERSION && minor == ACL_MINOR_VERSION && patch == ACL_PATCH_VERSION);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    foreign(&stream);
    foreign((void *)16);
    foreign((void *)(uintptr_t)-1);
    foreign((char *)stream + 1);
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(event)); /* of another kind */
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordEvent(stream, stream));
    missing(stream, event);
    memory();
    OK(aclrtDestroyEvent(event));
    for (int i = 0; i < 3000; i++) { /* no later object gets the handle */
        OK(aclrtCreateEventExWithFlag(&other, ACL_EVENT_SYNC));
        CHECK(other != event);
        OK(aclrtDestroyEvent(other));
    }
    foreign(event);
    OK(aclrtDestroyStream(stream));
    foreign(stream);
    OK(aclrtResetDevice(0));
    OK(aclFinalizeReference(&left));
    CHECK(left == 1);
    OK(aclFinalize());
    RETURNS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize());
    RETURNS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&left));
    return done();
}
