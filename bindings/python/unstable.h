/* Functions of CPython's that are in no stable interface, or in one that is newer
 * than 3.10. The library does not name them to the linker: a tool that compares its
 * symbols with the stable interface (abi3audit) shall find nothing else. */
#ifndef HALSTREAM_UNSTABLE_H
#define HALSTREAM_UNSTABLE_H

#include <stddef.h>

/* NULL where this process has none: in Go's own tests, and in a CPython without it. */
typedef struct {
    void *(*frame_back)(void *frame);          /* PyFrame_GetBack */
    int (*frame_instruction)(void *frame);     /* PyFrame_GetLasti, from 3.11 on */
    /* PyCode_Addr2Location, in CPython 3.11 only: there a call is two instructions, of which either one makes it. */
    int (*code_location)(void *code, int instruction, int *line, int *column, int *last_line, int *last_column);
    void *(*thread_state)(void);               /* PyThreadState_GetUnchecked, from 3.13 on, or its older name */
} halstream_unstable_functions;

/* Found when the library is loaded, and not changed afterwards. */
extern halstream_unstable_functions halstream_unstable;

#endif
