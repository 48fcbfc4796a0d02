/* Functions of the host: on threads of the library, and on a thread that takes reports. */
#include "check.h"

#include <pthread.h>
#include <signal.h>

static pthread_t main_thread, report_thread;
static int order[8], count;
static sem_t subscribed, ended;
static volatile int stop;

static void note(void *number) { order[count++] = (int)(intptr_t)number; }

static void on_a_thread_of_the_library(void *refused)
{
    sigset_t blocked;
    CHECK(!pthread_equal(pthread_self(), main_thread));
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    CHECK(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM));
    *(int *)refused = aclrtSetDevice(0); /* the runtime may not be called here */
}

static void *take_reports(void *unused)
{
    (void)unused;
    RETURNS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtProcessReport(0));
    sem_post(&ended);
    sem_wait(&subscribed);
    RETURNS(ACL_ERROR_RT_REPORT_TIMEOUT, aclrtProcessReport(10));
    sem_post(&ended);
    while (!stop) {
        int code = aclrtProcessReport(-1);
        CHECK(code == 0);
    }
    return NULL;
}

static void on_the_report_thread(void *number)
{
    int32_t device;
    CHECK(pthread_equal(pthread_self(), report_thread));
    OK(aclrtSetDevice(0)); /* it may call */
    OK(aclrtGetDevice(&device));
    OK(aclrtResetDevice(0));
    note(number);
}

static void last(void *unused)
{
    (void)unused;
    stop = 1;
}

int main(void)
{
    int refused = 0;
    aclrtStream library, reports;
    gate g;
    main_thread = pthread_self();
    sem_init(&subscribed, 0, 0);
    sem_init(&ended, 0, 0);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&library));
    OK(aclrtCreateStream(&reports));

    OK(aclrtLaunchHostFunc(library, on_a_thread_of_the_library, &refused));
    for (intptr_t i = 0; i < 3; i++) OK(aclrtLaunchHostFunc(library, note, (void *)i));
    OK(aclrtSynchronizeStream(library));
    CHECK(count == 3 && order[0] == 0 && order[1] == 1 && order[2] == 2);
    CHECK(refused == ACL_ERROR_RT_NO_PERMISSION);
    RETURNS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtSubscribeReport((uint64_t)main_thread, library));

    RETURNS(ACL_ERROR_RT_STREAM_NO_CB_REG, aclrtLaunchCallback(note, NULL, ACL_CALLBACK_BLOCK, reports));
    CHECK(pthread_create(&report_thread, NULL, take_reports, NULL) == 0);
    sem_wait(&ended);
    OK(aclrtSubscribeReport((uint64_t)report_thread, reports));
    RETURNS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtSubscribeReport((uint64_t)report_thread, reports));
    RETURNS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtLaunchHostFunc(reports, note, NULL));
    sem_post(&subscribed);
    sem_wait(&ended);
    count = 0;
    for (intptr_t i = 0; i < 4; i++) OK(aclrtLaunchCallback(on_the_report_thread, (void *)i, ACL_CALLBACK_BLOCK, reports));
    OK(aclrtSynchronizeStream(reports));
    CHECK(count == 4 && order[0] == 0 && order[3] == 3);

    /* One that does not block its stream: the stream is done while it runs. */
    sem_init(&g.entered, 0, 0);
    sem_init(&g.opened, 0, 0);
    OK(aclrtLaunchCallback(pass_gate, &g, ACL_CALLBACK_NO_BLOCK, reports));
    OK(aclrtSynchronizeStream(reports));
    open_gate(&g);

    OK(aclrtLaunchCallback(last, NULL, ACL_CALLBACK_BLOCK, reports));
    OK(aclrtSynchronizeStream(reports));
    pthread_join(report_thread, NULL);
    OK(aclrtUnSubscribeReport((uint64_t)report_thread, reports));
    RETURNS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtUnSubscribeReport((uint64_t)report_thread, reports));
    OK(aclrtDestroyStream(library));
    OK(aclrtDestroyStream(reports));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return done();
}
