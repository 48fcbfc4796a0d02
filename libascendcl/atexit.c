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
    int found = lookalikeEnds();
    if (found > 0 && status == 0) exit(FOUND);
}

void lookalike_report_at_exit(void)
{
    owner = getpid();
    on_exit(end, NULL);
}

char *lookalike_module(uintptr_t address, uintptr_t *base)
{
    Dl_info info;
    if (!dladdr((void *)address, &info) || info.dli_fname == NULL) return NULL;
    *base = (uintptr_t)info.dli_fbase;
    /* The program itself has the name by which it was called, which may not lead to it. */
    Dl_info own;
    int program = dladdr((void *)lookalike_module, &own) && strchr(info.dli_fname, '/') == NULL;
    return strdup(program ? "/proc/self/exe" : info.dli_fname);
}

char *lookalike_demangled(const char *name)
{
    char *(*demangle)(const char *, char *, size_t *, int *) = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    return demangle && name[0] == '_' && name[1] == 'Z' ? demangle(name, NULL, NULL, NULL) : NULL;
}

void lookalike_note_stack(void)
{
    enum { OWN = 8 }; /* frames of the library, below the program's */
    void *found[LOOKALIKE_STACK + OWN];
    int count = backtrace(found, LOOKALIKE_STACK + OWN), first = 0;
    while (first < count && (uintptr_t)found[first] != lookalike_self.here) first++;
    lookalike_self.depth = 0;
    if (lookalike_self.stack == NULL) lookalike_self.stack = calloc(LOOKALIKE_STACK, sizeof *lookalike_self.stack);
    if (lookalike_self.stack == NULL) return;
    for (int i = first; i < count && lookalike_self.depth < LOOKALIKE_STACK; i++)
        lookalike_self.stack[lookalike_self.depth++] = (uintptr_t)found[i];
}

void lookalike_self_stack(uintptr_t *into)
{
    if (lookalike_self.depth == 0) into[0] = lookalike_self.here;
    for (uint32_t i = 0; i < lookalike_self.depth; i++) into[i] = lookalike_self.stack[i];
}

uintptr_t lookalike_function_of(uint32_t thread)
{
    return __atomic_load_n(&lookalike_running[thread % LOOKALIKE_RUNNERS], __ATOMIC_RELAXED);
}

/* Whether the program handles a signal that may come by itself, and does not only ask it to end. */
int lookalike_handles_signals(void)
{
    Dl_info own, of;
    struct sigaction action;
    if (!dladdr((void *)lookalike_module, &own)) return 1;
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
