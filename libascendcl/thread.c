/* Threads of the program: who calls, and from where. */
#define _GNU_SOURCE
#include "thread.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"

_Thread_local hs_acl_thread hs_acl_self;
int hs_acl_forked, hs_acl_stacks;
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

void hs_acl_note_stack(void)
{
    enum { OWN = 8 }; /* frames of the library, below the program's */
    void *found[HS_ACL_STACK + OWN];
    int count = backtrace(found, HS_ACL_STACK + OWN), first = 0;
    while (first < count && (uintptr_t)found[first] != hs_acl_self.here) first++;
    hs_acl_self.depth = 0;
    if (hs_acl_self.stack == NULL) hs_acl_self.stack = calloc(HS_ACL_STACK, sizeof *hs_acl_self.stack);
    if (hs_acl_self.stack == NULL) return;
    for (int i = first; i < count && hs_acl_self.depth < HS_ACL_STACK; i++)
        hs_acl_self.stack[hs_acl_self.depth++] = (uintptr_t)found[i];
}

void hs_acl_self_stack(uintptr_t *into)
{
    if (hs_acl_self.depth == 0) into[0] = hs_acl_self.here;
    for (uint32_t i = 0; i < hs_acl_self.depth; i++) into[i] = hs_acl_self.stack[i];
}
