#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "unstable.h"

#include <dlfcn.h>

halstream_unstable_functions halstream_unstable;

__attribute__((constructor)) static void find(void)
{
    halstream_unstable_functions *u = &halstream_unstable;
    *(void **)&u->frame_back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
    *(void **)&u->frame_instruction = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version"); /* from 3.11 on */
    if (version && *version >> 16 == 0x030b) *(void **)&u->code_location = dlsym(RTLD_DEFAULT, "PyCode_Addr2Location");
    *(void **)&u->thread_state = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (!u->thread_state) *(void **)&u->thread_state = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
}
