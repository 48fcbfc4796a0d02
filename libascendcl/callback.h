/* What Go calls of callback.c. */
#ifndef HS_ACL_CALLBACK_H
#define HS_ACL_CALLBACK_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Starts a thread that runs functions of streams, returns whether it could. */
int hs_acl_start_worker(void);
/* Calls a function of the program, which may call the library. */
void hs_acl_call(uintptr_t function, uintptr_t argument);
/* Calls the program's callback with what failed. */
typedef struct hs_acl_failure {
    uint32_t thread, device, stream, code;
} hs_acl_failure;
void hs_acl_report(uintptr_t callback, uint32_t thread, uint32_t device, uint32_t stream, uint32_t code);

#pragma GCC visibility pop

#endif
