/* Callbacks that follow each other on a subscribed stream. */
#include "check.h"

#include <pthread.h>

enum { MANY = 3000 };

static int ran[2 * MANY + 10], count, stop;
static aclrtContext context;
static pthread_t reports;

static void note(void *number)
{
    CHECK(pthread_equal(pthread_self(), reports));
    ran[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)] = (int)(intptr_t)number;
}

static void launch(aclrtStream stream, int number)
{
    OK(aclrtLaunchCallback(note, (void *)(intptr_t)number, ACL_CALLBACK_BLOCK, stream));
}

/* The callback at the end of the stream runs, and waits for the gate. */
static void hold_callbacks(gate *g, aclrtStream stream)
{
    sem_init(&g->entered, 0, 0);
    sem_init(&g->opened, 0, 0);
    OK(aclrtLaunchCallback(pass_gate, g, ACL_CALLBACK_BLOCK, stream));
    sem_wait(&g->entered);
}

static void *take_reports(void *unused)
{
    (void)unused;
    OK(aclrtSetCurrentContext(context));
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        int code = aclrtProcessReport(50);
        CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_REPORT_TIMEOUT || code == ACL_ERROR_RT_THREAD_SUBSCRIBE);
    }
    return NULL;
}

/* More of them than wait in one place run once each, in order, on the thread that takes reports. */
static void all_run_in_order(aclrtStream stream)
{
    gate g;
    count = 0;
    hold_callbacks(&g, stream);
    for (int i = 0; i < MANY; i++) launch(stream, i);
    CHECK(stream_pending(stream) && count == 0);
    open_gate(&g);
    for (int i = MANY; i < 2 * MANY; i++) launch(stream, i);
    OK(aclrtSynchronizeStream(stream));
    CHECK(!stream_pending(stream) && count == 2 * MANY);
    for (int i = 0; i < 2 * MANY; i++) CHECK(ran[i] == i);
}

/* A record between two callbacks is done before the later one; one that does not block comes in its place. */
static void other_work_comes_between(aclrtStream stream)
{
    aclrtEvent event;
    gate g, later;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    count = 0;
    hold_callbacks(&g, stream);
    launch(stream, 0);
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtLaunchCallback(note, (void *)1, ACL_CALLBACK_NO_BLOCK, stream));
    sem_init(&later.entered, 0, 0);
    sem_init(&later.opened, 0, 0);
    OK(aclrtLaunchCallback(pass_gate, &later, ACL_CALLBACK_BLOCK, stream));
    launch(stream, 2);
    CHECK(!event_complete(event));
    open_gate(&g);
    OK(aclrtSynchronizeEventWithTimeout(event, 20000));
    sem_wait(&later.entered);
    CHECK(count == 2 && ran[0] == 0 && ran[1] == 1 && stream_pending(stream));
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 1));
    open_gate(&later);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == 3 && ran[2] == 2);
    OK(aclrtDestroyEvent(event));
}

/* One that does not block its stream does not do so behind others either. */
static void those_that_do_not_block_hold_nothing(aclrtStream stream)
{
    gate g, passing;
    hold_callbacks(&g, stream);
    sem_init(&passing.entered, 0, 0);
    sem_init(&passing.opened, 0, 0);
    OK(aclrtLaunchCallback(pass_gate, &passing, ACL_CALLBACK_NO_BLOCK, stream));
    open_gate(&g);
    OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
    sem_wait(&passing.entered);
    CHECK(!stream_pending(stream));
    open_gate(&passing);
    count = 0;
    launch(stream, 0);
    OK(aclrtSynchronizeStream(stream)); /* the thread is past the gate */
}

/* Each is pending until it has ended. */
static void a_query_waits_for_the_last(aclrtStream stream)
{
    for (int round = 0; round < 200; round++) {
        count = 0;
        launch(stream, 1);
        launch(stream, 2);
        OK(aclrtSynchronizeStream(stream));
        CHECK(count == 2 && !stream_pending(stream));
    }
}

static void drops_the_rest(aclrtStream stream)
{
    gate g;
    count = 0;
    hold_callbacks(&g, stream);
    for (int i = 0; i < 100; i++) launch(stream, i);
    OK(aclrtStreamAbort(stream));
    open_gate(&g);
    launch(stream, 100);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == 1 && ran[0] == 100);
}

static aclrtStream own;

static void calls(void *number)
{
    int32_t device;
    OK(aclrtGetDevice(&device));
    CHECK(stream_pending(own)); /* by this callback */
    if (number != NULL) OK(aclrtLaunchCallback(calls, (char *)number - 1, ACL_CALLBACK_BLOCK, own));
    note(number);
}

/* They may call the library, also to add others behind themselves. */
static void they_may_call(aclrtStream stream)
{
    own = stream;
    count = 0;
    OK(aclrtLaunchCallback(calls, (void *)100, ACL_CALLBACK_BLOCK, stream));
    for (int seen = 0; seen < 101;) {
        OK(aclrtSynchronizeStream(stream)); /* each for those that were there by then */
        seen = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    }
    for (int i = 0; i <= 100; i++) CHECK(ran[i] == 100 - i);
}

static void *without_a_context(void *stream)
{
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_BLOCK, stream));
    return NULL;
}

/* What is refused is refused also behind a callback that was accepted. */
static void the_rules_hold(aclrtStream stream, aclrtStream library)
{
    pthread_t other;
    gate g, held;
    aclrtContext another;
    count = 0;
    hold_callbacks(&g, stream);
    launch(stream, 0);
    RETURNS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtLaunchHostFunc(stream, note, NULL));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtLaunchCallback(note, NULL, (aclrtCallbackBlockType)2, stream));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, stream));
    CHECK(pthread_create(&other, NULL, without_a_context, stream) == 0);
    pthread_join(other, NULL);
    OK(aclrtCreateContext(&another, 0));
    RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtDestroyContext(another));
    OK(aclrtSetCurrentContext(context));
    hold(&held, library);
    sem_wait(&held.entered);
    RETURNS(ACL_ERROR_RT_STREAM_NO_CB_REG, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_BLOCK, library));
    open_gate(&held);
    OK(aclrtSynchronizeStream(library));
    launch(stream, 1);

    /* Without a subscription there are no further ones, and those that wait still run. */
    OK(aclrtUnSubscribeReport((uint64_t)reports, stream));
    RETURNS(ACL_ERROR_RT_STREAM_NO_CB_REG, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_BLOCK, stream));
    RETURNS(ACL_ERROR_RT_STREAM_NO_CB_REG, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_NO_BLOCK, stream));
    open_gate(&g);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == 2 && ran[0] == 0 && ran[1] == 1);
    OK(aclrtSubscribeReport((uint64_t)reports, stream));
    launch(stream, 2);
    OK(aclrtSynchronizeStream(stream));
    CHECK(count == 3 && ran[2] == 2);
}

static int seen, rounds;

static void see(void *unused)
{
    (void)unused;
    __atomic_store_n(&seen, 1, __ATOMIC_RELEASE);
}

/* Adds itself behind itself until the callback of the other stream has run. */
static void again(void *stream)
{
    rounds++;
    if (!__atomic_load_n(&seen, __ATOMIC_ACQUIRE))
        OK(aclrtLaunchCallback(again, stream, ACL_CALLBACK_BLOCK, stream));
}

/* One thread takes the reports of two streams: those of one do not keep it for as long as others follow them. */
static void one_stream_does_not_keep_the_thread(void)
{
    aclrtStream urgent, patient;
    gate g;
    OK(aclrtCreateStreamWithConfig(&urgent, 0, 0));
    OK(aclrtCreateStreamWithConfig(&patient, 7, 0));
    OK(aclrtSubscribeReport((uint64_t)reports, urgent));
    OK(aclrtSubscribeReport((uint64_t)reports, patient));
    hold_callbacks(&g, patient);
    OK(aclrtLaunchCallback(again, patient, ACL_CALLBACK_BLOCK, patient));
    open_gate(&g);
    OK(aclrtLaunchCallback(see, NULL, ACL_CALLBACK_BLOCK, urgent));
    OK(aclrtSynchronizeStreamWithTimeout(urgent, 20000));
    OK(aclrtSynchronizeStreamWithTimeout(patient, 20000));
    CHECK(rounds > 0);
    OK(aclrtUnSubscribeReport((uint64_t)reports, urgent));
    OK(aclrtUnSubscribeReport((uint64_t)reports, patient));
    OK(aclrtDestroyStream(urgent));
    OK(aclrtDestroyStream(patient));
}

static void takes_others(void *entered)
{
    sem_post((sem_t *)entered);
    OK(aclrtProcessReport(20000));
    note((void *)1);
}

/* A callback may take the reports of another stream; those behind it on its own wait. */
static void one_takes_others(aclrtStream stream)
{
    aclrtStream other;
    sem_t entered;
    OK(aclrtCreateStream(&other));
    OK(aclrtSubscribeReport((uint64_t)reports, other));
    count = 0;
    sem_init(&entered, 0, 0);
    OK(aclrtLaunchCallback(takes_others, &entered, ACL_CALLBACK_BLOCK, stream));
    launch(stream, 2);
    sem_wait(&entered);
    launch(other, 0);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeStream(other));
    CHECK(count == 3 && ran[1] == 1 && ran[2] == 2 && ran[0] == 0);
    OK(aclrtUnSubscribeReport((uint64_t)reports, other));
    OK(aclrtDestroyStream(other));
}

int main(void)
{
    aclrtStream stream, library;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&library));
    CHECK(pthread_create(&reports, NULL, take_reports, NULL) == 0);
    OK(aclrtSubscribeReport((uint64_t)reports, stream));
    all_run_in_order(stream);
    other_work_comes_between(stream);
    those_that_do_not_block_hold_nothing(stream);
    a_query_waits_for_the_last(stream);
    drops_the_rest(stream);
    they_may_call(stream);
    the_rules_hold(stream, library);
    one_stream_does_not_keep_the_thread();
    one_takes_others(stream);
    OK(aclrtUnSubscribeReport((uint64_t)reports, stream));
    RETURNS(ACL_ERROR_RT_STREAM_NO_CB_REG, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_BLOCK, stream));
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(reports, NULL);
    OK(aclrtDestroyStream(library));
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
