/* Libraries in front of NVIDIA's compilers, with their names: where a program asks for machine code of a GPU they give
 * PTX, which libcuda.so.1 takes in its place. Everything else is the real library's. */
#ifndef HS_CUDA_FRONT_H
#define HS_CUDA_FRONT_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* A function of the real library, whose path is the value of a variable. */
static void *real(const char *variable, const char *name)
{
    static void *library;
    if (library == NULL) {
        const char *path = getenv(variable);
        library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library == NULL) {
            fprintf(stderr, "halstream: %s names no library that can be loaded: %s\n", variable, dlerror());
            return NULL;
        }
    }
    return dlsym(library, name);
}

/* A function that calls the real one with all that could be its arguments, as libcuda/shim does; without one it returns
 * `absent`. */
#define FORWARD(variable, name, absent)                                                                                \
    EXPORTED intptr_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)                     \
    {                                                                                                                  \
        static intptr_t (*is)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);                             \
        if (is == NULL) *(void **)&is = real(variable, #name);                                                         \
        return is ? is(a, b, c, d, e, f) : (absent);                                                                   \
    }

#endif
