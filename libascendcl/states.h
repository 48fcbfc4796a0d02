/* Tells the functions of the program that have registered for it of the states of devices and streams. */
#ifndef HS_ACL_STATES_H
#define HS_ACL_STATES_H

#include <stdint.h>

#pragma GCC visibility push(hidden)
void hs_acl_device_state(int32_t device, int state);
void hs_acl_stream_state(void *stream, int state);
#pragma GCC visibility pop
#endif
