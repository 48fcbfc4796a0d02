/* The end of a process that is checked by the sanitizer, and places of the program for its report. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
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
    int found = lookalikeReport();
    if (found > 0 && status == 0) exit(FOUND);
}

void lookalike_report_at_exit(void)
{
    owner = getpid();
    on_exit(end, NULL);
}

char *lookalike_place(uintptr_t address)
{
    Dl_info info;
    char *text = NULL;
    if (address == 0) return NULL;
    address--; /* what returns there is the call before it */
    if (!dladdr((void *)address, &info) || info.dli_fname == NULL) return NULL;
    const char *file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    unsigned long offset = (unsigned long)(address - (uintptr_t)info.dli_fbase);
    int size = info.dli_sname ? asprintf(&text, "%s+%#lx (%s)", file, offset, info.dli_sname)
                              : asprintf(&text, "%s+%#lx", file, offset);
    return size < 0 ? NULL : text;
}
