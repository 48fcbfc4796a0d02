/* Kernels: C functions that programs launch by their names in PTX. */
#ifndef FAKECUDA_KERNELS_H
#define FAKECUDA_KERNELS_H

#include "fakecuda.h"

#define MOST_PARAMETERS 8

struct grid {
    uint32_t grid[3], block[3];
};

/* run gets each argument in the low bytes of a word. It returns a sticky code where a
 * device would fault. */
struct kernel {
    const char *name;
    const char *sizes; /* of the parameters: a digit each */
    CUresult (*run)(struct context *context, const uint64_t *arguments);
};

struct function {
    CUfunction handle;
    struct module *module;
    struct context *context; /* NULL for a kernel of a library */
    const struct kernel *kernel; /* NULL: it can be found but not launched */
    struct function *next;
    bool loaded; /* onto the device: at the first launch, unless cuFuncLoad did it before */
    char name[1024];
    int dynamic_shared; /* bytes that a launch may ask for */
    int parameter_count; /* as the image declares them; -1: it does not */
    unsigned char sizes[64];
};

struct library;

struct module {
    CUmodule handle;
    struct context *context;
    struct library *library; /* that it was made for */
    struct function *functions;
};

/* image.c: fills the list of functions. With error 218 it also writes a message. */
CUresult read_image(struct module *module, const void *image, char *words, size_t length);

/* condition.c */
CUresult condition_set(uint64_t handle, uint32_t value);

/* module.c: a module of no context, with its messages in the options' logs. */
CUresult read_kernels(struct module **module, const void *image, unsigned count, const int *options, void **values);
void module_free(struct module *module);
CUresult function_attribute(const struct function *function, int attribute, int *value);
CUresult set_attribute(struct function *function, int attribute, int value);

/* library.c: the function that a launch in a context names, by itself or by its kernel. */
CUresult find_function(uint64_t handle, struct context *context, struct function **function);

#endif
