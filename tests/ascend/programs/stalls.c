/* ./stalls lock | locks | holder | event | value | report | callback | pause | abort | destroy: waits that can never end;
 * ./stalls slow | thread | signal | limit | each: that can. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t ready;
static int begun;

static void take_the_lock(void *unused)
{
    (void)unused;
    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void take_two(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(second);
}

static void take_in_order(void *unused)
{
    (void)unused;
    take_two(&mutex, &other);
}

static void take_in_reverse(void *unused)
{
    (void)unused;
    take_two(&other, &mutex);
}

static void *reverse_thread(void *unused)
{
    take_in_reverse(unused);
    return NULL;
}

static void take_the_other_lock(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&other);
}

static void wait_for_a_signal(void *unused)
{
    (void)unused;
    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
    pause();
}

static void wait_for_it(void *unused)
{
    (void)unused;
    while (sem_wait(&ready) != 0) continue;
}

static void *give_it_late(void *unused)
{
    (void)unused;
    sleep(2);
    sem_post(&ready);
    return NULL;
}

static void on_alarm(int number)
{
    (void)number;
    sem_post(&ready);
}

static int counted;

static void count_it(void *unused)
{
    (void)unused;
    counted++;
}

static void sleep_long(void *unused)
{
    (void)unused;
    sleep(2);
}

static void sleep_a_while(void *unused)
{
    (void)unused;
    usleep(300000); /* longer than a wait goes on before it is looked at */
}

/* -1 as a limit is none. */
static int each_ends(aclrtStream stream)
{
    aclrtEvent event;
    aclmdlRI model;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtLaunchHostFunc(stream, sleep_a_while, NULL));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeEventWithTimeout(event, -1));
    CHECK(event_complete(event));
    OK(aclrtLaunchHostFunc(stream, sleep_a_while, NULL));
    OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    CHECK(!stream_pending(stream));
    OK(aclrtLaunchHostFunc(stream, sleep_a_while, NULL));
    OK(aclrtSynchronizeDeviceWithTimeout(-1));
    CHECK(!stream_pending(stream));
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtLaunchHostFunc(stream, sleep_a_while, NULL));
    OK(aclrtLaunchHostFunc(stream, count_it, NULL));
    OK(aclmdlRICaptureEnd(stream, &model));
    OK(aclmdlRIExecute(model, -1));
    CHECK(counted == 1);
    OK(aclmdlRIDestroy(model));
    return done();
}

static int ends(const char *how, aclrtStream stream)
{
    if (strcmp(how, "each") == 0) return each_ends(stream);
    pthread_t thread;
    OK(aclrtLaunchHostFunc(stream, strcmp(how, "slow") == 0 ? sleep_long : wait_for_it, NULL));
    if (strcmp(how, "thread") == 0) CHECK(pthread_create(&thread, NULL, give_it_late, NULL) == 0);
    if (strcmp(how, "limit") == 0) {
        RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 1500));
        sem_post(&ready);
    }
    if (strcmp(how, "signal") == 0) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_alarm;
        CHECK(sigaction(SIGALRM, &action, NULL) == 0);
        alarm(2);
    }
    OK(aclrtSynchronizeStream(stream));
    if (strcmp(how, "thread") == 0) pthread_join(thread, NULL);
    return done();
}

static void *take_reports(void *unused)
{
    (void)unused;
    for (;;) (void)aclrtProcessReport(100); /* it is not subscribed at first */
    return NULL;
}

static int never_ends(const char *how, aclrtStream stream)
{
    aclrtEvent event;
    void *word;
    if (strcmp(how, "lock") == 0) {
        pthread_mutex_lock(&mutex);
        OK(aclrtLaunchHostFunc(stream, take_the_lock, NULL));
    } else if (strcmp(how, "locks") == 0) {
        aclrtStream second;
        OK(aclrtCreateStream(&second));
        pthread_barrier_init(&both, NULL, 2);
        OK(aclrtLaunchHostFunc(stream, take_in_order, NULL));
        OK(aclrtLaunchHostFunc(second, take_in_reverse, NULL));
    } else if (strcmp(how, "holder") == 0) {
        pthread_t holder;
        pthread_barrier_init(&both, NULL, 2);
        CHECK(pthread_create(&holder, NULL, reverse_thread, NULL) == 0);
        pthread_mutex_lock(&mutex);
        pthread_barrier_wait(&both);
        OK(aclrtLaunchHostFunc(stream, take_the_other_lock, NULL));
    } else if (strcmp(how, "abort") == 0) {
        pthread_mutex_lock(&mutex);
        OK(aclrtLaunchHostFunc(stream, take_the_lock, NULL));
        while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) sched_yield();
        RETURNS(ACL_ERROR_RT_WAIT_TIMEOUT, aclrtDeviceTaskAbort(0, 0)); /* a function that runs cannot be ended */
        return done();
    } else if (strcmp(how, "destroy") == 0) {
        pthread_mutex_lock(&mutex);
        OK(aclrtLaunchHostFunc(stream, take_the_lock, NULL));
        RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtDestroyStream(stream));
        pthread_mutex_unlock(&mutex);
        OK(aclrtSynchronizeStream(stream)); /* it is there as before */
        OK(aclrtDestroyStream(stream));
        RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStream(stream));
        return done();
    } else if (strcmp(how, "callback") == 0 || strcmp(how, "pause") == 0) {
        pthread_t reports;
        aclrtCallback waits = strcmp(how, "pause") == 0 ? wait_for_a_signal : take_the_lock;
        pthread_mutex_lock(&mutex);
        CHECK(pthread_create(&reports, NULL, take_reports, NULL) == 0);
        OK(aclrtSubscribeReport((uint64_t)reports, stream));
        for (int i = 0; i < 2; i++) OK(aclrtLaunchCallback(waits, NULL, ACL_CALLBACK_BLOCK, stream));
        while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) sched_yield();
    } else if (strcmp(how, "event") == 0) {
        OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
        OK(aclrtStreamWaitEvent(stream, event));
    } else if (strcmp(how, "value") == 0) {
        OK(aclrtMallocHost(&word, sizeof(uint64_t)));
        memset(word, 0, sizeof(uint64_t));
        OK(aclrtValueWait(word, 1, 1, stream));
    } else {
        OK(aclrtSubscribeReport((uint64_t)pthread_self(), stream));
        OK(aclrtLaunchCallback(take_the_lock, NULL, ACL_CALLBACK_BLOCK, stream));
    }
    int code = aclrtSynchronizeStream(stream);
    CHECK(code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    puts(aclGetRecentErrMsg());
    fflush(stdout);
    _exit(4);
}

int main(int argc, char **argv)
{
    aclrtStream stream;
    CHECK(argc == 2);
    sem_init(&ready, 0, 0);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    static const char *const fine[] = {"slow", "thread", "signal", "limit", "each"};
    for (int i = 0; i < 5; i++)
        if (strcmp(argv[1], fine[i]) == 0) return ends(fine[i], stream);
    return never_ends(argv[1], stream);
}
