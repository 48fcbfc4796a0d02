/* Times calls of AscendCL as a program in C makes them: make bench-c. */
#include <acl/acl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "rows.h"

static void check(aclError code, const char *call)
{
    if (code == ACL_SUCCESS) return;
    const char *text = aclGetRecentErrMsg();
    fprintf(stderr, "%s: %d\n%s\n", call, code, text ? text : "");
    exit(1);
}
#define OK(call) check(call, #call)

static void nothing(void *unused) { (void)unused; }

static aclError round_trip(aclrtStream stream)
{
    aclError code = aclrtLaunchHostFunc(stream, nothing, NULL);
    return code == ACL_SUCCESS ? aclrtSynchronizeStream(stream) : code;
}

/* The last one of many waits for all. */
static aclError back_to_back(aclrtStream stream, int last)
{
    aclError code = aclrtLaunchHostFunc(stream, nothing, NULL);
    return code == ACL_SUCCESS && last ? aclrtSynchronizeStream(stream) : code;
}

static aclrtContext context;
static volatile int running = 1;

static void *take_reports(void *unused)
{
    (void)unused;
    OK(aclrtSetCurrentContext(context));
    while (running) aclrtProcessReport(100);
    return NULL;
}

int main(void)
{
    aclrtStream stream, other;
    aclrtEvent event;
    aclrtStreamStatus status;
    aclrtEventRecordedStatus recorded;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    ROW("record an event, idle stream", CALLS, , aclrtRecordEvent(event, stream), );
    ROW("wait for an event that is done", CALLS, , aclrtStreamWaitEvent(other, event), );
    ROW("query a stream", CALLS, , aclrtStreamQuery(stream, &status), );
    ROW("query an event", CALLS, , aclrtQueryEventStatus(event, &recorded), );
    ROW("synchronize an idle stream", CALLS, , aclrtSynchronizeStream(stream), );
    ROW("enqueue a function", LAUNCHES, , aclrtLaunchHostFunc(stream, nothing, NULL), OK(aclrtSynchronizeStream(stream)));
    ROW("function and synchronize", LAUNCHES, , round_trip(stream), );
    ROW("functions back to back, until all have run", LAUNCHES, , back_to_back(stream, i == LAUNCHES - 1), );
    pthread_t reports;
    OK(aclrtGetCurrentContext(&context));
    if (pthread_create(&reports, NULL, take_reports, NULL) != 0) return 1;
    OK(aclrtSubscribeReport((uint64_t)reports, other));
    ROW("enqueue a callback for a subscribed thread", LAUNCHES, ,
        aclrtLaunchCallback(nothing, NULL, ACL_CALLBACK_BLOCK, other), OK(aclrtSynchronizeStream(other)));
    OK(aclrtUnSubscribeReport((uint64_t)reports, other));
    running = 0;
    pthread_join(reports, NULL);
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
