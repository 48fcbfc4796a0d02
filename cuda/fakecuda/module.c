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
    size_t room = (size_t)(uintptr_t)*size, length = strlen(text);
    if (length >= room)
        length = room - 1;
    memcpy(buffer, text, length);
    buffer[length] = 0;
    *size = (void *)(uintptr_t)length;
}

static void module_free(struct module *module) {
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

static CUresult load(CUmodule *handle, const void *image, unsigned count, const int *options, void **values) {
    struct context *context;
    char words[512] = "";
    CUresult code = current_context(&context);
    if (code != SUCCESS)
        return code;
    if (handle == NULL || image == NULL || (count > 0 && (options == NULL || values == NULL)))
        return INVALID_VALUE;
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL)
        return OUT_OF_MEMORY;
    module->context = context;
    code = read_image(module, image, words, sizeof words);
    write_log(count, options, values, ERROR_LOG, words);
    write_log(count, options, values, INFO_LOG, code == SUCCESS ? "0 bytes gmem\n" : "");
    if (code != SUCCESS) {
        module_free(module);
        return code;
    }
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
    struct module *module = table_get(&state.modules, handle);
    if (module == NULL)
        return end(INVALID_HANDLE);
    module_free(module);
    return end(SUCCESS);
}

API cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name) {
    BEGIN(cuModuleGetFunction, 0);
    struct context *context;
    TRY(current_context(&context));
    const struct module *module = table_get(&state.modules, module_handle);
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

API cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
    BEGIN(cuFuncGetAttribute, 0);
    static const int values[] = {MAX_THREADS, 0, 0, 0, 16, 60, 90, 0, 48 << 10, -1};
    struct context *context;
    TRY(current_context(&context));
    if (table_get(&state.functions, handle) == NULL)
        return end(INVALID_HANDLE);
    if (value == NULL || attribute < 0 || attribute >= (int)(sizeof values / sizeof *values))
        return end(INVALID_VALUE);
    *value = values[attribute];
    return end(SUCCESS);
}

API cuFuncLoad(CUfunction handle) {
    BEGIN(cuFuncLoad, 0);
    struct context *context;
    TRY(current_context(&context));
    struct function *function = table_get(&state.functions, handle);
    if (function == NULL)
        return end(INVALID_HANDLE);
    function->loaded = true;
    return end(SUCCESS);
}
