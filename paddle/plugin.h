/* The parts of the plug-in, and what they share. */
#ifndef HALSTREAM_PADDLE_PLUGIN_H
#define HALSTREAM_PADDLE_PLUGIN_H

#include <halstream.h>
#include <stdatomic.h>
#include <stdint.h>

#include "interface.h"

/* The runtime's table of functions; NULL until Paddle has loaded the plug-in. */
extern const halstream_api *core;

/* 1 in a process that was forked from one with the plug-in: the runtime is dead there, and every function of the
 * plug-in works at once, on the calling thread. */
extern int forked;

/* Returns what Paddle expects for a result of the runtime. After the interpreter's end it is success: what is left
 * is only destroyed. An error's text is printed, since Paddle's exception has no room for it. */
int result(int code, const char *doing);

/* Waits of the runtime. A thread that Python knows takes Python's lock for the call, which releases it meanwhile,
 * so that Ctrl-C ends the wait. */
int wait_for_stream(halstream_id stream);
int wait_for_event(halstream_id event);
int wait_for_device(int32_t device);

/* Options that the next create_stream and create_event of this thread take: Paddle's functions have no room. A
 * stream that the program makes is announced so; another one is that of Paddle's own context. */
struct next_stream {
    int announced;
    int32_t priority;
    uint32_t flags;
};
extern _Thread_local struct next_stream next_stream;
extern _Thread_local uint32_t next_event_flags;

/* The default stream of a device, and those that Paddle has on one: how many there are, at most `most` of them in `into`. */
halstream_id default_stream(int32_t device);
size_t streams_of(int32_t device, halstream_id *into, size_t most);

void fill_stream_hooks(struct paddle_hooks *hooks);
void fill_memory_hooks(struct paddle_hooks *hooks);
void lock_streams(void);
void unlock_streams(void);
void lock_memory(void);
void unlock_memory(void);

static inline halstream_id id_of(void *handle) { return (halstream_id)(intptr_t)handle; }
static inline void *handle_of(halstream_id id) { return (void *)(intptr_t)id; }

#endif
