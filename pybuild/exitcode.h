#ifndef HALSTREAM_EXITCODE_H
#define HALSTREAM_EXITCODE_H

/* Make the process end with a code if its own is 0. A thread that holds Python's lock
 * calls it. It must not be called while exit() runs. */
void halstream_exit_code(int code);

#endif
