/* The threads that the extension itself has started, by the system's numbers. */
#ifndef HALSTREAM_OWNTHREADS_H
#define HALSTREAM_OWNTHREADS_H

#include <stdint.h>

/* Returns 1 for a thread of Go's, or of C code linked with it. It is found only in
 * a library that was linked with --wrap=pthread_create. */
int halstream_own_thread(int32_t tid);

#endif /* HALSTREAM_OWNTHREADS_H */
