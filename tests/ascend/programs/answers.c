/* Queries of streams and events. */
#include "check.h"

#include <pthread.h>

enum { ROUNDS = 200, PLACES = 1200 };

/* The latest record counts, whichever stream it is on. */
static void the_latest_record_counts(aclrtStream one, aclrtStream two)
{
    aclrtEvent event;
    gate first, second;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    CHECK(event_complete(event));
    OK(aclrtRecordEvent(event, one));
    OK(aclrtSynchronizeStream(one));
    CHECK(event_complete(event) && !stream_pending(one));
    hold(&first, one);
    CHECK(event_complete(event) && stream_pending(one));
    OK(aclrtRecordEvent(event, one));
    CHECK(!event_complete(event));
    hold(&second, two);
    OK(aclrtRecordEvent(event, two));
    open_gate(&first);
    OK(aclrtSynchronizeStream(one));
    CHECK(!event_complete(event) && !stream_pending(one) && stream_pending(two));
    open_gate(&second);
    OK(aclrtSynchronizeEvent(event));
    CHECK(event_complete(event));
    OK(aclrtDestroyEvent(event));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeEvent(event));
}

/* A record behind a capture that has recorded the event is one of the stream, whoever makes it. */
static void a_record_follows_one_in_a_capture(aclrtStream one, aclrtStream two)
{
    aclrtEvent event;
    aclmdlRI model;
    void *device;
    gate first;
    OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclmdlRICaptureBegin(one, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    OK(aclrtRecordEvent(event, one));
    OK(aclmdlRICaptureEnd(one, &model));
    OK(aclmdlRIDestroy(model));
    hold(&first, one);
    OK(aclrtMemsetAsync(device, 64, 1, 64, one));
    OK(aclrtRecordEvent(event, one));
    OK(aclrtStreamWaitEvent(two, event));
    CHECK(stream_pending(two) && !event_complete(event));
    open_gate(&first);
    OK(aclrtSynchronizeStream(two));
    CHECK(event_complete(event));
    OK(aclrtDestroyEvent(event));
    OK(aclrtFree(device));
}

/* A handle of another kind, or an old one whose place is another object's now, is refused. */
static void only_the_right_handle_is_known(aclrtStream stream)
{
    aclrtEventRecordedStatus recorded;
    aclrtStreamStatus status;
    aclrtEvent old, event;
    OK(aclrtCreateEventExWithFlag(&old, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(old, stream));
    OK(aclrtSynchronizeStream(stream));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtQueryEventStatus(stream, &recorded));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamQuery(old, &status));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtQueryEventStatus(old, NULL));
    OK(aclrtDestroyEvent(old));
    for (int i = 0; i < 2 * PLACES; i++) {
        OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
        OK(aclrtRecordEvent(event, stream));
        RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtQueryEventStatus(old, &recorded));
        OK(aclrtDestroyEvent(event));
    }
}

/* An error of a stream is reported by a query, once. */
static void an_error_is_not_passed_over(aclrtStream one, aclrtStream two)
{
    aclrtEvent event;
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    gate held;
    int code = 0;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    hold(&held, one);
    OK(aclrtRecordEvent(event, one));
    OK(aclrtStreamWaitEventWithTimeout(two, event, 1));
    while (code == 0 && status == ACL_STREAM_STATUS_NOT_READY) code = aclrtStreamQuery(two, &status);
    CHECK(code != 0);
    CHECK(aclGetRecentErrMsg() != NULL);
    OK(aclrtStreamQuery(two, &status));
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    open_gate(&held);
    OK(aclrtSynchronizeStream(one));
    OK(aclrtDestroyEvent(event));
}

typedef struct asked {
    aclrtStream stream;
    aclrtEvent event;
    int codes[3];
} asked;

/* A function on a stream may not call the library, whatever the answer would be. */
static void ask(void *pointer)
{
    asked *a = (asked *)pointer;
    aclrtStreamStatus status;
    aclrtEventRecordedStatus recorded;
    a->codes[0] = aclrtStreamQuery(a->stream, &status);
    a->codes[1] = aclrtQueryEventStatus(a->event, &recorded);
    a->codes[2] = aclrtSynchronizeStream(a->stream);
}

static void a_function_gets_no_answer(aclrtStream one, aclrtStream two)
{
    asked a = {two, NULL, {0, 0, 0}};
    OK(aclrtCreateEventExWithFlag(&a.event, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(a.event, two));
    OK(aclrtSynchronizeStream(two));
    OK(aclrtLaunchHostFunc(one, ask, &a));
    OK(aclrtSynchronizeStream(one));
    CHECK(a.codes[0] != 0 && a.codes[0] == a.codes[1] && a.codes[1] == a.codes[2]);
    OK(aclrtDestroyEvent(a.event));
}

static aclrtEvent shared;
static aclrtContext context;

static void *record_often(void *unused)
{
    (void)unused;
    aclrtStream own;
    OK(aclrtSetCurrentContext(context));
    OK(aclrtCreateStream(&own));
    for (int i = 0; i < ROUNDS; i++) OK(aclrtRecordEvent(shared, own));
    OK(aclrtSynchronizeStream(own));
    OK(aclrtDestroyStream(own));
    return NULL;
}

/* Two threads record one event: in the end the answer is that of the latest record. */
static void records_of_two_threads(aclrtStream stream)
{
    pthread_t threads[2];
    gate held;
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtCreateEventExWithFlag(&shared, ACL_EVENT_SYNC));
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, record_often, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) (void)event_complete(shared);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK(event_complete(shared));
    hold(&held, stream);
    OK(aclrtRecordEvent(shared, stream));
    CHECK(!event_complete(shared));
    open_gate(&held);
    OK(aclrtSynchronizeEvent(shared));
    OK(aclrtDestroyEvent(shared));
}

int main(void)
{
    aclrtStream one, two;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&one));
    OK(aclrtCreateStream(&two));
    the_latest_record_counts(one, two);
    a_record_follows_one_in_a_capture(one, two);
    only_the_right_handle_is_known(one);
    an_error_is_not_passed_over(one, two);
    a_function_gets_no_answer(one, two);
    records_of_two_threads(one);
    OK(aclrtDestroyStream(two));
    OK(aclrtDestroyStream(one));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(one));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
