#include "caller.h"
#include "calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

_Thread_local halstream_thread halstream_self;
static halstream_thread nobody;
static uint32_t always = 1; /* until a backend is in use, and after the end */
uint32_t *halstream_slow = &always;
int64_t halstream_plain, halstream_devices;
int32_t halstream_running;
halstream_place halstream_recorded;
halstream_block halstream_found;
halstream_thread *halstream_caller = &nobody;
int halstream_forked;
static atomic_int over;

/* CPython's functions, by name as in caller.go. */
extern void *PyEval_SaveThread(void) __attribute__((weak));
extern void PyEval_RestoreThread(void *state) __attribute__((weak));
extern int PyErr_CheckSignals(void) __attribute__((weak));
extern void *PyErr_Occurred(void) __attribute__((weak));

int halstream_inside(void) { return halstream_self.inside; }

int halstream_is_over(void) { return atomic_load_explicit(&over, memory_order_acquire); }

void halstream_end(void)
{
    halstream_slow = &always;
    atomic_store(&over, 1);
}

void *halstream_unlock(void)
{
    /* A thread of Go's has no slot, and holds no lock. */
    if (halstream_self.slot == 0 || halstream_self.released != 0 || !PyEval_SaveThread) return NULL;
    if (atomic_load(&over)) return NULL; /* the thread that ends the interpreter needs no other */
    halstream_self.released = 1;
    return PyEval_SaveThread();
}

void halstream_relock(void *state)
{
    if (state == NULL) return;
    while (atomic_load(&over)) pause(); /* Python would end the thread in the middle of Go's frames */
    PyEval_RestoreThread(state);
    halstream_self.released = 0;
    halstream_caller = &halstream_self; /* others have called meanwhile */
}

int halstream_interrupted(void **state)
{
    if (*state == NULL || !PyErr_CheckSignals || !PyErr_Occurred) return 0;
    halstream_relock(*state);
    halstream_self.handling = 1;
    /* A handler may have raised already, in a wait inside this one. */
    int raised = PyErr_Occurred() != NULL || PyErr_CheckSignals() != 0;
    halstream_self.handling = 0;
    halstream_caller = &halstream_self; /* others have called while Python's code ran */
    *state = raised ? NULL : halstream_unlock();
    return raised;
}

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
    halstream_self.slot = 0; /* what still calls as the thread ends, calls as a new one */
    note *n = malloc(sizeof *n);
    if (n == NULL) return;
    n->slot = (int32_t)(intptr_t)value;
    n->next = atomic_load(&ended);
    while (!atomic_compare_exchange_weak(&ended, &n->next, n)) {}
}

static void forked(void)
{
    halstream_forked = 1;
    halstream_slow = &always;
}

__attribute__((constructor)) static void prepare(void)
{
    pthread_key_create(&key, thread_ends);
    pthread_atfork(NULL, NULL, forked);
}

struct halstream_thread *halstream_this(void) { return &halstream_self; }

uint64_t halstream_ident(void) { return (uint64_t)(uintptr_t)pthread_self(); }

int32_t halstream_system_number(void)
{
#ifdef __linux__
    return (int32_t)syscall(SYS_gettid);
#else
    return 0;
#endif
}

/* Called by Go on the thread itself, once per thread. */
void halstream_keep(int32_t slot)
{
    halstream_self.slot = slot;
    halstream_self.tid = halstream_system_number();
    pthread_setspecific(key, (void *)(intptr_t)slot);
}

/* Called by Go, by one thread at a time; returns the slot of a thread that ended, or 0. */
int32_t halstream_next_ended(void)
{
    note *n = atomic_load(&ended);
    while (n != NULL && !atomic_compare_exchange_weak(&ended, &n, n->next)) {}
    if (n == NULL) return 0;
    int32_t slot = n->slot;
    free(n);
    return slot;
}
