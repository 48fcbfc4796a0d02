/* The one way into the functions of the CUDA driver, and the functions of the program that streams call. */
#include "entry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../bindings/calls/calls.h"
#include "../bindings/threads/threads.h"
#include "_cgo_export.h"

enum { NOT_INITIALIZED = 3, DEINITIALIZED = 4, NOT_PERMITTED = 800, LAUNCH_FAILED = 719 }; /* CUDA_ERROR_... */

/* 1 while the thread runs a function of the program on a stream, which may not call the driver. */
static _Thread_local int inside;

/* Of the functions, in the library that the program has loaded. */
static const char *const *named;

/* At the end of the process, with which everything ends: what gives something back succeeds. */
static int after_end(int32_t function)
{
    static const char *const back[] = {"Destroy", "Free", "Release", "Unload", "Unregister"};
    for (size_t i = 0; i < sizeof back / sizeof *back; i++)
        if (strstr(named[function], back[i]) != NULL) return 0;
    return DEINITIALIZED;
}

static int call(int32_t function, uint64_t *arguments, void *here)
{
    if (halstream_forked) return NOT_INITIALIZED;
    if (inside) return NOT_PERMITTED;
    halstream_call made;
    uint32_t me = halstream_call_begins(&made, here);
    if (me == 0) return after_end(function);
    int code = hsCudaCall(me, function, arguments);
    while (code == HS_CUDA_WAITS) {
        halstream_call_waits();
        code = hsCudaGoOn(me);
    }
    halstream_call_ends(&made);
    return code;
}

hs_cuda_entry *halstream_cuda(const char *const *names, void *const *addresses, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (!hsCudaLibrary(i, (char *)names[i], (uintptr_t)addresses[i])) return NULL;
    named = names;
    return call;
}

static void run(hs_cuda_call *c, int status)
{
    inside++;
    c->ran = 1;
    if (c->callback) ((void (*)(uintptr_t, int, void *))c->function)(c->stream, status, (void *)c->argument);
    else ((void (*)(void *))c->function)((void *)c->argument);
    inside--;
}

int hs_cuda_run(void *call, char *text, size_t room)
{
    (void)text, (void)room;
    halstream_function_begins(((hs_cuda_call *)call)->function);
    run(call, 0);
    halstream_function_ends();
    return 0;
}

/* A callback is called even where its stream has failed; a host function is not. */
void hs_cuda_release(void *call)
{
    hs_cuda_call *c = call;
    if (c->callback && !c->ran) run(c, LAUNCH_FAILED);
    free(c);
}

void hs_cuda_destroy(uintptr_t function, uintptr_t argument)
{
    inside++;
    ((void (*)(void *))function)((void *)argument);
    inside--;
}

static void *destroying(void *pair)
{
    uintptr_t function = ((uintptr_t *)pair)[0], argument = ((uintptr_t *)pair)[1];
    free(pair);
    hs_cuda_destroy(function, argument);
    return NULL;
}

void hs_cuda_destroy_on_own_thread(uintptr_t function, uintptr_t argument)
{
    pthread_t thread;
    uintptr_t *pair = malloc(2 * sizeof *pair);
    if (pair != NULL) {
        pair[0] = function, pair[1] = argument;
        if (pthread_create(&thread, NULL, destroying, pair) == 0) {
            pthread_detach(thread);
            return;
        }
        free(pair);
    }
    hs_cuda_destroy(function, argument);
}

size_t hs_cuda_shared_of(uintptr_t function, int block) { return ((size_t (*)(int))function)(block); }
