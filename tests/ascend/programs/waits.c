/* The four ways to wait: for an event, a stream, another stream's event, a device. */
#include "check.h"

#include <string.h>

enum { SIZE = 1 << 16 };

static void add_one(void *pointer) { ++*(int *)pointer; }

static void wait_for_an_event(void)
{
    int before = 0, after = 0;
    gate g;
    aclrtEvent event;
    aclrtStream stream;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_CAPTURE_STREAM_PROGRESS));
    OK(aclrtCreateStream(&stream));
    OK(aclrtSynchronizeEvent(event)); /* never recorded */
    OK(aclrtLaunchHostFunc(stream, add_one, &before));
    OK(aclrtRecordEvent(event, stream));
    hold(&g, stream);
    OK(aclrtLaunchHostFunc(stream, add_one, &after));
    OK(aclrtSynchronizeEvent(event)); /* not what comes behind the record */
    CHECK(before == 1 && stream_pending(stream));
    open_gate(&g);
    OK(aclrtSynchronizeStream(stream));
    CHECK(after == 1 && !stream_pending(stream));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtStreamWaitEvent(stream, event));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyEvent(event)); /* behind its stream */
}

static void wait_for_a_stream(void)
{
    static char source[SIZE], result[SIZE];
    void *pinned, *device;
    aclrtStream stream;
    gate g;
    memset(source, 1, SIZE);
    OK(aclrtMallocHost(&pinned, SIZE));
    OK(aclrtMalloc(&device, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtCreateStream(&stream));
    hold(&g, stream);
    memset(pinned, 1, SIZE);
    OK(aclrtMemcpyAsync(device, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(stream_pending(stream));
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 20));
    memset(pinned, 2, SIZE); /* a pinned source is read when the copy runs */
    open_gate(&g);
    OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    OK(aclrtMemcpy(result, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(result[0] == 2 && result[SIZE - 1] == 2);
    OK(aclrtMemcpyAsync(device, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    memset(source, 3, SIZE); /* a pageable one within the call */
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(result[0] == 1 && result[SIZE - 1] == 1);
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(device));
    OK(aclrtFreeHost(pinned));
}

typedef struct seen {
    int *first, at;
} seen;

static void look(void *pointer)
{
    seen *s = (seen *)pointer;
    s->at = *s->first;
}

static void wait_for_another_stream(void)
{
    int first = 0;
    seen s = {&first, -1};
    gate g;
    aclrtEvent event;
    aclrtStream s1, s2, s3;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtCreateStream(&s1));
    OK(aclrtCreateStream(&s2));
    OK(aclrtCreateStream(&s3));
    OK(aclrtStreamWaitEvent(s2, event)); /* never recorded: nothing to wait for */
    hold(&g, s1);
    OK(aclrtLaunchHostFunc(s1, add_one, &first));
    OK(aclrtRecordEvent(event, s1));
    OK(aclrtStreamWaitEvent(s2, event));
    OK(aclrtStreamWaitEvent(s3, event));
    OK(aclrtStreamWaitEvent(s1, event)); /* on its own stream: nothing */
    OK(aclrtDestroyEvent(event));        /* the waits keep their meaning */
    OK(aclrtLaunchHostFunc(s2, look, &s));
    CHECK(stream_pending(s2) && stream_pending(s3));
    open_gate(&g);
    OK(aclrtSynchronizeStream(s2));
    CHECK(s.at == 1);
    OK(aclrtSynchronizeStream(s3));
    OK(aclrtDestroyStream(s3));
    OK(aclrtDestroyStream(s2));
    OK(aclrtDestroyStream(s1));
}

static void wait_for_the_device(void)
{
    int n = 0, m = 0;
    aclrtStream stream;
    gate g;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    hold(&g, stream);
    OK(aclrtLaunchHostFunc(stream, add_one, &n));
    OK(aclrtLaunchHostFunc(NULL, add_one, &m)); /* the default stream is just another one */
    OK(aclrtSynchronizeStream(NULL));
    CHECK(m == 1 && n == 0);
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDeviceWithTimeout(20));
    open_gate(&g);
    OK(aclrtSynchronizeDevice());
    CHECK(n == 1);
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
}

int main(void)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    wait_for_an_event();
    wait_for_a_stream();
    wait_for_another_stream();
    wait_for_the_device();
    OK(aclrtResetDevice(0));
    RETURNS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
