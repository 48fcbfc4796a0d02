/* How a function of AscendCL calls Go. */
#ifndef HS_ACL_THREAD_H
#define HS_ACL_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "../bindings/program/thread.h"

/* Begins a call: the code to return at once, 0 if it can go on. */
static inline int hs_acl_enter(const char *function, void *here)
{
    enum { DEV_SETUP_ERROR = 507033 }; /* ACL_ERROR_RT_DEV_SETUP_ERROR */
    return hs_program_enter(function, here) ? DEV_SETUP_ERROR : 0;
}

/* What Go returns where the caller's stack is to be kept before it goes on waiting. */
enum { HS_ACL_WAITS = -1 };

/* The parameters of Go's functions: handles are numbers there. */
#define HANDLE(pointer) ((uintptr_t)(pointer))
#define OUT(pointer) ((uintptr_t *)(pointer))
#define STATUS(pointer) ((int32_t *)(pointer))
enum { FOREVER = -1 }; /* milliseconds */

/* Calls a function of Go's with the caller's number as its first argument. */
#define CALL(function, ...)                                                                                            \
    do {                                                                                                               \
        int code = hs_acl_enter(__func__, __builtin_return_address(0));                                                \
        if (code) return code;                                                                                         \
        code = function(__VA_ARGS__);                                                                                  \
        hs_program_come_behind();                                                                                      \
        return code;                                                                                                   \
    } while (0)
#define ME hs_program_self.number

/* The same for a call that may wait for ever: a report of such a wait has the stack of the program. */
#define WAIT(function, ...)                                                                                            \
    do {                                                                                                               \
        int code = hs_acl_enter(__func__, __builtin_return_address(0));                                                \
        if (code) return code;                                                                                         \
        code = function(__VA_ARGS__);                                                                                  \
        if (code == HS_ACL_WAITS) {                                                                                    \
            hs_program_note_stack();                                                                                   \
            code = hsAclGoOn(ME);                                                                                      \
        }                                                                                                              \
        hs_program_come_behind();                                                                                      \
        return code;                                                                                                   \
    } while (0)

#endif
