#include "caller.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local halstream_thread halstream_self;
static halstream_thread nobody;
halstream_thread *halstream_caller = &nobody;
int halstream_forked;

/* Slots of threads that ended, for Go to take back: the destructor of a thread
 * may not call Go, so it only leaves a note. */
typedef struct note {
    struct note *next;
    int32_t slot;
} note;

static _Atomic(note *) ended;
static pthread_key_t key;

static void thread_ends(void *value)
{
    note *n = malloc(sizeof *n);
    if (n == NULL) return;
    n->slot = (int32_t)(intptr_t)value;
    n->next = atomic_load(&ended);
    while (!atomic_compare_exchange_weak(&ended, &n->next, n)) {}
}

static void forked(void) { halstream_forked = 1; }

__attribute__((constructor)) static void prepare(void)
{
    pthread_key_create(&key, thread_ends);
    pthread_atfork(NULL, NULL, forked);
}

/* Called by Go on the thread itself, once per thread. */
void halstream_keep(int32_t slot)
{
    halstream_caller->slot = slot;
    halstream_caller->tid = (int32_t)syscall(SYS_gettid);
    pthread_setspecific(key, (void *)(intptr_t)slot);
}

/* Called by Go; returns the slot of a thread that ended, or 0. */
int32_t halstream_next_ended(void)
{
    note *n = atomic_load(&ended);
    while (n != NULL && !atomic_compare_exchange_weak(&ended, &n, n->next)) {}
    if (n == NULL) return 0;
    int32_t slot = n->slot;
    free(n);
    return slot;
}
