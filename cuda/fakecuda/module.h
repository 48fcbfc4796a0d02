/* Modules. */
#ifndef FAKECUDA_MODULE_H
#define FAKECUDA_MODULE_H

#include "work.h"

#define PROCESSORS 8

extern struct last_launch { uint32_t shared, cluster; } last_launch; /* bytes, and blocks of a cluster or 0 */

/* Called with the lock held. */
void drop_modules(struct context *context);
void drop_libraries(void);
void modules_reset(void);
size_t live_modules(void);

#endif
