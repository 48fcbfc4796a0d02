#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

int halstream_forked;

/* The destructor of a thread may not call Go, whose own end of the thread may have come before: it leaves a note. */
typedef struct note {
    struct note *next;
    uint32_t number;
} note;

static _Atomic(note *) ended;
static pthread_key_t key;

static void thread_ends(void *value)
{
    if (halstream_forked) return;
    if (halstream_thread_ends) halstream_thread_ends();
    note *n = malloc(sizeof *n);
    if (n == NULL) return;
    n->number = (uint32_t)(uintptr_t)value;
    n->next = atomic_load(&ended);
    while (!atomic_compare_exchange_weak(&ended, &n->next, n)) {}
}

static void in_child(void) { halstream_forked = 1; }

__attribute__((constructor)) static void prepare(void)
{
    pthread_key_create(&key, thread_ends);
    pthread_atfork(NULL, NULL, in_child);
}

void halstream_watch_end(uint32_t number) { pthread_setspecific(key, (void *)(uintptr_t)number); }

/* Called by one thread at a time, so that no note comes back while it is taken. */
uint32_t halstream_next_ended(void)
{
    note *n = atomic_load(&ended);
    while (n != NULL && !atomic_compare_exchange_weak(&ended, &n, n->next)) {}
    if (n == NULL) return 0;
    uint32_t number = n->number;
    free(n);
    return number;
}

uint64_t halstream_ident(void) { return (uint64_t)(uintptr_t)pthread_self(); }

int32_t halstream_system_number(void)
{
#ifdef __linux__
    return (int32_t)syscall(SYS_gettid);
#else
    return 0;
#endif
}
