/* Who calls: the thread of the program as C code and Go of the extension see it.
 *
 * Every function of the extension starts with halstream_enter, on the calling
 * thread and with Python's lock held. So one plain variable tells Go who the
 * caller is, at the cost of a store; it is valid until the lock is released. */
#ifndef HALSTREAM_CALLER_H
#define HALSTREAM_CALLER_H

#include <stdint.h>

#include "../threads/threads.h"

typedef struct halstream_thread {
    int32_t slot; /* number in the table of threads, 0 before the first call */
    int32_t released; /* how often the thread has released Python's lock, each within the other */
    int32_t inside; /* 1 while the thread runs a function of a stream */
    int32_t native; /* 1 while the thread runs a native function, or its release, for halstream.h */
    int32_t unlocked; /* 1 during a call of halstream.h without Python's lock, which must not be taken */
    int32_t direct; /* 1 during a call of halstream.h: the innermost frame of Python's is the program's */
    int32_t handling; /* 1 while a wait of the thread runs handlers of signals */
} halstream_thread;

extern _Thread_local halstream_thread halstream_self;
extern halstream_thread *halstream_caller;
/* The word of the runtime in use, by which C code sees what it does; see package status. */
extern uint32_t *halstream_status;
/* Changes with the runtime in use. */
extern uint64_t halstream_generation;
/* The extension's state of the calling thread. */
struct halstream_thread *halstream_this(void);

/* The runtime has shut down: no thread may take Python's lock any more but the one
 * that ends the interpreter, which holds it. */
void halstream_end(void);
int halstream_is_over(void);

/* For C code of backends, around what may wait: releases Python's lock if the
 * calling thread is one of Python's inside a call of the extension that holds it,
 * and returns what halstream_relock takes, NULL if nothing was done. A relock
 * after the end does not return. */
void *halstream_unlock(void);
void halstream_relock(void *state);
/* Between the two: takes the lock and runs the handlers of signals that came. Returns 0 with the
 * lock released again; 1, with the lock held and Python's exception set, if one raised. */
int halstream_interrupted(void **state);

/* Whether the calling thread holds Python's lock. */
int halstream_holds_lock(void);

/* For a thread that calls without Python's lock: takes it, so that the thread is inside a call of the extension until
 * halstream_give_lock. Where the interpreter ends, or there is none, it returns 0 and has taken nothing. */
typedef struct halstream_lock {
    int state, released, unlocked;
} halstream_lock;
int halstream_take_lock(halstream_lock *lock);
void halstream_give_lock(const halstream_lock *lock);
/* Ends the exception of a wait, which no caller takes: an error is printed, and what asks the thread to end is raised
 * there once it runs Python code again. Called with Python's lock. */
void halstream_end_exception(void);

/* Returns 0, or 1 with nothing done in a forked child: the threads of the Go
 * runtime exist only in the parent, so entering it would hang. */
static inline int halstream_enter(void)
{
    halstream_caller = &halstream_self;
    return __builtin_expect(halstream_forked, 0);
}

#endif /* HALSTREAM_CALLER_H */
