/* Asks Python whether a wait can ever end. */
#ifndef HALSTREAM_STALL_H
#define HALSTREAM_STALL_H

#include <stdint.h>

/* What the callable of halstream_stall_hook may answer. */
enum { STALL_RAISED = -1, STALL_NO = 0, STALL_MAYBE = 1, STALL_CERTAIN = 2 };

/* Sets the callable and keeps a reference to it; 0 for none. */
void halstream_stall_hook(uint64_t callable);

/* Calls it, with Python's lock held: STALL_RAISED with Python's exception set,
 * STALL_MAYBE if it wants to be called again soon. */
int halstream_stall_ask(void);

/* The same about a function that runs, for a thread that may or may not hold the
 * lock; an exception is dropped. A thread that never called is told STALL_NO. */
int halstream_stall_ask_anyhow(int64_t token);

/* The token of the function that this thread asks about, 0 for its own wait. */
int64_t halstream_stall_asked(void);

/* The calling thread as threading.get_ident() names it. */
uint64_t halstream_ident(void);

/* What the extension keeps of the calling thread. */
struct halstream_thread *halstream_this(void);

#endif /* HALSTREAM_STALL_H */
