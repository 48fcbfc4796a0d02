/* The beginning of the interpreter's end. */
#ifndef HALSTREAM_ATEXIT_H
#define HALSTREAM_ATEXIT_H

/* Has Python call a function when the interpreter begins to end, once. Returns 0, with an exception set or without Python,
 * if it will not. Called with Python's lock. */
int halstream_at_exit(void (*function)(void));

#endif
