/* Libraries: programs that belong to no context. Each context gets a module of its own when
 * one of their kernels is first used there. */
#include "kernels.h"

struct library {
    uint64_t handle;
    struct module *kernels; /* of no context; the handles of its functions are kernels */
};

static struct library *library_at(size_t i) {
    return state.libraries.items[i];
}

static void library_free(struct library *library) {
    for (size_t i = 0; i < state.modules.count; i++) {
        struct module *module = state.modules.items[i];
        if (module != NULL && module->library == library)
            module_free(module);
    }
    for (struct function *f = library->kernels->functions; f != NULL; f = f->next) {
        table_drop(&state.kernels, f->handle);
        f->handle = 0;
    }
    table_drop(&state.libraries, library->handle);
    module_free(library->kernels);
    free(library);
}

/* For reset. */
void drop_libraries(void) {
    for (size_t i = 0; i < state.libraries.count; i++)
        if (library_at(i) != NULL)
            library_free(library_at(i));
}

/* Returns the module of a library in a context, which is made at the first call. */
static CUresult module_in(struct library *library, struct context *context, struct module **found) {
    for (size_t i = 0; i < state.modules.count; i++) {
        *found = state.modules.items[i];
        if (*found != NULL && (*found)->library == library && (*found)->context == context)
            return SUCCESS;
    }
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL)
        return OUT_OF_MEMORY;
    module->context = context;
    module->library = library;
    module->handle = table_put(&state.modules, module);
    for (const struct function *f = library->kernels->functions; f != NULL; f = f->next) {
        struct function *copy = malloc(sizeof *copy);
        if (copy == NULL) {
            module_free(module);
            return OUT_OF_MEMORY;
        }
        *copy = *f;
        copy->handle = 0;
        copy->context = context;
        copy->module = module;
        copy->next = module->functions;
        module->functions = copy;
    }
    *found = module;
    return SUCCESS;
}

/* Returns the function that a kernel is in a context. */
static CUresult function_in(const struct function *kernel, struct context *context, struct function **found) {
    struct module *module;
    CUresult code = module_in(kernel->module->library, context, &module);
    if (code != SUCCESS)
        return code;
    struct function *f = module->functions;
    while (strcmp(f->name, kernel->name) != 0)
        f = f->next;
    if (f->handle == 0)
        f->handle = table_put(&state.functions, f);
    *found = f;
    return SUCCESS;
}

/* A launch takes a kernel, too, and means its function in the context of the stream. */
CUresult find_function(uint64_t handle, struct context *context, struct function **function) {
    const struct function *kernel = table_get(&state.kernels, handle);
    if (kernel != NULL)
        return function_in(kernel, context, function);
    *function = table_find(&state.functions, handle);
    return *function != NULL && (*function)->context == context ? SUCCESS : INVALID_HANDLE;
}

API cuLibraryLoadData(uint64_t *handle, const void *image, const int *options, void **values, unsigned int count,
                      const int *library_options, void **library_values, unsigned int library_count) {
    BEGIN(cuLibraryLoadData, 0);
    if (handle == NULL || image == NULL || (count > 0 && (options == NULL || values == NULL)) ||
        (library_count > 0 && library_options == NULL))
        return end(INVALID_VALUE);
    (void)library_values;
    struct library *library = calloc(1, sizeof *library);
    if (library == NULL)
        return end(OUT_OF_MEMORY);
    CUresult code = read_kernels(&library->kernels, image, count, options, values);
    if (code != SUCCESS) {
        free(library);
        return end(code);
    }
    library->kernels->library = library;
    for (struct function *f = library->kernels->functions; f != NULL; f = f->next)
        f->handle = table_put(&state.kernels, f);
    *handle = library->handle = table_put(&state.libraries, library);
    return end(SUCCESS);
}

API cuLibraryUnload(uint64_t handle) {
    BEGIN(cuLibraryUnload, 0);
    struct library *library = table_find(&state.libraries, handle);
    if (library == NULL)
        return end(INVALID_HANDLE);
    library_free(library);
    return end(SUCCESS);
}

API cuLibraryGetKernel(uint64_t *kernel, uint64_t handle, const char *name) {
    BEGIN(cuLibraryGetKernel, 0);
    const struct library *library = table_find(&state.libraries, handle);
    if (library == NULL)
        return end(INVALID_HANDLE);
    if (kernel == NULL || name == NULL || *name == 0)
        return end(INVALID_VALUE);
    for (const struct function *f = library->kernels->functions; f != NULL; f = f->next) {
        if (strcmp(f->name, name) == 0) {
            *kernel = f->handle;
            return end(SUCCESS);
        }
    }
    return end(NOT_FOUND);
}

API cuLibraryGetModule(CUmodule *module, uint64_t handle) {
    BEGIN(cuLibraryGetModule, 0);
    struct context *context;
    struct module *found;
    TRY(current_context(&context));
    struct library *library = table_find(&state.libraries, handle);
    if (library == NULL)
        return end(INVALID_HANDLE);
    if (module == NULL)
        return end(INVALID_VALUE);
    TRY(module_in(library, context, &found));
    *module = found->handle;
    return end(SUCCESS);
}

API cuLibraryGetKernelCount(unsigned int *count, uint64_t handle) {
    BEGIN(cuLibraryGetKernelCount, 0);
    const struct library *library = table_find(&state.libraries, handle);
    if (library == NULL)
        return end(INVALID_HANDLE);
    if (count == NULL)
        return end(INVALID_VALUE);
    *count = 0;
    for (const struct function *f = library->kernels->functions; f != NULL; f = f->next)
        ++*count;
    return end(SUCCESS);
}

API cuLibraryEnumerateKernels(uint64_t *kernels, unsigned int count, uint64_t handle) {
    BEGIN(cuLibraryEnumerateKernels, 0);
    const struct library *library = table_find(&state.libraries, handle);
    if (library == NULL)
        return end(INVALID_HANDLE);
    if (kernels == NULL)
        return end(INVALID_VALUE);
    for (const struct function *f = library->kernels->functions; f != NULL && count > 0; f = f->next, count--)
        *kernels++ = f->handle;
    return end(SUCCESS);
}

API cuKernelGetFunction(CUfunction *function, uint64_t handle) {
    BEGIN(cuKernelGetFunction, 0);
    struct context *context;
    struct function *found;
    TRY(current_context(&context));
    const struct function *kernel = table_find(&state.kernels, handle);
    if (kernel == NULL)
        return end(INVALID_HANDLE);
    if (function == NULL)
        return end(INVALID_VALUE);
    TRY(function_in(kernel, context, &found));
    *function = found->handle;
    return end(SUCCESS);
}

API cuKernelGetLibrary(uint64_t *library, uint64_t handle) {
    BEGIN(cuKernelGetLibrary, 0);
    const struct function *kernel = table_find(&state.kernels, handle);
    if (kernel == NULL)
        return end(INVALID_HANDLE);
    if (library == NULL)
        return end(INVALID_VALUE);
    *library = kernel->module->library->handle;
    return end(SUCCESS);
}

API cuKernelGetName(const char **name, uint64_t handle) {
    BEGIN(cuKernelGetName, 0);
    const struct function *kernel = table_find(&state.kernels, handle);
    if (kernel == NULL)
        return end(INVALID_HANDLE);
    if (name == NULL)
        return end(INVALID_VALUE);
    *name = kernel->name;
    return end(SUCCESS);
}

API cuKernelGetAttribute(int *value, int attribute, uint64_t handle, CUdevice device) {
    BEGIN(cuKernelGetAttribute, 0);
    if (device < 0 || device >= state.device_count)
        return end(INVALID_DEVICE);
    return end(function_attribute(table_find(&state.kernels, handle), attribute, value));
}

/* Attributes and caches that can be set; they have no effect here. */
API cuKernelSetAttribute(int attribute, int value, uint64_t handle, CUdevice device) {
    BEGIN(cuKernelSetAttribute, 0);
    if (device < 0 || device >= state.device_count)
        return end(INVALID_DEVICE);
    return end(set_attribute(table_find(&state.kernels, handle), attribute, value));
}

API cuKernelSetCacheConfig(uint64_t handle, int config, CUdevice device) {
    BEGIN(cuKernelSetCacheConfig, 0);
    if (device < 0 || device >= state.device_count)
        return end(INVALID_DEVICE);
    if (table_find(&state.kernels, handle) == NULL)
        return end(INVALID_HANDLE);
    return end(config < 0 || config > 3 ? INVALID_VALUE : SUCCESS);
}

/* No image has variables here. */
API cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, uint64_t handle, const char *name) {
    BEGIN(cuLibraryGetGlobal, 0);
    struct context *context;
    TRY(current_context(&context));
    if (table_find(&state.libraries, handle) == NULL)
        return end(INVALID_HANDLE);
    return end((address == NULL && size == NULL) || name == NULL ? INVALID_VALUE : NOT_FOUND);
}

/* ---- Parameters ---- */

static CUresult parameter(const struct function *function, size_t index, size_t *offset, size_t *size) {
    if (function == NULL)
        return INVALID_HANDLE;
    if (offset == NULL)
        return INVALID_VALUE;
    /* A binary does not declare its parameters in a form that is read here. */
    if (function->parameter_count < 0)
        return NOT_SUPPORTED;
    if (index >= (size_t)function->parameter_count)
        return INVALID_VALUE;
    size_t at = 0;
    for (size_t i = 0;; i++) {
        size_t width = function->sizes[i], step = width < 8 ? width : 8;
        at = (at + step - 1) / step * step;
        if (i == index)
            break;
        at += width;
    }
    *offset = at;
    if (size != NULL)
        *size = function->sizes[index];
    return SUCCESS;
}

API cuKernelGetParamInfo(uint64_t handle, size_t index, size_t *offset, size_t *size) {
    BEGIN(cuKernelGetParamInfo, 0);
    return end(parameter(table_find(&state.kernels, handle), index, offset, size));
}

API cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    BEGIN(cuFuncGetParamInfo, 0);
    return end(parameter(table_find(&state.functions, handle), index, offset, size));
}
