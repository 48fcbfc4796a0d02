/* What a C function that runs as an operation hands in, for those that call hs_hand_in. */
#ifndef HALSTREAM_NATIVE_H
#define HALSTREAM_NATIVE_H

#include <stddef.h>
#include <stdint.h>

/* As halstream_range of halstream.h. */
typedef struct hs_access {
	uint64_t start, bytes, rows, pitch;
	uint32_t mode, unused;
} hs_access;

/* What one run has handed in. */
typedef struct hs_handed {
	hs_access *list;
	size_t count, room;
	int some; /* it has handed in, perhaps that it accesses nothing */
} hs_handed;

/* Adds to what the function that runs on the calling thread hands in. Returns 0, 1 where no function
 * runs that may, and 2 without memory. */
int hs_hand_in(const hs_access *list, size_t count);

/* Calls the function. handed is NULL for one that may hand in nothing. */
int hs_call(uint64_t function, uint64_t argument, char *text, size_t room, hs_handed *handed);

#endif /* HALSTREAM_NATIVE_H */
