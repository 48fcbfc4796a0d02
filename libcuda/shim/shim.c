/* libcuda.so.1: every function of the driver by its name, and nothing behind it but the entry (entry.h), in the library
 * that has the runtime.
 *
 * A process has one Go runtime. In a process of Python that library is the extension of the package halstream, whether
 * or not the program imports it; in others it is libhalstream_cuda.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../entry.h"

enum { NOT_INITIALIZED = 3 }; /* CUDA_ERROR_NOT_INITIALIZED */

/* By its name the backend for NVIDIA GPUs sees that this is no driver of one. */
__attribute__((visibility("default"))) const int halstream_driver = 1;

static hs_cuda_entry *entry;

/* Where the program called a library of ours that calls these functions for it; NULL where it calls them itself. */
static _Thread_local void *called_from;
__attribute__((visibility("default"))) void halstream_called_from(void *here) { called_from = here; }

/* Calls go on in the entry with all that could be an argument: those that the caller has not passed are what is in
 * registers and above its frame, and are not looked at. The calling conventions of Linux on x86-64 and arm64 give each
 * argument of these functions 64 bits, but for structures that are passed by value: handles of other processes' memory
 * and events (see shareHandle in libcuda/share.go), and else only of functions that are refused. */
#define FUNCTION(number, name)                                                                                         \
    __attribute__((visibility("default"))) int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,        \
                                                    uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j,        \
                                                    uint64_t k, uint64_t l)                                            \
    {                                                                                                                  \
        uint64_t arguments[HS_CUDA_ARGUMENTS] = {a, b, c, d, e, f, g, h, i, j, k, l};                                  \
        void *here = called_from ? called_from : __builtin_return_address(0);                                          \
        return entry ? entry(number, arguments, here) : NOT_INITIALIZED;                                               \
    }
#include "names.h"
#undef FUNCTION

#define FUNCTION(number, name) #name,
static const char *const names[] = {
#include "names.h"
};
#undef FUNCTION

#define FUNCTION(number, name) (void *)name,
static void *const addresses[] = {
#include "names.h"
};
#undef FUNCTION

enum { COUNT = sizeof names / sizeof *names };

/* Loads a library by the value of a variable, or by its path from the folder of this one. */
static void *load(const char *variable, const char *path)
{
    char file[PATH_MAX];
    const char *given = getenv(variable);
    Dl_info own;
    if (given == NULL || *given == 0) {
        if (!dladdr((void *)load, &own)) return NULL;
        const char *end = strrchr(own.dli_fname, '/');
        int length = end ? (int)(end - own.dli_fname) + 1 : 0;
        if (snprintf(file, sizeof file, "%.*s%s", length, own.dli_fname, path) >= (int)sizeof file) return NULL;
        given = file;
    }
    return dlopen(given, RTLD_NOW | RTLD_LOCAL);
}

/* Loads the library in front of one of NVIDIA's compilers, whose path is the value of a variable, so that a program that
 * loads that by its name gets the one in front. */
static void load_front(const char *variable)
{
    char path[PATH_MAX];
    const char *real = getenv(variable), *name = real ? strrchr(real, '/') : NULL;
    if (name == NULL || snprintf(path, sizeof path, "front%s", name) >= (int)sizeof path) return;
    if (load("", path) == NULL) fprintf(stderr, "halstream: there is nothing in front of %s: %s\n", real, dlerror());
}

__attribute__((constructor)) static void begin(void)
{
    load_front("HALSTREAM_NVRTC");
    load_front("HALSTREAM_NVJITLINK");
    void *library = NULL;
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized")) library = load("HALSTREAM_EXTENSION", "../_halstream.abi3.so");
    if (library == NULL) library = load("HALSTREAM_CUDA_RUNTIME", "libhalstream_cuda.so");
    if (library == NULL) {
        fprintf(stderr, "halstream: libcuda.so.1 finds no runtime: %s\n", dlerror());
        return;
    }
    hs_cuda_entry *(*open)(const char *const *, void *const *, int32_t) = dlsym(library, "halstream_cuda");
    if (open != NULL) entry = open(names, addresses, COUNT);
    if (entry == NULL) fprintf(stderr, "halstream: libcuda.so.1 and the runtime that it finds are of different versions\n");
}
