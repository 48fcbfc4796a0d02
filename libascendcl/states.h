/* Who is told of the states of devices and streams: calls_chip.c. */
#ifndef LOOKALIKE_STATES_H
#define LOOKALIKE_STATES_H

#include <stdint.h>

#pragma GCC visibility push(hidden)
void lookalike_device_state(int32_t device, int state);
void lookalike_stream_state(void *stream, int state);
#pragma GCC visibility pop
#endif
