#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

/* At the end of the process the driver unmaps its pinned memory. What it has registered for
 * that runs after what is registered here, and threads of this package may still run. */
static atomic_int leaving, inside;
static pid_t watched;

int hs_begin_pinned(void)
{
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&leaving)) return 1;
    atomic_fetch_sub(&inside, 1);
    return 0;
}

void hs_end_pinned(void) { atomic_fetch_sub(&inside, 1); }

/* No thread begins to use pinned memory any more. Those that do end soon. */
static void leave(void)
{
    enum { LONGEST_MS = 2000 };
    if (getpid() != watched) return; /* in a forked child, which has none of the threads */
    atomic_store(&leaving, 1);
    for (int i = 0; i < LONGEST_MS && atomic_load(&inside) > 0; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

void hs_watch_exit(void)
{
    if (watched != getpid() && atexit(leave) == 0) watched = getpid();
}
