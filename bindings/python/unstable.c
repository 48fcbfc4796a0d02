#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "unstable.h"

#include <dlfcn.h>

halstream_unstable_functions halstream_unstable;

extern void *PyType_Type[] __attribute__((weak)); /* a type object, and the type of itself */

__attribute__((constructor)) static void find(void)
{
    halstream_unstable_functions *u = &halstream_unstable;
    *(void **)&u->frame_back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
    *(void **)&u->frame_instruction = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version"); /* from 3.11 on */
    if (version && *version >> 16 == 0x030b) *(void **)&u->code_location = dlsym(RTLD_DEFAULT, "PyCode_Addr2Location");
    *(void **)&u->thread_state = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (!u->thread_state) *(void **)&u->thread_state = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    *(void **)&u->vectorcall = dlsym(RTLD_DEFAULT, "PyObject_Vectorcall");
    /* The second word, and the fourth in a free-threaded CPython. */
    void **type = PyType_Type;
    u->type_at = 1;
    if (type && type[1] != type && type[3] == type) u->type_at = 3;
}
