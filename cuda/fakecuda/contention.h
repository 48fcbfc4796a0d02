/* What calls wait for besides their own work. */
#ifndef FAKECUDA_CONTENTION_H
#define FAKECUDA_CONTENTION_H

#include "work.h"

/* Calls that wait for the device with the silicon profile. A driver of CUDA 13 was measured to wait in all but the first two. */
#define SILICON_WAITS "first_launch,cuMemHostAlloc,cuMemFree_v2,cuMemFreeHost,cuMemHostUnregister,cuMemPoolTrimTo," \
                      "cuModuleLoadData,cuModuleLoadDataEx,cuModuleUnload"

/* Called with the lock held, which the first three may let go of while they wait. */
void enter_context(int function, uint64_t handle);
void enter_first_launch(struct context *context);
void enter_trim(int device);
void leave_context(void);

int make_draining(const char *name, bool on);
int make_stopping(const char *name, bool on);
void stop_calls_no_more(void);
unsigned long long stopped_calls(void);
void read_draining(const char *otherwise);

#endif
