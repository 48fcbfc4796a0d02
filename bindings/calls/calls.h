/* What a way into the core that has its entry in C asks of the process that it is part of: who calls, and from where.
 * package python has the functions for the extension, and package program for libraries of programs in C. */
#ifndef HALSTREAM_CALLS_H
#define HALSTREAM_CALLS_H

#include <stdint.h>

/* Begins a call that returns to `here`, and returns the number of the calling thread; 0 where nothing may be called any
 * more, as the process ends. */
uint32_t halstream_call_begins(void *here);
/* The call in progress is about to wait: its stack is kept. */
void halstream_call_waits(void);
/* Ends the call. */
void halstream_call_ends(void);

/* The thread begins to run a function of the program on a stream, and has ended it. */
void halstream_function_begins(uintptr_t function);
void halstream_function_ends(void);

#endif
