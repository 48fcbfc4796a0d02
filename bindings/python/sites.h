/* Where the program makes a call: Python's call stack as one number. */
#ifndef HALSTREAM_SITES_H
#define HALSTREAM_SITES_H

#include <stdint.h>

/* Returns the number of the calling thread's stack, the same for the same
 * stack; 0 without Python, or where the thread does not hold Python's lock. */
uint32_t halstream_site(void);

/* The same; `own` is 1 where the innermost frame is of the package, 0 where it may be the program's. */
uint32_t halstream_site_of(int own);

/* Not 0: somebody asks for whole stacks. */
extern int32_t halstream_stacks;
/* The site of the call in progress, where it was found before the call left Python's lock; 0: none. */
extern _Thread_local uint32_t halstream_call_site;

/* How many captures ask where the program makes its calls, while nothing asks for whole stacks. */
extern int32_t halstream_lines;
/* Reports whether a capture asks. */
static inline int halstream_wants_lines(void) { return __atomic_load_n(&halstream_lines, __ATOMIC_RELAXED) != 0; }

/* Where the program makes a call, for a capture: the stack up to the innermost frame of the program's
 * own, for a loop that captures cannot afford the whole. 0 if no capture asks. */
uint32_t halstream_line(void);

/* The site of the innermost frame alone that is not the package's own. Called with Python's lock. */
uint32_t halstream_here(void);
/* Sets the folder of the package, with a separator at its end. */
void halstream_sites_install(const char *folder);

/* The innermost line of the program on the calling thread's stack, as a site of that one frame, whether or not
 * somebody asks for sites; 0 as halstream_site. */
uint32_t halstream_program_line(void);

/* Sets the function of Python's that is given the site of a call, on its thread, while the frames of the call are as
 * they were in it; NULL: none. It is called for the first few calls of each site. */
void halstream_look_with(void *function);
/* The site of the thread's call that is to be given to that function; 0: none. */
extern _Thread_local uint32_t halstream_unseen;
/* Gives it. Called with Python's lock and with no lock of the runtime: Python code runs. Returns -1 with an exception set
 * if that raised, and does nothing if one is set already. */
int halstream_look_at(void);
/* The same for a caller that takes no exception: only a signal's handler raises one, and the thread gets one of its class
 * once it runs Python code again. */
void halstream_look_quietly(void);

/* Sites that name one line of the program, and no stack, have this bit: given.go has them. */
enum { SITE_GIVEN = 1u << 31 };
/* Returns the innermost line of the program of a site, as a site that was given; 0 if it is unknown. Python's lock is
 * not needed. */
uint32_t halstream_site_given(uint32_t site);

/* Returns the stack of a number without that bit, innermost frame first: JSON, a list of
 * frameRecord of records.go, to be freed by the caller; NULL if it is unknown.
 * Python's lock is held. */
char *halstream_site_text(uint32_t site);

#endif /* HALSTREAM_SITES_H */
