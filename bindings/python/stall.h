/* Asks Python whether a wait can ever end. */
#ifndef HALSTREAM_STALL_H
#define HALSTREAM_STALL_H

#include <stdint.h>

/* What the callable of halstream_stall_hook may answer. */
enum { STALL_RAISED = -1, STALL_NO = 0, STALL_MAYBE = 1, STALL_CERTAIN = 2 };

/* Sets the Python callable that is asked, 0 for none, and takes a reference to it. */
void halstream_stall_hook(uint64_t callable);

/* Asks whether the calling thread's wait can ever end; Python's lock is held.
 * STALL_RAISED: it raised, and Python's exception is set. STALL_MAYBE: ask again soon. */
int halstream_stall_ask(void);

/* Asks whether the running function with this token waits for another thread. The
 * calling thread may or may not hold Python's lock. On a thread that has not called
 * the extension before, and in a call of halstream.h without the lock, the answer is
 * STALL_NO. */
int halstream_stall_ask_function(int64_t token);

/* The token of the function that the calling thread asks about, 0 for its own wait,
 * or one of the two below. */
int64_t halstream_stall_asked(void);
enum { STALL_WATCHES = -1, STALL_DELIVERS = -2 };

/* Asks on a thread of its own, as STALL_WATCHES, whether the main thread can go on;
 * STALL_NO after halstream_stall_end. */
int halstream_stall_watch(void);

/* Asks on the main thread, as STALL_DELIVERS, as soon as it runs Python code or waits
 * for a lock; what the hook raises is raised there. `thread` is its pthread_self. */
void halstream_stall_interrupt(uint64_t thread);

/* Waits until halstream_stall_watch is not at work, and ends it for good. Python's lock
 * must not be held. */
void halstream_stall_end(void);

#endif /* HALSTREAM_STALL_H */
