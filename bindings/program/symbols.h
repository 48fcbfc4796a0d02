/* Places in the code of the process. */
#ifndef HS_PROGRAM_SYMBOLS_H
#define HS_PROGRAM_SYMBOLS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The file of the code at an address, with malloc, and where it lies in memory; NULL if it is unknown. */
char *hs_program_module(uintptr_t address, uintptr_t *base);
/* The name of a C++ function as its source has it, with malloc; NULL for other names, and where the program has no
 * library of C++. */
char *hs_program_demangled(const char *name);
/* Whether the program handles a signal that may come by itself, and does not only ask it to end. */
int hs_program_handles_signals(void);

#pragma GCC visibility pop

#endif
