/* The end of a process that a tool looks at, and places in its code. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "thread.h"

enum { FOUND = 66 }; /* the exit code, as Python programs have it */

static pid_t owner; /* a forked child ends with its own code */

/* Called by exit(), also in a function of a stream. glibc continues with the handlers that are left, and
 * takes the last status. */
static void end(int status, void *unused)
{
    (void)unused;
    if (getpid() != owner) return;
    int found = hsAclEnds();
    if (found > 0 && status == 0) exit(FOUND);
}

void hs_acl_report_at_exit(void)
{
    owner = getpid();
    on_exit(end, NULL);
}

char *hs_acl_module(uintptr_t address, uintptr_t *base)
{
    Dl_info info;
    if (!dladdr((void *)address, &info) || info.dli_fname == NULL) return NULL;
    *base = (uintptr_t)info.dli_fbase;
    /* The program itself has the name by which it was called, which may not lead to it. */
    Dl_info own;
    int program = dladdr((void *)hs_acl_module, &own) && strchr(info.dli_fname, '/') == NULL;
    return strdup(program ? "/proc/self/exe" : info.dli_fname);
}

char *hs_acl_demangled(const char *name)
{
    char *(*demangle)(const char *, char *, size_t *, int *) = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    return demangle && name[0] == '_' && name[1] == 'Z' ? demangle(name, NULL, NULL, NULL) : NULL;
}

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

uintptr_t hs_acl_function_of(uint32_t thread)
{
    return __atomic_load_n(&hs_acl_running[thread % HS_ACL_RUNNERS], __ATOMIC_RELAXED);
}

/* Whether the program handles a signal that may come by itself, and does not only ask it to end. */
int hs_acl_handles_signals(void)
{
    Dl_info own, of;
    struct sigaction action;
    if (!dladdr((void *)hs_acl_module, &own)) return 1;
    for (int number = 1; number < NSIG; number++) {
        if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) continue;
        if (sigaction(number, NULL, &action) != 0) continue;
        void *handler = action.sa_flags & SA_SIGINFO ? (void *)action.sa_sigaction : (void *)action.sa_handler;
        if (handler == (void *)SIG_DFL || handler == (void *)SIG_IGN) continue;
        if (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP) continue;
        if (!dladdr(handler, &of) || of.dli_fbase != own.dli_fbase) return 1;
    }
    return 0;
}
