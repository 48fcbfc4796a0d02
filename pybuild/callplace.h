/* Where in the program a call of a function was enqueued. */
#ifndef HALSTREAM_CALLPLACE_H
#define HALSTREAM_CALLPLACE_H

#include "cpython.h"

typedef struct {
    object *code;    /* a reference; NULL: it is not known */
    int instruction; /* in the code, or its line where CPython cannot say the instruction (3.10) */
} callplace;

/* The innermost frame that is not the package's own. Called with Python's lock. */
callplace halstream_callplace(void);
/* A tuple of the code, the instruction and the line, of which one is -1; or None. */
object *halstream_callplace_tuple(const callplace *at);
/* Sets the folder of the package, with a separator at its end. */
void halstream_callplace_install(const char *root);

/* Whose a code object is. */
enum { CODE_PROGRAM, CODE_OWN, CODE_INSTALLED };
/* Returns CODE_OWN for code of this package, CODE_INSTALLED for that of other packages and of Python's
 * own library. Called with Python's lock. */
int halstream_code_kind(object *code);

#endif /* HALSTREAM_CALLPLACE_H */
