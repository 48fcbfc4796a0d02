/* Places in the code of the process, and its handlers of signals. */
#define _GNU_SOURCE
#include "symbols.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

char *hs_program_module(uintptr_t address, uintptr_t *base)
{
    Dl_info info;
    if (!dladdr((void *)address, &info) || info.dli_fname == NULL) return NULL;
    *base = (uintptr_t)info.dli_fbase;
    /* The program itself has the name by which it was called, which may not lead to it. */
    Dl_info own;
    int program = dladdr((void *)hs_program_module, &own) && strchr(info.dli_fname, '/') == NULL;
    return strdup(program ? "/proc/self/exe" : info.dli_fname);
}

char *hs_program_demangled(const char *name)
{
    char *(*demangle)(const char *, char *, size_t *, int *) = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    return demangle && name[0] == '_' && name[1] == 'Z' ? demangle(name, NULL, NULL, NULL) : NULL;
}

/* Whether the program handles a signal that may come by itself, and does not only ask it to end. */
int hs_program_handles_signals(void)
{
    Dl_info own, of;
    struct sigaction action;
    if (!dladdr((void *)hs_program_module, &own)) return 1;
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
