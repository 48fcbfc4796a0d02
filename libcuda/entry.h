/* The one way into the functions of the CUDA driver. */
#ifndef HS_CUDA_ENTRY_H
#define HS_CUDA_ENTRY_H

#include <stddef.h>
#include <stdint.h>

enum { HS_CUDA_ARGUMENTS = 12 }; /* as many as any function has */
/* What Go returns where the caller's stack is to be kept before it goes on waiting. */
enum { HS_CUDA_WAITS = -1 };

/* Calls the function with a number, for a caller to which it returns. */
typedef int hs_cuda_entry(int32_t function, uint64_t *arguments, void *here);

/* Tells the names of the functions and their addresses in the library that the program has loaded, and returns the
 * entry; NULL if a name is unknown, as the library is of another version. */
__attribute__((visibility("default"))) hs_cuda_entry *halstream_cuda(const char *const *names, void *const *addresses,
                                                                   int32_t count);

#pragma GCC visibility push(hidden)

/* A function of the program on a stream. */
typedef struct hs_cuda_call {
    uintptr_t function, argument;
    uintptr_t stream; /* for a callback, which gets its stream and a status; 0 for a host function */
    int callback;
    int ran;
} hs_cuda_call;

/* What package hal calls of it: see hal.NativeFunc. */
int hs_cuda_run(void *call, char *text, size_t room);
void hs_cuda_release(void *call);
/* Calls the destructor of a user object. */
void hs_cuda_destroy(uintptr_t function, uintptr_t argument);
void hs_cuda_destroy_on_own_thread(uintptr_t function, uintptr_t argument);
/* Calls a program's function that says how much dynamic shared memory a block of a size needs. */
size_t hs_cuda_shared_of(uintptr_t function, int block);

#pragma GCC visibility pop

#endif
