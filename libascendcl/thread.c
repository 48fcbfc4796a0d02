/* Threads of the program: who calls, and from where. */
#define _GNU_SOURCE
#include "thread.h"

#include <execinfo.h>
#include <stdlib.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"

_Thread_local hs_acl_thread hs_acl_self;
int hs_acl_stacks;
char hs_acl_order;

void halstream_thread_ends(void)
{
    hs_acl_self.depth = 0;
    free(hs_acl_self.stack);
    hs_acl_self.stack = NULL;
    hs_acl_self.number = 0; /* a later destructor of the program may call again */
}

int hs_acl_enter(const char *function, void *here)
{
    if (__builtin_expect(halstream_forked, 0)) return ACL_ERROR_RT_DEV_SETUP_ERROR;
    hs_acl_self.function = function;
    hs_acl_self.here = (uintptr_t)here;
    hs_acl_self.depth = 0;
    if (__builtin_expect(hs_acl_stacks, 0)) hs_acl_note_stack();
    hs_acl_come_before();
    if (__builtin_expect(hs_acl_self.number == 0, 0)) hs_acl_self.number = hsAclRegister();
    return 0;
}

uint32_t hs_acl_self_number(void) { return hs_acl_self.number; }
const char *hs_acl_self_function(void) { return hs_acl_self.function; }

void hs_acl_note_stack(void)
{
    enum { OWN = 8 }; /* frames of the library, below the program's */
    void *found[HS_ACL_STACK + OWN];
    int count = backtrace(found, HS_ACL_STACK + OWN), first = 0;
    while (first < count && (uintptr_t)found[first] != hs_acl_self.here) first++;
    hs_acl_self.depth = 0;
    if (hs_acl_self.stack == NULL) hs_acl_self.stack = calloc(HS_ACL_STACK, sizeof *hs_acl_self.stack);
    if (hs_acl_self.stack == NULL) return;
    for (int i = first; i < count && hs_acl_self.depth < HS_ACL_STACK; i++)
        hs_acl_self.stack[hs_acl_self.depth++] = (uintptr_t)found[i];
}

void hs_acl_self_stack(uintptr_t *into)
{
    if (hs_acl_self.depth == 0) into[0] = hs_acl_self.here;
    for (uint32_t i = 0; i < hs_acl_self.depth; i++) into[i] = hs_acl_self.stack[i];
}
