/* Tensors in the form of DLPack: exported to other libraries, and imported from them. */
#ifndef HALSTREAM_DLPACK_H
#define HALSTREAM_DLPACK_H

#include <stdint.h>

/* The fields of another library's managed tensor. */
typedef struct {
    uint64_t deleter, flags, data, shape, strides, offset;
    uint32_t major, minor;
    int32_t type, id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
} halstream_tensor_fields;

/* Reads the tensor at an address; only its version if that is not 1. */
void halstream_read_tensor(uint64_t address, int versioned, halstream_tensor_fields *to);
uint64_t halstream_export_tensor(int64_t token, uint64_t data, uint64_t type, uint64_t device, uint64_t flags,
                        int versioned, const int64_t *shape, int32_t ndim);
void halstream_push_token(int64_t token);
int64_t halstream_pop_token(void);
uint64_t halstream_pending_tokens(void);
uint64_t halstream_capsule_destructor(void);

#endif /* HALSTREAM_DLPACK_H */
