/* Modules and libraries: images with kernels, and launches. The kernels are functions in C that programs launch by their
 * names in PTX; they run on the thread of the stream. */
#include "module.h"
#include "contention.h"
#include "graph.h"
#include "memory.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#define MAX_THREADS 1024

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

/* A variable of a module. */
struct variable {
    struct variable *next;
    char name[256];
    uint64_t size, address, block; /* block: the id of its memory */
};

struct module {
    CUmodule handle;
    struct context *context;
    struct library *library; /* that it was made for */
    struct function *functions;
    struct variable *variables;
};

static struct table modules = {.kind = MODULES, .name = "module"}, functions = {.kind = FUNCTIONS, .name = "function"};
static struct table libraries = {.kind = LIBRARIES, .name = "library"}, library_kernels = {.kind = KERNELS, .name = "kernel"};
struct last_launch last_launch;

/* ---- The kernels ---- */

/* Returns the bytes of an array for a kernel of the context; NULL is a fault. */
static void *array(struct context *context, uint64_t address, uint64_t count, uint64_t width) {
    if (address % width != 0)
        return NULL;
    pthread_mutex_lock(&state.lock);
    void *bytes = reach(context, address, count * width);
    pthread_mutex_unlock(&state.lock);
    return bytes;
}

static float float_of(uint64_t argument) {
    uint32_t bits = (uint32_t)argument;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Lasts for a number of nanoseconds, or until the context is poisoned. */
static CUresult run_delay(struct context *context, const uint64_t *arguments) {
    uint64_t start = now();
    while (now() - start < arguments[0] && atomic_load(&context->error) == SUCCESS) {
        uint64_t left = arguments[0] - (now() - start);
        if (left > 1000000)
            left = 1000000;
        if (left > 50000)
            nanosleep(&(struct timespec){0, (long)left - 50000}, NULL);
    }
    return SUCCESS;
}

/* x[i] *= a */
static CUresult run_scale(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[2];
    float *x = array(context, arguments[0], n, 4), a = float_of(arguments[1]);
    if (n > 0 && x == NULL)
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        x[i] *= a;
    return SUCCESS;
}

/* out[i] = a[i] + b[i] */
static CUresult run_add(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[3];
    float *out = array(context, arguments[0], n, 4);
    const float *a = array(context, arguments[1], n, 4), *b = array(context, arguments[2], n, 4);
    if (n > 0 && (out == NULL || a == NULL || b == NULL))
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
    return SUCCESS;
}

/* x[i] = v */
static CUresult run_fill(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[2];
    uint32_t *x = array(context, arguments[0], n, 4);
    if (n > 0 && x == NULL)
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        x[i] = (uint32_t)arguments[1];
    return SUCCESS;
}

/* y[i] += a * x[i] */
static CUresult run_saxpy(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[3];
    float a = float_of(arguments[0]), *y = array(context, arguments[2], n, 4);
    const float *x = array(context, arguments[1], n, 4);
    if (n > 0 && (x == NULL || y == NULL))
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        y[i] += a * x[i];
    return SUCCESS;
}

/* Fails like a defective kernel, with the code of its argument. */
static CUresult run_fault(struct context *context, const uint64_t *arguments) {
    (void)context;
    return (CUresult)(uint32_t)arguments[0];
}

static CUresult run_nothing(struct context *context, const uint64_t *arguments) {
    (void)context;
    (void)arguments;
    return SUCCESS;
}

/* Sets the condition of nodes of graphs, as cudaGraphSetConditional does. */
static CUresult run_set_condition(struct context *context, const uint64_t *arguments) {
    (void)context;
    return condition_set(arguments[0], (uint32_t)arguments[1]);
}

/* The same with the value of a word in memory. */
static CUresult run_read_condition(struct context *context, const uint64_t *arguments) {
    const uint32_t *word = array(context, arguments[1], 1, 4);
    return word == NULL ? ILLEGAL_ADDRESS : condition_set(arguments[0], *word);
}

static const struct kernel kernels[] = {
    {"halstream_delay", "8", run_delay},
    {"scale_f32", "844", run_scale},
    {"add_f32", "8884", run_add},
    {"fill_u32", "844", run_fill},
    {"saxpy", "4884", run_saxpy},
    {"fault", "4", run_fault},
    {"nothing", "", run_nothing},
    {"set_condition", "84", run_set_condition},
    {"halstream_condition", "88", run_read_condition},
};

static const struct kernel *find_kernel(const char *name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}

/* Called by the thread of a stream. */
static CUresult run_kernel(struct stream *stream, struct operation *operation) {
    return operation->launch.kernel->run(stream->context, operation->launch.arguments);
}

static const struct kind kernel_kind = {.node = 0, .leaves_early = true, .run = run_kernel};

/* ---- Parses PTX and binaries as far as their functions require. ---- */

static bool add_function(struct module *module, const char *name, size_t length) {
    struct function *function = calloc(1, sizeof *function);
    if (function == NULL || length >= sizeof function->name) {
        free(function);
        return false;
    }
    memcpy(function->name, name, length);
    function->module = module;
    function->context = module->context;
    function->kernel = find_kernel(function->name);
    function->dynamic_shared = 48 << 10;
    function->parameter_count = -1;
    function->next = module->functions;
    module->functions = function;
    return true;
}

/* ---- PTX ---- */

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Returns the size of a type such as ".u64", 0 for any other text. */
static unsigned size_of_type(const char *type) {
    if (type[0] != '.' || strchr("usbf", type[1]) == NULL)
        return 0;
    int bits = atoi(type + 2);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? (unsigned)bits / 8 : 0;
}

/* Reads ".param .u64 x, .param .u32 y, .param .align 8 .b8 z[24]" up to ")". */
static void read_parameters(struct function *function, const char *text, const char *stop) {
    function->parameter_count = 0;
    while (text < stop && function->parameter_count < (int)sizeof function->sizes) {
        const char *next = memchr(text, ',', (size_t)(stop - text));
        if (next == NULL)
            next = stop;
        unsigned size = 0;
        for (const char *c = text; c < next; c++) {
            if (*c == '.' && size_of_type(c) > 0)
                size = size_of_type(c);
            if (*c == '[' && size > 0)
                size *= (unsigned)atoi(c + 1);
        }
        if (size > 0)
            function->sizes[function->parameter_count++] = (unsigned char)size;
        text = next + 1;
    }
}

/* Reads " .align 4 .b8 name[16];" behind ".global". What has no such form is no variable. */
static void read_variable(struct module *module, const char *text) {
    const char *stop = text + strcspn(text, ";={\n");
    unsigned size = 0;
    for (const char *c = text; c < stop; c++)
        if (*c == '.' && size_of_type(c) > 0)
            size = size_of_type(c);
    const char *end = memchr(text, '[', (size_t)(stop - text));
    if (end == NULL)
        end = stop;
    while (end > text && !is_name(end[-1]))
        end--;
    const char *name = end;
    while (name > text && is_name(name[-1]))
        name--;
    struct variable *variable = calloc(1, sizeof *variable);
    if (variable == NULL || size == 0 || (size_t)(end - name) >= sizeof variable->name) {
        free(variable);
        return;
    }
    memcpy(variable->name, name, (size_t)(end - name));
    variable->size = size * (*end == '[' ? (unsigned)atoi(end + 1) : 1u);
    variable->next = module->variables;
    module->variables = variable;
}

static CUresult complain(const char *text, const char *at, const char *what, char *words, size_t length) {
    int line = 1;
    for (const char *c = text; c < at; c++)
        line += *c == '\n';
    snprintf(words, length, "ptxas input, line %d; error : %s\n", line, what);
    return INVALID_PTX;
}

/* Ten times the version of the newest PTX that a driver accepts. */
static int newest_ptx(int version) {
    static const struct { int driver, ptx; } newest[] = {
        {13020, 92}, {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12050, 85},
        {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80},
    };
    for (size_t i = 0; i < sizeof newest / sizeof *newest; i++)
        if (version >= newest[i].driver)
            return newest[i].ptx;
    return 70 + version % 1000 / 10;
}

static CUresult read_ptx(struct module *module, const char *text, char *words, size_t length) {
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target sm_");
    const char *mistake = strstr(text, "syntax_error_here"), *last = text + strlen(text);
    int major = 0, minor = 0;
    if (version == NULL) {
        complain(text, text, "Missing .version directive", words, length);
        return INVALID_IMAGE;
    }
    if (sscanf(version, ".version %d.%d", &major, &minor) != 2)
        return complain(text, version, "Parsing error near '.version'", words, length);
    if (10 * major + minor > newest_ptx(state.settings.version)) {
        snprintf(words, length, "ptxas fatal : Unsupported .version %d.%d\n", major, minor);
        return UNSUPPORTED_PTX_VERSION;
    }
    if (target == NULL)
        return complain(text, version, "Missing .target directive", words, length);
    if (mistake != NULL)
        return complain(text, mistake, "Parsing error near 'syntax_error_here': syntax error", words, length);
    if (strchr(text, '}') == NULL)
        return complain(text, last, "Parsing error near end of file: missing '}'", words, length);
    if (atoi(target + 11) > 90)
        return complain(text, target, "Unsupported .target", words, length);
    for (const char *entry = text; (entry = strstr(entry, ".entry")) != NULL;) {
        const char *name = entry + 6 + strspn(entry + 6, " \t\r\n"), *stop = name;
        while (is_name(*stop))
            stop++;
        if (stop == name || !add_function(module, name, (size_t)(stop - name)))
            return complain(text, entry, "Parsing error near '.entry'", words, length);
        const char *list = stop + strspn(stop, " \t\r\n"), *closing;
        if (*list == '(' && (closing = strchr(list, ')')) != NULL)
            read_parameters(module->functions, list + 1, closing);
        entry = stop;
    }
    for (const char *at = text; (at = strstr(at, ".global ")) != NULL;)
        read_variable(module, at += strlen(".global"));
    return SUCCESS;
}

/* ---- Binaries ---- */

static bool contains(const char *bytes, size_t size, const char *what) {
    return memmem(bytes, size, what, strlen(what)) != NULL;
}

/* The size by the header, with the text that may follow in an image made for tests. */
static size_t size_of_binary(const char *bytes) {
    uint64_t sections;
    uint16_t section_size, section_count;
    if (bytes[4] != 2)
        return strlen(bytes);
    memcpy(&sections, bytes + 40, sizeof sections);
    memcpy(&section_size, bytes + 58, sizeof section_size);
    memcpy(&section_count, bytes + 60, sizeof section_count);
    if (sections > 1 << 30)
        return 64;
    size_t size = sections + (size_t)section_size * section_count;
    return size > 64 ? size : 64 + strlen(bytes + 64);
}

/* Whether the device can run it. The architecture is in the flags of the header, in the
 * second byte from version 8 of the format on; an image made for tests has it as text. */
static bool fits_device(const char *bytes, size_t size) {
    uint16_t machine = 0;
    uint32_t flags = 0;
    if (bytes[4] == 2) {
        memcpy(&machine, bytes + 18, sizeof machine);
        memcpy(&flags, bytes + 48, sizeof flags);
    }
    if (machine != 190)
        return contains(bytes, size, "sm_90");
    return (bytes[8] >= 8 ? flags >> 8 & 0xff : flags & 0xff) == 90;
}

/* Sections named ".text.NAME" hold the functions. */
static CUresult read_binary(struct module *module, const char *bytes) {
    static const char section[] = ".text.";
    size_t size = size_of_binary(bytes);
    if (!fits_device(bytes, size))
        return NO_BINARY_FOR_GPU;
    const char *stop = bytes + size;
    for (const char *at = bytes; (at = memmem(at, (size_t)(stop - at), section, 6)) != NULL;) {
        const char *name = at += 6;
        while (at < stop && is_name(*at))
            at++;
        if (at > name && !add_function(module, name, (size_t)(at - name)))
            return INVALID_IMAGE;
    }
    return SUCCESS;
}

static CUresult read_image(struct module *module, const void *image, char *words, size_t length) {
    const unsigned char *bytes = image;
    if (memcmp(bytes, "\x7f" "ELF", 4) == 0)
        return read_binary(module, image);
    if (bytes[0] == 0 || bytes[0] >= 0x80)
        return INVALID_IMAGE;
    return read_ptx(module, image, words, length);
}

/* ---- Modules and functions. ---- */

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

static void module_free(struct module *module) {
    while (module->functions != NULL) {
        struct function *function = module->functions;
        module->functions = function->next;
        if (function->handle != 0)
            table_drop(&functions, function->handle);
        free(function);
    }
    while (module->variables != NULL) {
        struct variable *variable = module->variables;
        struct block *block = variable->block == 0 ? NULL : block_by_id(variable->block);
        module->variables = variable->next;
        if (block != NULL)
            release(block);
        free(variable);
    }
    if (module->handle != 0)
        table_drop(&modules, module->handle);
    free(module);
}

void drop_modules(struct context *context) {
    for (size_t i = 0; i < modules.count; i++) {
        struct module *module = modules.items[i];
        if (module != NULL && module->context == context)
            module_free(module);
    }
}

static CUresult read_kernels(struct module **found, const void *image, unsigned count, const int *options, void **values) {
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
    for (struct variable *v = module->variables; v != NULL; v = v->next) {
        struct block *block;
        code = allocate(context, v->size, NULL, &block);
        if (code != SUCCESS) {
            module_free(module);
            return code;
        }
        v->address = block->address;
        v->block = block->id;
        memset(reach(context, v->address, v->size), 0, v->size);
    }
    *handle = module->handle = table_put(&modules, module);
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
    struct module *module = table_find(&modules, handle);
    if (module == NULL)
        return end(INVALID_HANDLE);
    module_free(module);
    return end(SUCCESS);
}

API cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name) {
    BEGIN(cuModuleGetFunction, 0);
    struct context *context;
    TRY(current_context(&context));
    const struct module *module = table_find(&modules, module_handle);
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
            f->handle = table_put(&functions, f);
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

static CUresult function_attribute(const struct function *function, int attribute, int *value) {
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
    return end(function_attribute(table_find(&functions, handle), attribute, value));
}

/* Dynamic shared memory (8) may be set up to a block's most, the carveout (9) in percent. */
static CUresult set_attribute(struct function *function, int attribute, int value) {
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
    return end(set_attribute(table_find(&functions, handle), attribute, value));
}

API cuFuncGetName(const char **name, CUfunction handle) {
    BEGIN(cuFuncGetName, 0);
    const struct function *function = table_find(&functions, handle);
    if (function == NULL)
        return end(INVALID_HANDLE);
    if (name == NULL)
        return end(INVALID_VALUE);
    *name = function->name;
    return end(SUCCESS);
}

API cuFuncGetModule(CUmodule *module, CUfunction handle) {
    BEGIN(cuFuncGetModule, 0);
    const struct function *function = table_find(&functions, handle);
    if (function == NULL)
        return end(INVALID_HANDLE);
    if (module == NULL)
        return end(INVALID_VALUE);
    *module = function->module->handle;
    return end(SUCCESS);
}

/* PTX has variables here, and a binary none. */
API cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name) {
    BEGIN(cuModuleGetGlobal_v2, 0);
    struct context *context;
    TRY(current_context(&context));
    const struct module *module = table_find(&modules, handle);
    if (module == NULL)
        return end(INVALID_HANDLE);
    if ((address == NULL && size == NULL) || name == NULL)
        return end(INVALID_VALUE);
    for (const struct variable *v = module->variables; v != NULL; v = v->next) {
        if (strcmp(v->name, name) != 0)
            continue;
        if (address != NULL)
            *address = v->address;
        if (size != NULL)
            *size = v->size;
        return end(SUCCESS);
    }
    return end(NOT_FOUND);
}

API cuFuncLoad(CUfunction handle) {
    BEGIN(cuFuncLoad, 0);
    struct context *context;
    TRY(current_context(&context));
    struct function *function = table_find(&functions, handle);
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
    if (table_get(&library_kernels, handle) == NULL && (function = table_find(&functions, handle)) == NULL)
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

/* ---- Libraries: programs that belong to no context. Each context gets a module of its own when
 * one of their kernels is first used there. ---- */

struct library {
    uint64_t handle;
    struct module *kernels; /* of no context; the handles of its functions are kernels */
};

static struct library *library_at(size_t i) {
    return libraries.items[i];
}

static void library_free(struct library *library) {
    for (size_t i = 0; i < modules.count; i++) {
        struct module *module = modules.items[i];
        if (module != NULL && module->library == library)
            module_free(module);
    }
    for (struct function *f = library->kernels->functions; f != NULL; f = f->next) {
        table_drop(&library_kernels, f->handle);
        f->handle = 0;
    }
    table_drop(&libraries, library->handle);
    module_free(library->kernels);
    free(library);
}

/* For reset. */
void drop_libraries(void) {
    for (size_t i = 0; i < libraries.count; i++)
        if (library_at(i) != NULL)
            library_free(library_at(i));
}

void modules_reset(void) {
    struct table *const tables[] = {&modules, &functions, &libraries, &library_kernels};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        table_clear(tables[i]);
    last_launch = (struct last_launch){0, 0};
}

size_t live_modules(void) {
    return table_live(&modules);
}

/* Returns the module of a library in a context, which is made at the first call. */
static CUresult module_in(struct library *library, struct context *context, struct module **found) {
    for (size_t i = 0; i < modules.count; i++) {
        *found = modules.items[i];
        if (*found != NULL && (*found)->library == library && (*found)->context == context)
            return SUCCESS;
    }
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL)
        return OUT_OF_MEMORY;
    module->context = context;
    module->library = library;
    module->handle = table_put(&modules, module);
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
        f->handle = table_put(&functions, f);
    *found = f;
    return SUCCESS;
}

/* A launch takes a kernel, too, and means its function in the context of the stream. */
static CUresult find_function(uint64_t handle, struct context *context, struct function **function) {
    const struct function *kernel = table_get(&library_kernels, handle);
    if (kernel != NULL)
        return function_in(kernel, context, function);
    *function = table_find(&functions, handle);
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
        f->handle = table_put(&library_kernels, f);
    *handle = library->handle = table_put(&libraries, library);
    return end(SUCCESS);
}

API cuLibraryUnload(uint64_t handle) {
    BEGIN(cuLibraryUnload, 0);
    struct library *library = table_find(&libraries, handle);
    if (library == NULL)
        return end(INVALID_HANDLE);
    library_free(library);
    return end(SUCCESS);
}

API cuLibraryGetKernel(uint64_t *kernel, uint64_t handle, const char *name) {
    BEGIN(cuLibraryGetKernel, 0);
    const struct library *library = table_find(&libraries, handle);
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
    struct library *library = table_find(&libraries, handle);
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
    const struct library *library = table_find(&libraries, handle);
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
    const struct library *library = table_find(&libraries, handle);
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
    const struct function *kernel = table_find(&library_kernels, handle);
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
    const struct function *kernel = table_find(&library_kernels, handle);
    if (kernel == NULL)
        return end(INVALID_HANDLE);
    if (library == NULL)
        return end(INVALID_VALUE);
    *library = kernel->module->library->handle;
    return end(SUCCESS);
}

API cuKernelGetName(const char **name, uint64_t handle) {
    BEGIN(cuKernelGetName, 0);
    const struct function *kernel = table_find(&library_kernels, handle);
    if (kernel == NULL)
        return end(INVALID_HANDLE);
    if (name == NULL)
        return end(INVALID_VALUE);
    *name = kernel->name;
    return end(SUCCESS);
}

API cuKernelGetAttribute(int *value, int attribute, uint64_t handle, CUdevice device) {
    BEGIN(cuKernelGetAttribute, 0);
    if (device < 0 || device >= device_count)
        return end(INVALID_DEVICE);
    return end(function_attribute(table_find(&library_kernels, handle), attribute, value));
}

/* Attributes and caches that can be set; they have no effect here. */
API cuKernelSetAttribute(int attribute, int value, uint64_t handle, CUdevice device) {
    BEGIN(cuKernelSetAttribute, 0);
    if (device < 0 || device >= device_count)
        return end(INVALID_DEVICE);
    return end(set_attribute(table_find(&library_kernels, handle), attribute, value));
}

API cuKernelSetCacheConfig(uint64_t handle, int config, CUdevice device) {
    BEGIN(cuKernelSetCacheConfig, 0);
    if (device < 0 || device >= device_count)
        return end(INVALID_DEVICE);
    if (table_find(&library_kernels, handle) == NULL)
        return end(INVALID_HANDLE);
    return end(config < 0 || config > 3 ? INVALID_VALUE : SUCCESS);
}

/* No image has variables here. */
API cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, uint64_t handle, const char *name) {
    BEGIN(cuLibraryGetGlobal, 0);
    struct context *context;
    TRY(current_context(&context));
    if (table_find(&libraries, handle) == NULL)
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
    return end(parameter(table_find(&library_kernels, handle), index, offset, size));
}

API cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    BEGIN(cuFuncGetParamInfo, 0);
    return end(parameter(table_find(&functions, handle), index, offset, size));
}

/* ---- Launches: invalid parameters fail the call, faults of the kernel occur when it runs. ---- */

#define MOST_CLUSTER 8 /* blocks, as every device with clusters has them */

struct request {
    CUfunction function;
    uint32_t grid[3], block[3], cluster[3], shared;
    CUstream stream;
    void **parameters, **extra;
    bool cooperative, clustered;
};

/* The blocks of a cluster, 0 without clusters. */
static uint32_t cluster_size(const struct request *r) {
    return r->cluster[0] * r->cluster[1] * r->cluster[2];
}

static CUresult check_cluster(const struct request *r) {
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (r->cluster[i] == 0 || r->grid[i] % r->cluster[i] != 0)
            return INVALID_VALUE;
        blocks *= r->cluster[i];
    }
    return blocks > MOST_CLUSTER ? INVALID_CLUSTER_SIZE : SUCCESS;
}

static CUresult check_shape(const struct function *f, const struct request *r) {
    static const uint32_t most_blocks[] = {2147483647, 65535, 65535}, most_threads[] = {1024, 1024, 64};
    uint64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (r->grid[i] == 0 || r->grid[i] > most_blocks[i] || r->block[i] == 0 ||
            r->block[i] > most_threads[i])
            return INVALID_VALUE;
        threads *= r->block[i];
        blocks *= r->grid[i];
    }
    if (threads > MAX_THREADS || r->shared > (uint32_t)f->dynamic_shared)
        return INVALID_VALUE;
    if (r->clustered) {
        CUresult code = check_cluster(r);
        if (code != SUCCESS)
            return code;
    }
    if (r->cooperative && blocks > PROCESSORS * (2048 / threads))
        return COOPERATIVE_LAUNCH_TOO_LARGE;
    return SUCCESS;
}

/* Arguments in one buffer, each at a multiple of its size. */
static CUresult take_packed(const struct function *f, void **extra, struct launch *launch) {
    const char *buffer = NULL;
    size_t size = 0, offset = 0;
    for (; extra[0] != NULL; extra += 2) {
        if (extra[0] == (void *)1)
            buffer = extra[1];
        else if (extra[0] == (void *)2)
            size = *(const size_t *)extra[1];
        else
            return INVALID_VALUE;
    }
    if (buffer == NULL)
        return INVALID_VALUE;
    for (int i = 0; f->kernel->sizes[i]; i++) {
        size_t width = (size_t)(f->kernel->sizes[i] - '0');
        offset = (offset + width - 1) / width * width;
        if (offset + width > size)
            return INVALID_VALUE;
        memcpy(&launch->arguments[i], buffer + offset, width);
        offset += width;
    }
    return SUCCESS;
}

/* Copies the arguments, since callers may reuse their memory at once. */
static CUresult take_arguments(const struct function *f, const struct request *r, struct launch *launch) {
    const char *sizes = f->kernel->sizes;
    int count = (int)strlen(sizes);
    if (f->parameter_count >= 0 && f->parameter_count != count)
        return NOT_SUPPORTED;
    for (int i = 0; i < count && f->parameter_count >= 0; i++)
        if (f->sizes[i] != sizes[i] - '0')
            return NOT_SUPPORTED;
    if (r->parameters != NULL && r->extra != NULL)
        return INVALID_VALUE;
    if (r->extra != NULL)
        return take_packed(f, r->extra, launch);
    if (r->parameters == NULL)
        return count == 0 ? SUCCESS : INVALID_VALUE;
    for (int i = 0; i < count; i++) {
        if (r->parameters[i] == NULL)
            return INVALID_VALUE;
        memcpy(&launch->arguments[i], r->parameters[i], (size_t)(sizes[i] - '0'));
    }
    return SUCCESS;
}

static CUresult launch(const struct request *r) {
    struct stream *stream;
    struct function *function;
    CUresult code = find_stream(r->stream, &stream);
    if (code != SUCCESS || (code = find_function(r->function, stream->context, &function)) != SUCCESS)
        return code;
    if (!function->loaded) {
        function->loaded = true;
        enter_first_launch(function->context);
    }
    /* The lock was let go of while the call waited. */
    if ((code = find_stream(r->stream, &stream)) != SUCCESS || (code = make_room(stream)) != SUCCESS ||
        (code = find_function(r->function, stream->context, &function)) != SUCCESS)
        return code;
    if ((code = check_shape(function, r)) != SUCCESS)
        return code;
    /* No C function implements this entry. */
    if (function->kernel == NULL)
        return NOT_SUPPORTED;
    struct launch what = {.kernel = function->kernel};
    if ((code = take_arguments(function, r, &what)) != SUCCESS)
        return code;
    struct operation *operation = operation_new(&kernel_kind);
    if (operation == NULL)
        return OUT_OF_MEMORY;
    operation->launch = what;
    code = submit(stream, operation, false);
    if (code == SUCCESS) {
        last_launch.shared = r->shared;
        last_launch.cluster = cluster_size(r);
    }
    return code;
}

API cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                   CUstream stream, void **parameters, void **extra) {
    BEGIN(cuLaunchKernel, HINT(stream));
    struct request r = {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0, 0, 0}, shared,
                        stream, parameters, extra, false, false};
    return end(launch(&r));
}

API cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                              unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                              unsigned int block_z, unsigned int shared, CUstream stream, void **parameters) {
    BEGIN(cuLaunchCooperativeKernel, HINT(stream));
    struct request r = {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0, 0, 0}, shared,
                        stream, parameters, NULL, true, false};
    return end(launch(&r));
}

/* The layout that callers use. */
struct attribute {
    int id, padding;
    union {
        int cooperative;
        uint32_t cluster[3];
        char room[64];
    } value;
};

struct configuration {
    uint32_t grid[3], block[3], shared, padding;
    CUstream stream;
    const struct attribute *attributes;
    unsigned count;
};

_Static_assert(sizeof(struct attribute) == 72 && sizeof(struct configuration) == 56,
    "the layouts of a launch");

API cuLaunchKernelEx(const struct configuration *c, CUfunction function, void **parameters, void **extra) {
    BEGIN(cuLaunchKernelEx, c != NULL ? HINT(c->stream) : 0);
    if (c == NULL || (c->count > 0 && c->attributes == NULL))
        return end(INVALID_VALUE);
    struct request r = {.function = function, .shared = c->shared, .stream = c->stream,
                        .parameters = parameters, .extra = extra};
    memcpy(r.grid, c->grid, sizeof r.grid);
    memcpy(r.block, c->block, sizeof r.block);
    for (unsigned i = 0; i < c->count; i++) {
        const struct attribute *a = &c->attributes[i];
        if (a->id == 2 && a->value.cooperative)
            r.cooperative = true;
        if (a->id == 4 && state.settings.version < 11080)
            return end(INVALID_VALUE);
        if (a->id == 4) {
            r.clustered = true;
            memcpy(r.cluster, a->value.cluster, sizeof r.cluster);
        }
    }
    return end(launch(&r));
}

/* CUDA_KERNEL_NODE_PARAMS_v2, as callers lay it out. */
struct node_parameters {
    CUfunction function;
    uint32_t grid[3], block[3], shared;
    void **parameters, **extra;
    uint64_t kernel;
    CUcontext context;
};

_Static_assert(sizeof(struct node_parameters) == 72, "the layout of CUDA_KERNEL_NODE_PARAMS_v2");

API cuGraphAddKernelNode_v2(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                            const struct node_parameters *p) {
    BEGIN(cuGraphAddKernelNode_v2, 0);
    if (p == NULL)
        return end(INVALID_VALUE);
    struct request r = {.function = p->function != 0 ? p->function : p->kernel, .shared = p->shared,
                        .parameters = p->parameters, .extra = p->extra};
    memcpy(r.grid, p->grid, sizeof r.grid);
    memcpy(r.block, p->block, sizeof r.block);
    struct node_maker m;
    TRY(node_begin(&m, node, graph, after, count, p->context));
    r.stream = m.stream->handle;
    return end(node_end(&m, launch(&r)));
}
