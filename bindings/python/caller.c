#include "caller.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

_Thread_local halstream_thread halstream_self;
static halstream_thread nobody;
static uint32_t no_runtime;
uint32_t *halstream_status = &no_runtime;
uint64_t halstream_generation;
halstream_thread *halstream_caller = &nobody;
static atomic_int over;

/* CPython's functions, by name as in caller.go. */
extern void *PyEval_SaveThread(void) __attribute__((weak));
extern void PyEval_RestoreThread(void *state) __attribute__((weak));
extern int PyErr_CheckSignals(void) __attribute__((weak));
extern void *PyErr_Occurred(void) __attribute__((weak));

struct halstream_thread *halstream_this(void) { return &halstream_self; }

int halstream_is_over(void) { return atomic_load_explicit(&over, memory_order_acquire); }

void halstream_end(void)
{
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

void halstream_thread_ends(void) { halstream_self.slot = 0; }
