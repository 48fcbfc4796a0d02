/* Threads of the program, and those that run its functions. */
#define _GNU_SOURCE
#include "thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"

_Thread_local hs_acl_thread hs_acl_self;
int hs_acl_forked, hs_acl_stacks;
uintptr_t hs_acl_running[HS_ACL_RUNNERS];
char hs_acl_order;

static pthread_key_t ending;
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *ended;
static size_t ended_count, ended_room;

/* Go is not entered here: its own end of the thread may have come before. */
static void thread_ends(void *number)
{
    if (hs_acl_forked) return;
    pthread_mutex_lock(&ended_lock);
    if (ended_count == ended_room) {
        size_t room = ended_room ? ended_room * 2 : 64;
        uint32_t *list = realloc(ended, room * sizeof *list);
        if (list != NULL) ended = list, ended_room = room;
    }
    if (ended_count < ended_room) ended[ended_count++] = (uint32_t)(uintptr_t)number;
    pthread_mutex_unlock(&ended_lock);
    hs_acl_self.depth = 0;
    free(hs_acl_self.stack);
    hs_acl_self.stack = NULL;
    hs_acl_self.number = 0; /* a later destructor of the program may call again */
}

uint32_t hs_acl_next_ended(void)
{
    pthread_mutex_lock(&ended_lock);
    uint32_t number = ended_count > 0 ? ended[--ended_count] : 0;
    pthread_mutex_unlock(&ended_lock);
    return number;
}

void hs_acl_watch_end(uint32_t number) { pthread_setspecific(ending, (void *)(uintptr_t)number); }

static void in_child(void) { hs_acl_forked = 1; }

__attribute__((constructor)) static void prepare(void)
{
    pthread_key_create(&ending, thread_ends);
    pthread_atfork(NULL, NULL, in_child);
}

int hs_acl_enter(const char *function, void *here)
{
    if (__builtin_expect(hs_acl_forked, 0)) return ACL_ERROR_RT_DEV_SETUP_ERROR;
    hs_acl_self.function = function;
    hs_acl_self.here = (uintptr_t)here;
    hs_acl_self.depth = 0;
    if (__builtin_expect(hs_acl_stacks, 0)) hs_acl_note_stack();
    hs_acl_come_before();
    if (__builtin_expect(hs_acl_self.number == 0, 0)) hs_acl_self.number = hsAclRegister();
    return 0;
}

uint64_t hs_acl_ident(void) { return (uint64_t)pthread_self(); }
int hs_acl_system_number(void) { return (int)syscall(SYS_gettid); }
uint32_t hs_acl_self_number(void) { return hs_acl_self.number; }
const char *hs_acl_self_function(void) { return hs_acl_self.function; }

void hs_acl_run(uintptr_t function, uintptr_t argument)
{
    hs_acl_come_behind();
    __atomic_store_n(&hs_acl_running[ME % HS_ACL_RUNNERS], function, __ATOMIC_RELAXED);
    ((aclrtHostFunc)function)((void *)argument);
    hs_acl_come_before();
}

/* Runs functions of streams until the runtime has enough threads. */
static void *work(void *unused)
{
    (void)unused;
    if (hs_acl_enter("", NULL)) return NULL;
    uintptr_t function, argument;
    for (int ran = 0; hsAclNextFunction(ME, ran, &function, &argument); ran = 1) hs_acl_run(function, argument);
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

void hs_acl_call(uintptr_t function, uintptr_t argument) { ((void (*)(void *))function)((void *)argument); }

void hs_acl_report(uintptr_t callback, uint32_t thread, uint32_t device, uint32_t stream, uint32_t code)
{
    hs_acl_failure failure = {thread, device, stream, code};
    ((aclrtExceptionInfoCallback)callback)((aclrtExceptionInfo *)&failure);
}
