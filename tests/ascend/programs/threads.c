/* Contexts, two devices, and threads that come and go. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 40 };

static aclrtContext shared;

static void add_one(void *pointer) { __atomic_add_fetch((int *)pointer, 1, __ATOMIC_RELAXED); }

static void *work(void *pointer)
{
    aclrtStream stream;
    aclrtEvent event;
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateStream(&stream)); /* a new thread has no context */
    CHECK(aclGetRecentErrMsg() != NULL && aclGetRecentErrMsg() == NULL);
    OK(aclrtSetCurrentContext(shared));
    for (int i = 0; i < ROUNDS; i++) {
        OK(aclrtCreateStream(&stream));
        OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
        OK(aclrtLaunchHostFunc(stream, add_one, pointer));
        OK(aclrtRecordEvent(event, stream));
        OK(aclrtSynchronizeEvent(event));
        OK(aclrtDestroyEvent(event));
        OK(aclrtDestroyStream(stream));
        RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(stream));
    }
    return NULL;
}

static void *one_call(void *unused)
{
    OK(aclrtSetDevice(1));
    OK(aclrtResetDevice(1));
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    int n = 0;
    uint32_t devices;
    int32_t device, peer;
    aclrtContext primary, own, now;
    aclrtStream a, b, standing;
    aclrtEvent event;
    OK(aclInit(NULL));
    OK(aclrtGetDeviceCount(&devices));
    CHECK(devices == 2);
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
    RETURNS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(2));
    RETURNS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(-1));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtCreateStream(&a));
    OK(aclrtCreateContext(&own, 1));
    OK(aclrtGetCurrentContext(&now));
    CHECK(now == own && own != primary);
    OK(aclrtGetDevice(&device));
    CHECK(device == 1);
    OK(aclrtCreateStream(&b));
    OK(aclrtCtxGetCurrentDefaultStream(&standing));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtDestroyStream(standing));

    /* Streams take work only where their context is current; waits of the host are free. */
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtRecordEvent(event, a));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtLaunchHostFunc(a, add_one, &n));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtDestroyStream(a));
    OK(aclrtSynchronizeStream(a));
    CHECK(!stream_pending(a));

    /* An event of one device, waited for on the other. */
    gate g;
    hold(&g, b);
    OK(aclrtRecordEvent(event, b));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtStreamWaitEvent(a, event));
    CHECK(stream_pending(a));
    open_gate(&g);
    OK(aclrtSynchronizeStream(a));
    OK(aclrtDeviceCanAccessPeer(&peer, 0, 1));
    CHECK(peer == 1);
    for (int i = 0; i < 2; i++) OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtDeviceDisablePeerAccess(1));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtDeviceEnablePeerAccess(1, 1));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtDeviceCanAccessPeer(&peer, 0, 0));
    CHECK(peer == 0);
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDestroyContext(primary));
    OK(aclrtDestroyContext(own));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSetCurrentContext(own));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(b));

    shared = primary;
    for (int again = 1; again <= 2; again++) { /* the second time in place of threads that have ended */
        for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, &n) == 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        CHECK(n == again * THREADS * ROUNDS);
    }
    for (int i = 0; i < 300; i++) {
        CHECK(pthread_create(&threads[0], NULL, one_call, NULL) == 0);
        pthread_join(threads[0], NULL);
    }
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(a));
    OK(aclrtSetDevice(0));
    OK(aclrtResetDeviceForce(0));
    RETURNS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
