/* Who calls, and from where. */
#ifndef HS_ACL_THREAD_H
#define HS_ACL_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "../bindings/threads/threads.h"

#pragma GCC visibility push(hidden)

enum { HS_ACL_STACK = 24 }; /* places of the program that are kept of a call */

/* The calling thread. `number` is its place in Go's table, 0 before its first call. */
typedef struct hs_acl_thread {
    uint32_t number;
    const char *function; /* the name of the call of the program that is in progress */
    uintptr_t here;       /* and where it returns to */
    uint32_t depth;       /* of its stack, 0 if only the innermost place is known */
    uintptr_t *stack;     /* of HS_ACL_STACK places, NULL before the first one is kept */
} hs_acl_thread;
/* It is small enough for the room that the C library keeps for libraries that are loaded late, so it can be reached
 * without a call. */
extern _Thread_local hs_acl_thread hs_acl_self __attribute__((tls_model("initial-exec")));

/* Begins a call: the code to return at once, 0 if it can go on. */
int hs_acl_enter(const char *function, void *here);

/* ThreadSanitizer's, in programs that are compiled with it: it does not see what Go orders, so the C
 * half says that each call and each function comes behind those that ended before. */
extern void __tsan_acquire(void *address) __attribute__((weak, visibility("default")));
extern void __tsan_release(void *address) __attribute__((weak, visibility("default")));

/* The calling thread's place in Go's table, 0 without one. */
uint32_t hs_acl_self_number(void);
/* The name of the call that is in progress on the calling thread. */
const char *hs_acl_self_function(void);
/* Keeps the stack of the call that is in progress. Called in C, as unwinding ends at frames of Go's. */
void hs_acl_note_stack(void);
/* Copies it, or where it was not kept its innermost place. */
void hs_acl_self_stack(uintptr_t *into);
/* Not 0: each call keeps its stack. */
extern int hs_acl_stacks;

/* What Go returns where the caller's stack is to be kept before it goes on waiting. */
enum { HS_ACL_WAITS = -1 };

extern char hs_acl_order;
static inline void hs_acl_come_before(void)
{
    if (__builtin_expect(__tsan_release != NULL, 0)) __tsan_release(&hs_acl_order);
}
static inline void hs_acl_come_behind(void)
{
    if (__builtin_expect(__tsan_acquire != NULL, 0)) __tsan_acquire(&hs_acl_order);
}

#pragma GCC visibility pop

/* The parameters of Go's functions: handles are numbers there. */
#define HANDLE(pointer) ((uintptr_t)(pointer))
#define OUT(pointer) ((uintptr_t *)(pointer))
#define STATUS(pointer) ((int32_t *)(pointer))
enum { FOREVER = -1 }; /* milliseconds */

/* Calls a function of Go's with the caller's number as its first argument. */
#define CALL(function, ...)                                                    \
    do {                                                                       \
        int code = hs_acl_enter(__func__, __builtin_return_address(0));     \
        if (code) return code;                                                 \
        code = function(__VA_ARGS__);                                          \
        hs_acl_come_behind();                                               \
        return code;                                                           \
    } while (0)
#define ME hs_acl_self.number

/* The same for a call that may wait for ever: a report of such a wait has the stack of the program. */
#define WAIT(function, ...)                                                    \
    do {                                                                       \
        int code = hs_acl_enter(__func__, __builtin_return_address(0));     \
        if (code) return code;                                                 \
        code = function(__VA_ARGS__);                                          \
        if (code == HS_ACL_WAITS) {                                         \
            hs_acl_note_stack();                                            \
            code = hsAclGoOn(ME);                                          \
        }                                                                      \
        hs_acl_come_behind();                                               \
        return code;                                                           \
    } while (0)

#endif
