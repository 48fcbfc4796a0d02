#include "caller.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "unstable.h"

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

extern int PyGILState_Ensure(void) __attribute__((weak));
extern void PyGILState_Release(int state) __attribute__((weak));
extern void *PyGILState_GetThisThreadState(void) __attribute__((weak));
extern int PyErr_ExceptionMatches(void *type) __attribute__((weak));
extern void PyErr_PrintEx(int set) __attribute__((weak));
extern void PyErr_Clear(void) __attribute__((weak));
extern void *PyExc_Exception __attribute__((weak));
extern void Py_IncRef(void *o) __attribute__((weak));
extern void Py_DecRef(void *o) __attribute__((weak));
extern unsigned long PyThread_get_thread_ident(void) __attribute__((weak));
extern int PyThreadState_SetAsyncExc(unsigned long thread, void *exception) __attribute__((weak));

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

/* Until 3.11 the current thread state is that of whoever holds the lock. */
int halstream_holds_lock(void)
{
    if (halstream_self.released || !PyGILState_GetThisThreadState) return 0;
    void *current = halstream_unstable.thread_state ? halstream_unstable.thread_state() : NULL;
    return current != NULL && current == PyGILState_GetThisThreadState();
}

int halstream_take_lock(halstream_lock *lock)
{
    if (!PyGILState_Ensure || halstream_is_over()) return 0;
    lock->state = PyGILState_Ensure();
    lock->released = halstream_self.released;
    lock->unlocked = halstream_self.unlocked;
    halstream_self.released = halstream_self.unlocked = 0;
    halstream_caller = &halstream_self;
    return 1;
}

void halstream_give_lock(const halstream_lock *lock)
{
    halstream_self.released = lock->released;
    halstream_self.unlocked = lock->unlocked;
    PyGILState_Release(lock->state);
}

void halstream_end_exception(void)
{
    void *type = PyErr_Occurred();
    if (type == NULL) return;
    if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_PrintEx(0);
        return;
    }
    Py_IncRef(type);
    PyErr_Clear();
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type);
    Py_DecRef(type);
}
