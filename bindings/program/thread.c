/* Threads of the program: who calls, and from where. */
#define _GNU_SOURCE
#include "thread.h"

#include <execinfo.h>
#include <stdlib.h>

#include "_cgo_export.h"

_Thread_local hs_program_thread hs_program_self;
int hs_program_stacks;
char hs_program_order;

void halstream_thread_ends(void)
{
    hs_program_self.depth = 0;
    free(hs_program_self.stack);
    hs_program_self.stack = NULL;
    hs_program_self.number = 0; /* a later destructor of the program may call again */
}

int hs_program_enter(const char *function, void *here)
{
    if (__builtin_expect(halstream_forked, 0)) return 1;
    hs_program_self.function = function;
    hs_program_self.here = (uintptr_t)here;
    hs_program_self.depth = 0;
    if (__builtin_expect(hs_program_stacks, 0)) hs_program_note_stack();
    hs_program_come_before();
    if (__builtin_expect(hs_program_self.number == 0, 0)) hs_program_self.number = halstreamProgramRegister();
    return 0;
}

uint32_t hs_program_self_number(void) { return hs_program_self.number; }
const char *hs_program_self_function(void) { return hs_program_self.function; }

void hs_program_note_stack(void)
{
    enum { OWN = 8 }; /* frames of the library, below the program's */
    void *found[HS_PROGRAM_STACK + OWN];
    int count = backtrace(found, HS_PROGRAM_STACK + OWN), first = 0;
    while (first < count && (uintptr_t)found[first] != hs_program_self.here) first++;
    hs_program_self.depth = 0;
    if (hs_program_self.stack == NULL) hs_program_self.stack = calloc(HS_PROGRAM_STACK, sizeof *hs_program_self.stack);
    if (hs_program_self.stack == NULL) return;
    for (int i = first; i < count && hs_program_self.depth < HS_PROGRAM_STACK; i++)
        hs_program_self.stack[hs_program_self.depth++] = (uintptr_t)found[i];
}

void hs_program_self_stack(uintptr_t *into)
{
    if (hs_program_self.depth == 0) into[0] = hs_program_self.here;
    for (uint32_t i = 0; i < hs_program_self.depth; i++) into[i] = hs_program_self.stack[i];
}

/* The functions that threads run, by the numbers of the threads modulo this; for reports. */
enum { RUNNERS = 4096 };
static uintptr_t running[RUNNERS];

uintptr_t hs_program_function_of(uint32_t thread)
{
    return __atomic_load_n(&running[thread % RUNNERS], __ATOMIC_RELAXED);
}

/* -- calls.h -- */

uint32_t halstream_call_begins(halstream_call *call, void *here)
{
    (void)call;
    return hs_program_enter(NULL, here) ? 0 : hs_program_self.number;
}

void halstream_call_waits(void) { hs_program_note_stack(); }

void halstream_call_ends(const halstream_call *call)
{
    (void)call;
    hs_program_come_behind();
}

void halstream_function_begins(uintptr_t function)
{
    hs_program_come_behind();
    __atomic_store_n(&running[hs_program_self.number % RUNNERS], function, __ATOMIC_RELAXED);
}

void halstream_function_ends(void) { hs_program_come_before(); }
