/* The end of the process: pinned memory is unmapped while threads of the program may still run. */
#include "fakecuda.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define LONGEST_MS 2000

static atomic_int executing;

void begin_executing(void) {
    atomic_fetch_add(&executing, 1);
    while (atomic_load(&ended)) {
        atomic_fetch_sub(&executing, 1);
        for (;;)
            nanosleep(&(struct timespec){3600, 0}, NULL); /* the process ends */
    }
}

void end_executing(void) {
    atomic_fetch_sub(&executing, 1);
}

/* Called at exit, after what the program has registered since cuInit. */
static void leave(void) {
    atomic_store(&ended, true);
    if (!state.settings.unmap_at_exit || in_forked_child())
        return;
    pthread_mutex_lock(&state.lock);
    for (size_t i = 0; i < state.contexts.count; i++)
        if (state.contexts.items[i] != NULL)
            poison(state.contexts.items[i], DEINITIALIZED); /* which ends the waits of streams */
    pthread_mutex_unlock(&state.lock);
    for (int i = 0; i < LONGEST_MS && atomic_load(&executing) > 0; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (atomic_load(&executing) > 0)
        return; /* a host function of the program, for instance */
    for (size_t i = 0; i < state.block_count; i++)
        if (state.blocks[i]->where == PINNED_MEMORY)
            (void)mprotect((void *)(uintptr_t)state.blocks[i]->address, (state.blocks[i]->size + 4095) & ~4095ull, PROT_NONE);
    /* To take a device down takes a while, in which the threads of the program run on. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

void watch_exit(void) {
    static bool watched;
    if (!watched)
        watched = atexit(leave) == 0;
}
