/* The threads of the program, as the C half of a way into the core sees them. */
#ifndef HALSTREAM_THREADS_H
#define HALSTREAM_THREADS_H

#include <stdint.h>

/* 1 in a forked child, where nothing of the runtime works: the threads of Go exist only in the parent. */
extern int halstream_forked;

/* Makes the calling thread, which has this number from 1 on in Go's table, give it back when it ends. */
void halstream_watch_end(uint32_t number);

/* Called on a thread of the program that ends: it is to forget its number, as what still calls while it ends calls as a
 * new one. A library that keeps something of threads defines it. */
void halstream_thread_ends(void) __attribute__((weak));

/* The number of a thread that has ended, for Go to take back; 0 for none. */
uint32_t halstream_next_ended(void);

/* The calling thread as pthread_self, and Python's threading.get_ident(), name it. */
uint64_t halstream_ident(void);

/* The system's number of the calling thread; 0 on systems other than Linux. */
int32_t halstream_system_number(void);

#endif /* HALSTREAM_THREADS_H */
