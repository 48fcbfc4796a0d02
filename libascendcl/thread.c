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

_Thread_local lookalike_thread lookalike_self;
int lookalike_forked, lookalike_stacks;
uintptr_t lookalike_running[LOOKALIKE_RUNNERS];
char lookalike_order;

static pthread_key_t ending;
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *ended;
static size_t ended_count, ended_room;

/* Go is not entered here: its own end of the thread may have come before. */
static void thread_ends(void *number)
{
    if (lookalike_forked) return;
    pthread_mutex_lock(&ended_lock);
    if (ended_count == ended_room) {
        size_t room = ended_room ? ended_room * 2 : 64;
        uint32_t *list = realloc(ended, room * sizeof *list);
        if (list != NULL) ended = list, ended_room = room;
    }
    if (ended_count < ended_room) ended[ended_count++] = (uint32_t)(uintptr_t)number;
    pthread_mutex_unlock(&ended_lock);
    lookalike_self.depth = 0;
    free(lookalike_self.stack);
    lookalike_self.stack = NULL;
    lookalike_self.number = 0; /* a later destructor of the program may call again */
}

uint32_t lookalike_next_ended(void)
{
    pthread_mutex_lock(&ended_lock);
    uint32_t number = ended_count > 0 ? ended[--ended_count] : 0;
    pthread_mutex_unlock(&ended_lock);
    return number;
}

void lookalike_watch_end(uint32_t number) { pthread_setspecific(ending, (void *)(uintptr_t)number); }

static void in_child(void) { lookalike_forked = 1; }

__attribute__((constructor)) static void prepare(void)
{
    pthread_key_create(&ending, thread_ends);
    pthread_atfork(NULL, NULL, in_child);
}

int lookalike_enter(const char *function, void *here)
{
    if (__builtin_expect(lookalike_forked, 0)) return ACL_ERROR_RT_DEV_SETUP_ERROR;
    lookalike_self.function = function;
    lookalike_self.here = (uintptr_t)here;
    lookalike_self.depth = 0;
    if (__builtin_expect(lookalike_stacks, 0)) lookalike_note_stack();
    lookalike_come_before();
    if (__builtin_expect(lookalike_self.number == 0, 0)) lookalike_self.number = lookalikeRegister();
    return 0;
}

uint64_t lookalike_ident(void) { return (uint64_t)pthread_self(); }
int lookalike_system_number(void) { return (int)syscall(SYS_gettid); }
uint32_t lookalike_self_number(void) { return lookalike_self.number; }
const char *lookalike_self_function(void) { return lookalike_self.function; }

void lookalike_run(uintptr_t function, uintptr_t argument)
{
    lookalike_come_behind();
    __atomic_store_n(&lookalike_running[ME % LOOKALIKE_RUNNERS], function, __ATOMIC_RELAXED);
    ((aclrtHostFunc)function)((void *)argument);
    lookalike_come_before();
}

/* Runs functions of streams until the runtime has enough threads. */
static void *work(void *unused)
{
    (void)unused;
    if (lookalike_enter("", NULL)) return NULL;
    uintptr_t function, argument;
    for (int ran = 0; lookalikeNextFunction(ME, ran, &function, &argument); ran = 1) lookalike_run(function, argument);
    return NULL;
}

int lookalike_start_worker(void)
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

void lookalike_call(uintptr_t function, uintptr_t argument) { ((void (*)(void *))function)((void *)argument); }

void lookalike_report(uintptr_t callback, uint32_t thread, uint32_t device, uint32_t stream, uint32_t code)
{
    lookalike_failure failure = {thread, device, stream, code};
    ((aclrtExceptionInfoCallback)callback)((aclrtExceptionInfo *)&failure);
}
