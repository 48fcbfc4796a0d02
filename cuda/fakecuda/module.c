/* Modules and functions. */
#include "kernels.h"

#include <stdio.h>

enum { INFO_LOG = 3, INFO_LOG_SIZE = 4, ERROR_LOG = 5, ERROR_LOG_SIZE = 6 };

/* Writes a text to the caller's log buffer, and replaces the buffer's size by the
 * text's. */
static void write_log(unsigned count, const int *options, void **values, int log, const char *text) {
    char *buffer = NULL;
    void **size = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == log)
            buffer = values[i];
        if (options[i] == log + 1)
            size = &values[i];
    }
    if (buffer == NULL || size == NULL || (size_t)(uintptr_t)*size == 0)
        return;
    size_t room = (size_t)(uintptr_t)*size, length = strlen(text), kept = length < room ? length : room - 1;
    memcpy(buffer, text, kept);
    buffer[kept] = 0;
    *size = (void *)(uintptr_t)(length < room ? length : room); /* of a log that is cut: with its end */
}

void module_free(struct module *module) {
    while (module->functions != NULL) {
        struct function *function = module->functions;
        module->functions = function->next;
        if (function->handle != 0)
            table_drop(&state.functions, function->handle);
        free(function);
    }
    if (module->handle != 0)
        table_drop(&state.modules, module->handle);
    free(module);
}

void drop_modules(struct context *context) {
    for (size_t i = 0; i < state.modules.count; i++) {
        struct module *module = state.modules.items[i];
        if (module != NULL && module->context == context)
            module_free(module);
    }
}

CUresult read_kernels(struct module **found, const void *image, unsigned count, const int *options, void **values) {
    char words[512] = "";
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL)
        return OUT_OF_MEMORY;
    CUresult code = read_image(module, image, words, sizeof words);
    write_log(count, options, values, ERROR_LOG, words);
    write_log(count, options, values, INFO_LOG, code == SUCCESS ? "0 bytes gmem\n" : "");
    if (code != SUCCESS) {
        module_free(module);
        return code;
    }
    *found = module;
    return SUCCESS;
}

static CUresult load(CUmodule *handle, const void *image, unsigned count, const int *options, void **values) {
    struct context *context;
    struct module *module;
    CUresult code = current_context(&context);
    if (code != SUCCESS)
        return code;
    if (handle == NULL || image == NULL || (count > 0 && (options == NULL || values == NULL)))
        return INVALID_VALUE;
    code = read_kernels(&module, image, count, options, values);
    if (code != SUCCESS)
        return code;
    module->context = context;
    for (struct function *f = module->functions; f != NULL; f = f->next)
        f->context = context;
    *handle = module->handle = table_put(&state.modules, module);
    return SUCCESS;
}

API cuModuleLoadData(CUmodule *module, const void *image) {
    BEGIN(cuModuleLoadData, 0);
    return end(load(module, image, 0, NULL, NULL));
}

API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, const int *options,
    void **values) {
    BEGIN(cuModuleLoadDataEx, 0);
    return end(load(module, image, count, options, values));
}

API cuModuleUnload(CUmodule handle) {
    BEGIN(cuModuleUnload, 0);
    struct context *context;
    TRY(current_context(&context));
    struct module *module = table_find(&state.modules, handle);
    if (module == NULL)
        return end(INVALID_HANDLE);
    module_free(module);
    return end(SUCCESS);
}

API cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name) {
    BEGIN(cuModuleGetFunction, 0);
    struct context *context;
    TRY(current_context(&context));
    const struct module *module = table_find(&state.modules, module_handle);
    if (module == NULL)
        return end(INVALID_HANDLE);
    if (handle == NULL || name == NULL || *name == 0)
        return end(INVALID_VALUE);
    for (struct function *f = module->functions; f != NULL; f = f->next) {
        if (strcmp(f->name, name) != 0)
            continue;
        const char *loading = getenv("CUDA_MODULE_LOADING");
        f->loaded = f->loaded || (loading != NULL && strcmp(loading, "EAGER") == 0);
        if (f->handle == 0)
            f->handle = table_put(&state.functions, f);
        *handle = f->handle;
        return end(SUCCESS);
    }
    return end(NOT_FOUND);
}

API cuModuleGetLoadingMode(int *mode) {
    BEGIN(cuModuleGetLoadingMode, 0);
    const char *asked = getenv("CUDA_MODULE_LOADING");
    if (mode == NULL)
        return end(INVALID_VALUE);
    *mode = asked != NULL && strcmp(asked, "EAGER") == 0 ? 1 : 2;
    return end(SUCCESS);
}

CUresult function_attribute(const struct function *function, int attribute, int *value) {
    if (function == NULL)
        return INVALID_HANDLE;
    const int values[] = {MAX_THREADS, 0, 0, 0, 16, 60, 90, 0, function->dynamic_shared, -1};
    if (value == NULL || attribute < 0 || attribute >= (int)(sizeof values / sizeof *values))
        return INVALID_VALUE;
    *value = values[attribute];
    return SUCCESS;
}

API cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
    BEGIN(cuFuncGetAttribute, 0);
    struct context *context;
    TRY(current_context(&context));
    return end(function_attribute(table_find(&state.functions, handle), attribute, value));
}

/* Dynamic shared memory (8) may be set up to a block's most, the carveout (9) in percent. */
CUresult set_attribute(struct function *function, int attribute, int value) {
    if (function == NULL)
        return INVALID_HANDLE;
    bool valid = (attribute == 8 && value >= 0 && value <= 227 << 10) ||
                 (attribute == 9 && value >= -1 && value <= 100);
    if (valid && attribute == 8)
        function->dynamic_shared = value;
    return valid ? SUCCESS : INVALID_VALUE;
}

API cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
    BEGIN(cuFuncSetAttribute, 0);
    struct context *context;
    TRY(current_context(&context));
    return end(set_attribute(table_find(&state.functions, handle), attribute, value));
}

API cuFuncGetName(const char **name, CUfunction handle) {
    BEGIN(cuFuncGetName, 0);
    const struct function *function = table_find(&state.functions, handle);
    if (function == NULL)
        return end(INVALID_HANDLE);
    if (name == NULL)
        return end(INVALID_VALUE);
    *name = function->name;
    return end(SUCCESS);
}

API cuFuncGetModule(CUmodule *module, CUfunction handle) {
    BEGIN(cuFuncGetModule, 0);
    const struct function *function = table_find(&state.functions, handle);
    if (function == NULL)
        return end(INVALID_HANDLE);
    if (module == NULL)
        return end(INVALID_VALUE);
    *module = function->module->handle;
    return end(SUCCESS);
}

/* No image has variables here. */
API cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name) {
    BEGIN(cuModuleGetGlobal_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    if (table_find(&state.modules, handle) == NULL)
        return end(INVALID_HANDLE);
    return end((address == NULL && size == NULL) || name == NULL ? INVALID_VALUE : NOT_FOUND);
}

API cuFuncLoad(CUfunction handle) {
    BEGIN(cuFuncLoad, 0);
    struct context *context;
    TRY(current_context(&context));
    struct function *function = table_find(&state.functions, handle);
    if (function == NULL)
        return end(INVALID_HANDLE);
    function->loaded = true;
    return end(SUCCESS);
}

/* ---- Occupancy ---- */

enum { RESIDENT_THREADS = 2048, RESIDENT_BLOCKS = 32, SHARED_BYTES = 228 << 10 }; /* of a processor */

/* How many blocks fit onto a processor. A handle may be a kernel's. */
static CUresult occupancy(int *blocks, uint64_t handle, int threads, size_t shared) {
    struct context *context;
    CUresult code = current_context(&context);
    if (code != SUCCESS)
        return code;
    const struct function *function = NULL;
    if (table_get(&state.kernels, handle) == NULL && (function = table_find(&state.functions, handle)) == NULL)
        return INVALID_HANDLE;
    if (blocks == NULL || threads <= 0)
        return INVALID_VALUE;
    int most = RESIDENT_THREADS / ((threads + 31) / 32 * 32);
    if (most > RESIDENT_BLOCKS)
        most = RESIDENT_BLOCKS;
    if (shared > 0 && (size_t)most > SHARED_BYTES / shared)
        most = (int)(SHARED_BYTES / shared);
    bool too_large = threads > MAX_THREADS || (function != NULL && shared > (size_t)function->dynamic_shared);
    *blocks = too_large ? 0 : most;
    return SUCCESS;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared) {
    BEGIN(cuOccupancyMaxActiveBlocksPerMultiprocessor, 0);
    return end(occupancy(blocks, function, threads, shared));
}

API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                         size_t shared, unsigned int flags) {
    BEGIN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 0);
    return end(flags > 1 ? INVALID_VALUE : occupancy(blocks, function, threads, shared));
}
