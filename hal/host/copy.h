// Copies of the host device; see copy.go.
#ifndef HALSTREAM_HOST_COPY_H
#define HALSTREAM_HOST_COPY_H

#include <stdint.h>

// hs_streaming_from returns the size from which a copy uses streaming stores,
// UINT64_MAX where the processor has none that are known to pay.
uint64_t hs_streaming_from(void);

// hs_copy_bytes copies between two ranges that do not overlap. With streaming
// stores the bytes are visible to every thread that synchronizes with the caller
// afterwards, as with memcpy. Called on any thread, with no lock held.
void hs_copy_bytes(uint64_t dst, uint64_t src, uint64_t size, int streaming);

#endif
