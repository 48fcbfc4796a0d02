/* An event that two processes have, by its handle. The program starts itself as the other one. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void say(int to, const void *what, size_t size) { CHECK(write(to, what, size) == (ssize_t)size); }
static void hear(int from, void *what, size_t size) { CHECK(read(from, what, size) == (ssize_t)size); }

static int event_done(aclrtEvent event)
{
    aclrtEventRecordedStatus status;
    OK(aclrtQueryEventStatus(event, &status));
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

static int other(void)
{
    aclrtIpcEventHandle handle;
    aclrtEvent event, bad;
    aclrtStream s;
    gate g;
    char word;
    hear(0, &handle, sizeof handle);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    OK(aclrtIpcOpenEventHandle(handle, &event));
    CHECK(!event_done(event));
    OK(aclrtStreamWaitEvent(s, event));
    CHECK(stream_pending(s));
    say(1, "w", 1);
    OK(aclrtSynchronizeStream(s));
    CHECK(event_done(event));
    hold(&g, s);
    OK(aclrtRecordEvent(event, s));
    CHECK(!event_done(event));
    say(1, "r", 1);
    hear(0, &word, 1);
    open_gate(&g);
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtDestroyEvent(event));
    handle.reserved[0]++;
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtIpcOpenEventHandle(handle, &bad));
    return 0;
}

int main(int count, char **words)
{
    aclrtIpcEventHandle handle;
    aclrtEvent event, plain;
    aclrtStream s;
    gate g;
    char word;
    int down[2], up[2], status;
    float ms;
    uint64_t time;
    uint32_t id;
    (void)words;
    alarm(60);
    if (count > 1) return other();
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    OK(aclrtCreateEventExWithFlag(&plain, ACL_EVENT_SYNC));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtIpcGetEventHandle(plain, &handle));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtIpcGetEventHandle(event, NULL));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtEventElapsedTime(&ms, event, event));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtEventGetTimestamp(event, &time));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtGetEventId(event, &id));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event, s));
    OK(aclrtIpcGetEventHandle(event, &handle));
    hold(&g, s);
    OK(aclrtRecordEvent(event, s));
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execl("/proc/self/exe", "processes", "other", NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    say(down[1], &handle, sizeof handle);
    hear(up[0], &word, 1); /* its stream waits */
    open_gate(&g);
    hear(up[0], &word, 1); /* it has recorded the event */
    CHECK(!event_done(event));
    say(down[1], "g", 1);
    OK(aclrtSynchronizeEvent(event));
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(aclrtDestroyEvent(event));
    puts("done");
    return 0;
}
