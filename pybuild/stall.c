#include "stall.h"
#include "caller.h"

#include <pthread.h>
#include <stddef.h>

/* CPython's functions, by name as in caller.go. */
typedef void object;
extern object *PyObject_CallNoArgs(object *callable) __attribute__((weak));
extern long PyLong_AsLong(object *o) __attribute__((weak));
extern void Py_IncRef(object *o) __attribute__((weak));
extern void Py_DecRef(object *o) __attribute__((weak));
extern void PyErr_Clear(void) __attribute__((weak));
extern void *PyErr_Occurred(void) __attribute__((weak));
extern int PyGILState_Ensure(void) __attribute__((weak));
extern void PyGILState_Release(int state) __attribute__((weak));

static object *hook; /* guarded by Python's lock */
static _Thread_local int64_t asked;

void halstream_stall_hook(uint64_t callable)
{
    object *before = hook;
    hook = (object *)(uintptr_t)callable;
    if (hook != NULL && Py_IncRef) Py_IncRef(hook);
    if (before != NULL && Py_DecRef) Py_DecRef(before);
}

int64_t halstream_stall_asked(void) { return asked; }

int halstream_stall_ask(void)
{
    if (hook == NULL || !PyObject_CallNoArgs) return STALL_NO;
    /* A handler raised when this was asked before; nothing is called with that set. */
    if (PyErr_Occurred && PyErr_Occurred()) return STALL_RAISED;
    object *answer = PyObject_CallNoArgs(hook);
    if (answer == NULL) return STALL_RAISED;
    long value = PyLong_AsLong(answer);
    Py_DecRef(answer);
    if (value >= STALL_NO && value <= STALL_CERTAIN) return (int)value;
    PyErr_Clear();
    return STALL_NO;
}

int halstream_stall_ask_function(int64_t token)
{
    if (!PyGILState_Ensure || halstream_self.slot == 0 || halstream_self.unlocked) return STALL_NO;
    int32_t released = halstream_self.released;
    int state = PyGILState_Ensure();
    halstream_self.released = 0;
    asked = token;
    int answer = halstream_stall_ask();
    asked = 0;
    halstream_self.released = released;
    if (released == 0) halstream_caller = &halstream_self; /* others have called meanwhile */
    PyGILState_Release(state);
    return answer;
}

uint64_t halstream_ident(void) { return (uint64_t)(uintptr_t)pthread_self(); }

struct halstream_thread *halstream_this(void) { return &halstream_self; }
