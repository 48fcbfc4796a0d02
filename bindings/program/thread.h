/* Who calls, and from where. */
#ifndef HS_PROGRAM_THREAD_H
#define HS_PROGRAM_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "../calls/calls.h"
#include "../threads/threads.h"

#pragma GCC visibility push(hidden)

enum { HS_PROGRAM_STACK = 24 }; /* places of the program that are kept of a call */

/* The calling thread. `number` is its place in Go's table, 0 before its first call. */
typedef struct hs_program_thread {
    uint32_t number;
    const char *function; /* the name of the call of the program that is in progress, NULL where it is not known */
    uintptr_t here;       /* and where it returns to */
    uint32_t depth;       /* of its stack, 0 if only the innermost place is known */
    uintptr_t *stack;     /* of HS_PROGRAM_STACK places, NULL before the first one is kept */
} hs_program_thread;
/* It is small enough for the room that the C library keeps for libraries that are loaded late, so it can be reached
 * without a call. */
extern _Thread_local hs_program_thread hs_program_self __attribute__((tls_model("initial-exec")));

/* Begins a call: 0 if it can go on, 1 in a forked child, where nothing can. */
int hs_program_enter(const char *function, void *here);

/* ThreadSanitizer's, in programs that are compiled with it: it does not see what Go orders, so the C
 * half says that each call and each function comes behind those that ended before. */
extern void __tsan_acquire(void *address) __attribute__((weak, visibility("default")));
extern void __tsan_release(void *address) __attribute__((weak, visibility("default")));

/* The calling thread's place in Go's table, 0 without one. */
uint32_t hs_program_self_number(void);
/* The name of the call that is in progress on the calling thread. */
const char *hs_program_self_function(void);
/* Keeps the stack of the call that is in progress. Called in C, as unwinding ends at frames of Go's. */
void hs_program_note_stack(void);
/* Copies it, or where it was not kept its innermost place. */
void hs_program_self_stack(uintptr_t *into);
/* Not 0: each call keeps its stack. */
extern int hs_program_stacks;
/* The function of a stream that a thread with a number runs, or has run last. */
uintptr_t hs_program_function_of(uint32_t thread);

extern char hs_program_order;
static inline void hs_program_come_before(void)
{
    if (__builtin_expect(__tsan_release != NULL, 0)) __tsan_release(&hs_program_order);
}
static inline void hs_program_come_behind(void)
{
    if (__builtin_expect(__tsan_acquire != NULL, 0)) __tsan_acquire(&hs_program_order);
}

#pragma GCC visibility pop

#endif
