/* Devices. */
#ifndef FAKECUDA_DEVICE_H
#define FAKECUDA_DEVICE_H

void drop_contexts(void); /* for reset, with the lock held */

#endif
