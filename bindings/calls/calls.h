/* What a way into the core that has its entry in C asks of the process that it is part of: who calls, and from where.
 * package python has the functions for the extension, and package program for libraries of programs in C. */
#ifndef HALSTREAM_CALLS_H
#define HALSTREAM_CALLS_H

#include <stdint.h>

/* A call in progress. Another one of the thread can begin and end inside it: a wait runs handlers of signals, and a function
 * that the program passes may call, too. */
typedef struct halstream_call {
    int holding; /* it was made with Python's lock */
    int direct; /* what the call around it has set: see caller.h */
    uint32_t site;
} halstream_call;

/* Begins a call that returns to `here`, and returns the number of the calling thread; 0 where nothing may be called any
 * more, as the process ends. */
uint32_t halstream_call_begins(halstream_call *call, void *here);
/* The call in progress is about to wait: its stack is kept. */
void halstream_call_waits(void);
/* Ends the call. */
void halstream_call_ends(const halstream_call *call);

/* The thread begins to run a function of the program on a stream, and has ended it. */
void halstream_function_begins(uintptr_t function);
void halstream_function_ends(void);

#endif
