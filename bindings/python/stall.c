#include "stall.h"
#include "caller.h"

#include <pthread.h>
#include <signal.h>
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
extern int Py_AddPendingCall(int (*call)(void *), void *argument) __attribute__((weak));

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

/* Held while Python is asked by a thread of this file's, which the interpreter's end
 * would stop in the middle. */
static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;
static int ended;

static void *watch(void *answer)
{
    int state = PyGILState_Ensure();
    asked = STALL_WATCHES;
    *(int *)answer = halstream_stall_ask();
    asked = 0;
    if (PyErr_Occurred()) PyErr_Clear(); /* there is no caller to raise it to */
    PyGILState_Release(state);
    return NULL;
}

int halstream_stall_watch(void)
{
    int answer = STALL_NO;
    pthread_t thread;
    if (!PyGILState_Ensure || !PyErr_Occurred) return STALL_NO;
    pthread_mutex_lock(&watching);
    /* Not on the calling thread, which is Go's: Python would keep its state of it. */
    if (!ended && pthread_create(&thread, NULL, watch, &answer) == 0) pthread_join(thread, NULL);
    pthread_mutex_unlock(&watching);
    return answer;
}

void halstream_stall_end(void)
{
    pthread_mutex_lock(&watching);
    ended = 1;
    pthread_mutex_unlock(&watching);
}

static int deliver(void *unused)
{
    (void)unused;
    int64_t before = asked;
    asked = STALL_DELIVERS;
    int answer = halstream_stall_ask();
    asked = before;
    return answer == STALL_RAISED ? -1 : 0;
}

__attribute__((unused)) static void nothing(int number) { (void)number; }

/* Returns a signal that nobody uses, with a handler that does nothing; 0 if there is
 * none. It ends system calls, after which a wait of Python's for a lock runs what
 * Py_AddPendingCall was given. */
static int signal_for_interrupts(void)
{
    static int chosen;
#ifdef SIGRTMIN /* macOS has no such signals: there a wait is not ended */
    for (int number = SIGRTMAX - 1; !chosen && number > SIGRTMIN; number--) {
        struct sigaction now, ours = {.sa_handler = nothing, .sa_flags = SA_ONSTACK};
        sigemptyset(&ours.sa_mask);
        if (sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL &&
            sigaction(number, &ours, NULL) == 0)
            chosen = number;
    }
#endif
    return chosen;
}

void halstream_stall_interrupt(uint64_t thread)
{
    if (!Py_AddPendingCall || Py_AddPendingCall(deliver, NULL) != 0) return;
    int number = signal_for_interrupts();
    if (number) pthread_kill((pthread_t)(uintptr_t)thread, number);
}
