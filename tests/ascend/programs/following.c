/* Functions that follow each other on a stream. */
#include "check.h"

#include <pthread.h>
#include <string.h>

enum { MANY = 5000, THREADS = 4 };

static int ran[THREADS * MANY], count;
static aclrtStream shared;

static void note(void *number)
{
    int at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    ran[at] = (int)(intptr_t)number;
}

static void launch(aclrtStream stream, int number) { OK(aclrtLaunchHostFunc(stream, note, (void *)(intptr_t)number)); }

/* More of them than wait in one place run once each, and in order. */
static void all_run_in_order(aclrtStream stream)
{
    gate g;
    count = 0;
    hold(&g, stream);
    for (int i = 0; i < MANY; i++) launch(stream, i);
    CHECK(stream_pending(stream) && count == 0);
    open_gate(&g);
    for (int i = MANY; i < 2 * MANY; i++) launch(stream, i);
    OK(aclrtSynchronizeStream(stream));
    CHECK(!stream_pending(stream) && count == 2 * MANY);
    for (int i = 0; i < 2 * MANY; i++) CHECK(ran[i] == i);
}

/* What is enqueued between two functions comes between them. */
static void other_work_comes_between(aclrtStream one, aclrtStream two)
{
    aclrtEvent event;
    gate g;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    for (int round = 0; round < 50; round++) {
        count = 0;
        launch(one, 0);
        hold(&g, one);
        launch(one, 1);
        OK(aclrtRecordEvent(event, one));
        launch(one, 2);
        OK(aclrtStreamWaitEvent(two, event));
        launch(two, 3);
        CHECK(!event_complete(event) && stream_pending(two));
        open_gate(&g);
        OK(aclrtSynchronizeStream(two));
        OK(aclrtSynchronizeStream(one));
        CHECK(count == 4 && ran[0] == 0 && ran[1] == 1 && (ran[2] == 3 || ran[3] == 3));
    }
    OK(aclrtDestroyEvent(event));
}

/* A record is done before the functions behind it, which may wait for others. */
static void a_record_waits_for_no_later_function(aclrtStream stream)
{
    aclrtEvent event;
    gate g, later;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    hold(&g, stream);
    sem_wait(&g.entered);
    launch(stream, 0);
    OK(aclrtRecordEvent(event, stream));
    hold(&later, stream);
    CHECK(!event_complete(event));
    open_gate(&g);
    OK(aclrtSynchronizeEventWithTimeout(event, 20000));
    open_gate(&later);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyEvent(event));
}

/* A record behind other work than functions is one for every later call. */
static void a_record_is_known_to_every_call(aclrtStream one, aclrtStream two)
{
    aclrtEvent event, future;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtCreateEventWithFlag(&future, ACL_EVENT_SYNC));
    for (int round = 0; round < 3; round++) {
        count = 0;
        OK(aclrtStreamWaitEvent(one, future));
        OK(aclrtResetEvent(future, one));
        OK(aclrtRecordEvent(event, one));
        OK(aclrtStreamWaitEvent(two, event));
        launch(two, 1);
        RETURNS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(event, 1));
        RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(two, 10));
        CHECK(count == 0 && !event_complete(event));
        OK(aclrtRecordEvent(future, shared));
        OK(aclrtSynchronizeEventWithTimeout(event, 20000));
        OK(aclrtSynchronizeStream(two));
        CHECK(count == 1);
        OK(aclrtSynchronizeStream(one));
    }
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyEvent(future));
}

/* Each is pending until it has ended. */
static void a_query_waits_for_the_last(aclrtStream stream)
{
    gate g;
    for (int round = 0; round < 200; round++) {
        count = 0;
        launch(stream, 1);
        OK(aclrtSynchronizeStream(stream));
        CHECK(count == 1 && !stream_pending(stream));
    }
    launch(stream, 2);
    hold(&g, stream);
    sem_wait(&g.entered);
    CHECK(stream_pending(stream));
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 1));
    open_gate(&g);
    OK(aclrtSynchronizeStream(stream));
}

/* An abort drops what has not begun; the stream takes functions as before, also one with the place of another. */
static void an_abort_drops_the_rest(aclrtStream stream)
{
    gate g;
    count = 0;
    hold(&g, stream);
    sem_wait(&g.entered);
    for (int i = 0; i < 100; i++) launch(stream, i);
    OK(aclrtStreamAbort(stream));
    open_gate(&g);
    launch(stream, 100);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == 1 && ran[0] == 100);
    for (int i = 0; i < 1100; i++) { /* places of handles are used again after about a thousand */
        aclrtStream other;
        count = 0;
        OK(aclrtCreateStream(&other));
        launch(other, i);
        if (i % 2) OK(aclrtSynchronizeStream(other));
        OK(aclrtDestroyStream(other));
        CHECK(count == 1 && ran[0] == i);
    }
}

static aclrtContext context, another;

static void *without_a_context(void *unused)
{
    (void)unused;
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtLaunchHostFunc(shared, note, NULL));
    OK(aclrtSetCurrentContext(another));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtLaunchHostFunc(shared, note, NULL));
    return NULL;
}

/* The context is checked also behind a function that was enqueued with one. */
static void the_context_is_checked(aclrtStream stream)
{
    pthread_t thread;
    gate g;
    aclrtEvent event;
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtCreateContext(&another, 0));
    OK(aclrtSetCurrentContext(context));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    shared = stream;
    count = 0;
    hold(&g, stream);
    launch(stream, 0);
    CHECK(pthread_create(&thread, NULL, without_a_context, NULL) == 0);
    pthread_join(thread, NULL);
    OK(aclrtSetCurrentContext(another));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtLaunchHostFunc(stream, note, NULL));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtRecordEvent(event, stream));
    OK(aclrtSetCurrentContext(context));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSetCurrentContext(another));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtRecordEvent(event, stream));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtStreamWaitEvent(stream, event));
    OK(aclrtSetCurrentContext(context));
    open_gate(&g);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == 1);
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyContext(another));
    OK(aclrtSetCurrentContext(context));
}

/* A launch that fails takes the place of no function that waits. */
static void what_failed_takes_no_place(aclrtStream stream)
{
    enum { WAIT = 1500, FAIL = 1000, BEHIND = 400 };
    gate g;
    OK(aclrtCreateContext(&another, 0));
    OK(aclrtSetCurrentContext(context));
    count = 0;
    hold(&g, stream);
    sem_wait(&g.entered);
    for (int i = 0; i < WAIT; i++) launch(stream, i);
    OK(aclrtSetCurrentContext(another));
    for (int i = 0; i < FAIL; i++) RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtLaunchHostFunc(stream, note, (void *)-1));
    OK(aclrtSetCurrentContext(context));
    for (int i = WAIT; i < WAIT + BEHIND; i++) launch(stream, i);
    open_gate(&g);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == WAIT + BEHIND);
    for (int i = 0; i < WAIT + BEHIND; i++) CHECK(ran[i] == i);
    OK(aclrtDestroyContext(another));
    OK(aclrtSetCurrentContext(context));
}

static void *launch_many(void *number)
{
    int first = (int)(intptr_t)number * MANY;
    OK(aclrtSetCurrentContext(context));
    for (int i = 0; i < MANY; i++) launch(shared, first + i);
    OK(aclrtSynchronizeStream(shared));
    return NULL;
}

/* Threads add to one stream: each one's functions run in its order, and no two at once. */
static void threads_share_a_stream(aclrtStream stream)
{
    pthread_t threads[THREADS];
    int next[THREADS] = {0};
    shared = stream;
    count = 0;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, launch_many, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(count == THREADS * MANY);
    for (int i = 0; i < THREADS * MANY; i++) CHECK(ran[i] % MANY == next[ran[i] / MANY]++);
}

/* With one thread for functions those of an urgent stream come before the rest of others. */
static void urgent_functions_come_first(void)
{
    aclrtStream urgent, patient;
    gate g;
    OK(aclrtCreateStreamWithConfig(&urgent, 0, 0));
    OK(aclrtCreateStreamWithConfig(&patient, 7, 0));
    count = 0;
    hold(&g, patient);
    sem_wait(&g.entered);
    for (int i = 0; i < 100; i++) launch(patient, i);
    launch(urgent, 1000);
    open_gate(&g);
    OK(aclrtSynchronizeStream(patient));
    OK(aclrtSynchronizeStream(urgent));
    CHECK(count == 101 && ran[0] == 1000);
}

int main(int argc, char **argv)
{
    aclrtStream one, two;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    if (argc == 2 && strcmp(argv[1], "urgent") == 0) {
        urgent_functions_come_first();
        return done();
    }
    OK(aclrtCreateStream(&one));
    OK(aclrtCreateStream(&two));
    all_run_in_order(one);
    other_work_comes_between(one, two);
    a_record_waits_for_no_later_function(one);
    OK(aclrtCreateStream(&shared));
    a_record_is_known_to_every_call(one, two);
    OK(aclrtDestroyStream(shared));
    a_query_waits_for_the_last(one);
    an_abort_drops_the_rest(one);
    the_context_is_checked(one);
    what_failed_takes_no_place(one);
    threads_share_a_stream(one);
    OK(aclrtDestroyStream(two));
    OK(aclrtDestroyStream(one));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
