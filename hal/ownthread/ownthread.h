/* Threads that the runtime itself has started. */
#ifndef HALSTREAM_OWNTHREAD_H
#define HALSTREAM_OWNTHREAD_H

#include <stdint.h>

/* Returns 1 if the Go runtime, or C code linked with it, started the thread with this
 * number of the system. It takes a library linked with --wrap=pthread_create; in
 * others, and on systems other than Linux, it returns 0. */
int halstream_own_thread(int32_t tid);

#endif /* HALSTREAM_OWNTHREAD_H */
