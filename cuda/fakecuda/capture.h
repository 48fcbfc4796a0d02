/* Captures. */
#ifndef FAKECUDA_CAPTURE_H
#define FAKECUDA_CAPTURE_H

#include "work.h"

/* Called with the lock held. */
CUresult capture_permits(int function, uint64_t handle);
void capture_leave(struct stream *stream);
void drop_captures(void);

#endif
