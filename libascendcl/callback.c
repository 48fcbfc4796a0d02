/* Functions of the program: on streams, and for work that failed. As in device.c, and the threads of the library that
 * run them. */
#define _GNU_SOURCE
#include "callback.h"

#include <pthread.h>
#include <signal.h>

#include "_cgo_export.h"
#include "acl/acl_lookalike.h"
#include "acl/acl_rt.h"
#include "thread.h"

static void run(uintptr_t function, uintptr_t argument)
{
    halstream_function_begins(function);
    ((aclrtHostFunc)function)((void *)argument);
    halstream_function_ends();
}

/* Runs functions of streams until the runtime has enough threads. */
static void *work(void *unused)
{
    (void)unused;
    if (hs_acl_enter("", NULL)) return NULL;
    uintptr_t function, argument;
    for (int ran = 0; hsAclNextFunction(ME, ran, &function, &argument); ran = 1) run(function, argument);
    return NULL;
}

int hs_acl_start_worker(void)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return 0;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Signals of the process are for the program's own threads. */
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGURG, SIGPROF, 0}; *s; s++)
        sigdelset(&blocked, *s);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, &attributes, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

/* -- on streams -- */

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    CALL(hsAclSubscribeReport, ME, threadId, HANDLE(stream));
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    CALL(hsAclUnSubscribeReport, ME, threadId, HANDLE(stream));
}

aclError aclrtLaunchCallback(aclrtCallback function, void *userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream)
{
    CALL(hsAclLaunchCallback, ME, HANDLE(function), HANDLE(userData), (int32_t)blockType, HANDLE(stream));
}

/* The callbacks run here and not below Go's frames, so that they may end the thread or the process. */
aclError aclrtProcessReport(int32_t timeout)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    uintptr_t function = 0, argument = 0;
    if (!code) code = hsAclNextReport(ME, timeout, 0, &function, &argument);
    while (!code && function != 0) {
        run(function, argument);
        code = hsAclNextReport(ME, timeout, 1, &function, &argument);
    }
    return code;
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *args)
{
    CALL(hsAclLaunchHostFunc, ME, HANDLE(stream), HANDLE(function), HANDLE(args));
}

aclError aclLookalikeLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *args,
                                    const aclLookalikeRange *ranges, size_t count)
{
    if (!ranges && count > 0) CALL(hsAclMissing, ME);
    CALL(hsAclLaunchDeclared, ME, HANDLE(stream), HANDLE(function), HANDLE(args), (aclLookalikeRange *)ranges, count);
}

aclError aclLookalikeHostAccess(const void *start, size_t size, int32_t write)
{
    CALL(hsAclHostAccess, ME, HANDLE(start), size, write);
}

/* -- for work that failed, and for the end of a model -- */

void hs_acl_call(uintptr_t function, uintptr_t argument) { ((void (*)(void *))function)((void *)argument); }

void hs_acl_report(uintptr_t callback, uint32_t thread, uint32_t device, uint32_t stream, uint32_t code)
{
    hs_acl_failure failure = {thread, device, stream, code};
    ((aclrtExceptionInfoCallback)callback)((aclrtExceptionInfo *)&failure);
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
    CALL(hsAclSetExceptionInfoCallback, ME, HANDLE(callback));
}

enum { UNKNOWN = 0xFFFFFFFFu };
static const hs_acl_failure *failure(const aclrtExceptionInfo *info) { return (const hs_acl_failure *)info; }

/* Tasks have no numbers here, and a failure that a device reports has no stream. */
uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info) { return (void)info, UNKNOWN; }
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->stream : UNKNOWN; }
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->thread : UNKNOWN; }
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->device : UNKNOWN; }
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->code : UNKNOWN; }

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback)
{
    CALL(hsAclExceptionCallback, ME, HANDLE(callback), 1);
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback)
{
    CALL(hsAclExceptionCallback, ME, HANDLE(callback), 0);
}
