/* Tensors in the form of DLPack: lent to other libraries, and described by them. */
#ifndef HALSTREAM_DLPACK_H
#define HALSTREAM_DLPACK_H

#include <stdint.h>

/* What a managed tensor of another library says. */
typedef struct {
    uint64_t deleter, flags, data, shape, strides, offset;
    uint32_t major, minor;
    int32_t type, id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
} halstream_fields;

/* Reads the tensor at an address, of which only the version where that is not 1. */
void halstream_read(uint64_t address, int versioned, halstream_fields *to);
uint64_t halstream_lend(int64_t token, uint64_t data, uint64_t type, uint64_t device, uint64_t flags,
                        int versioned, const int64_t *shape, int32_t ndim);
void halstream_give_back(int64_t token);
int64_t halstream_returned(void);
uint64_t halstream_returned_count(void);
uint64_t halstream_capsule_end(void);

#endif /* HALSTREAM_DLPACK_H */
