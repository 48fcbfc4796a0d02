/* Tensors lent to other libraries in the form of DLPack. */
#ifndef HALSTREAM_DLPACK_H
#define HALSTREAM_DLPACK_H

#include <stdint.h>

uint64_t halstream_lend(int64_t token, uint64_t data, uint64_t type, uint64_t device, uint64_t flags,
                        int versioned, const int64_t *shape, int32_t ndim);
void halstream_give_back(int64_t token);
int64_t halstream_returned(void);
uint64_t halstream_returned_count(void);
uint64_t halstream_capsule_end(void);

#endif /* HALSTREAM_DLPACK_H */
