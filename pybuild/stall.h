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

/* The token of the function that the calling thread asks about, 0 for its own wait. */
int64_t halstream_stall_asked(void);

/* The calling thread as threading.get_ident() names it. */
uint64_t halstream_ident(void);

/* The extension's state of the calling thread. */
struct halstream_thread *halstream_this(void);

#endif /* HALSTREAM_STALL_H */
