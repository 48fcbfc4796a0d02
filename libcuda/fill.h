/* Fills of memory in rows. */
#ifndef HS_CUDA_FILL_H
#define HS_CUDA_FILL_H

#include <stddef.h>
#include <stdint.h>

typedef struct hs_cuda_fill {
    uint64_t dst, pitch, width, rows;
    uint32_t value, size;
} hs_cuda_fill;

/* Writes the value into each element; a native function of package hal. */
__attribute__((visibility("hidden"))) int hs_cuda_fill_rows(void *fill, char *text, size_t room);

#endif
