/* Accesses of the program that are seen by their pages: where Python was. */
#ifndef HALSTREAM_TOUCHED_H
#define HALSTREAM_TOUCHED_H

/* Called on a thread that is not Python's, while the main thread of Python stands at an access: lets that thread report
 * the access as soon as it runs the next instruction at which it looks for signals, mostly behind the call. */
void halstream_touched(void);

#endif /* HALSTREAM_TOUCHED_H */
