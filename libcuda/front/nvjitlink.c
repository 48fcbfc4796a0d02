/* In front of nvJitLink: what is linked stays PTX. The driver's own linker puts texts together; LTO-IR goes to the real
 * library, which is asked for PTX. Source: nvJitLink's documentation. */
#include "front.h"

static const char variable[] = "HALSTREAM_NVJITLINK";
enum { INVALID_INPUT = 4, INTERNAL = 6 };     /* NVJITLINK_ERROR_... */
enum { OF_PTX = 2, OF_LTOIR = 3, OF_LIBRARY = 6 }; /* NVJITLINK_INPUT_... */
enum { CU_OF_CUBIN = 0, CU_OF_PTX = 1 };      /* CU_JIT_INPUT_... */
enum { LOG = 1 << 14 };
enum { LOG_BUFFER = 5, LOG_BUFFER_SIZE = 6, OPTIONS = 2 };

typedef struct linker {
    void *real;   /* the real library's, for LTO-IR; made when there is some */
    void *driver; /* the driver's */
    char **options;
    uint32_t count;
    int32_t numbers[OPTIONS]; /* of the driver's options, which has what goes wrong there */
    void *values[OPTIONS];
    char log[LOG];
    const char *text;
    size_t size;
} linker;

static void *driver(const char *name)
{
    static void *library;
    if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}
#define DRIVER(result, name, ...) ((result(*)(__VA_ARGS__))driver(name))
#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))real(variable, name))

FORWARD(variable, nvJitLinkVersion, INTERNAL)

EXPORTED int nvJitLinkCreate(linker **made, uint32_t count, const char **options)
{
    linker *l = calloc(1, sizeof *l);
    if (l == NULL || (l->options = calloc(count + 2u, sizeof *l->options)) == NULL) return INTERNAL;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(options[i], "-lto") != 0 && strcmp(options[i], "-ptx") != 0) l->options[l->count++] = strdup(options[i]);
    l->options[l->count++] = strdup("-lto");
    l->options[l->count++] = strdup("-ptx");
    l->numbers[0] = LOG_BUFFER;
    l->numbers[1] = LOG_BUFFER_SIZE;
    l->values[0] = l->log;
    l->values[1] = (void *)(uintptr_t)LOG;
    *made = l;
    return DRIVER(int, "cuLinkCreate_v2", unsigned, int32_t *, void **, void **)(OPTIONS, l->numbers, l->values, &l->driver)
               ? INTERNAL : 0;
}

EXPORTED int nvJitLinkDestroy(linker **made)
{
    linker *l = *made;
    if (l == NULL) return 0;
    if (l->real != NULL) REAL(int, "nvJitLinkDestroy", void **)(&l->real);
    DRIVER(int, "cuLinkDestroy", void *)(l->driver);
    for (uint32_t i = 0; i < l->count; i++) free(l->options[i]);
    free(l->options);
    free(l);
    *made = NULL;
    return 0;
}

static int add_text(linker *l, int kind, const void *data, size_t size, const char *name)
{
    return DRIVER(int, "cuLinkAddData_v2", void *, int, const void *, size_t, const char *, unsigned, void *, void *)(
               l->driver, kind, data, size, name, 0, NULL, NULL) ? INVALID_INPUT : 0;
}

EXPORTED int nvJitLinkAddData(linker *l, int kind, const void *data, size_t size, const char *name)
{
    if (kind == OF_LIBRARY) return 0; /* that of the device's runtime: what it has, the executor has */
    if (kind == OF_PTX) return add_text(l, CU_OF_PTX, data, size, name);
    if (kind != OF_LTOIR) return add_text(l, CU_OF_CUBIN, data, size, name);
    if (l->real == NULL) {
        int code = REAL(int, "nvJitLinkCreate", void **, uint32_t, char **)(&l->real, l->count, l->options);
        if (code) return code;
    }
    return REAL(int, "nvJitLinkAddData", void *, int, const void *, size_t, const char *)(l->real, kind, data, size, name);
}

EXPORTED int nvJitLinkAddFile(linker *l, int kind, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) return INVALID_INPUT;
    long size = ftell(file);
    char *data = size < 0 ? NULL : malloc((size_t)size + 1);
    rewind(file);
    int code = data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size
                   ? INVALID_INPUT : nvJitLinkAddData(l, kind, data, (size_t)size, path);
    fclose(file);
    free(data);
    return code;
}

EXPORTED int nvJitLinkComplete(linker *l)
{
    if (l->real != NULL) {
        int code = REAL(int, "nvJitLinkComplete", void *)(l->real);
        size_t size = 0;
        if (!code) code = REAL(int, "nvJitLinkGetLinkedPtxSize", void *, size_t *)(l->real, &size);
        char *text = code ? NULL : calloc(1, size + 1);
        if (text != NULL) code = REAL(int, "nvJitLinkGetLinkedPtx", void *, char *)(l->real, text);
        if (text != NULL && !code) code = add_text(l, CU_OF_PTX, text, size, "lto");
        free(text);
        if (code) return code;
    }
    void *text;
    int code = DRIVER(int, "cuLinkComplete", void *, void **, size_t *)(l->driver, &text, &l->size);
    l->text = text;
    return code ? INVALID_INPUT : 0;
}

static int copy(const linker *l, void *into)
{
    if (l->text == NULL) return INTERNAL;
    memcpy(into, l->text, l->size);
    return 0;
}

EXPORTED int nvJitLinkGetLinkedCubinSize(linker *l, size_t *size) { return *size = l->size, l->text ? 0 : INTERNAL; }
EXPORTED int nvJitLinkGetLinkedCubin(linker *l, void *into) { return copy(l, into); }
EXPORTED int nvJitLinkGetLinkedPtxSize(linker *l, size_t *size) { return *size = l->size, l->text ? 0 : INTERNAL; }
EXPORTED int nvJitLinkGetLinkedPtx(linker *l, char *into) { return copy(l, into); }

/* What goes wrong is told by the real library where it was asked, and else by the driver. */
static int log_size(linker *l, const char *name, const char *own, size_t *size)
{
    if (l->real != NULL) return REAL(int, name, void *, size_t *)(l->real, size);
    *size = strlen(own) + 1;
    return 0;
}

static int log_text(linker *l, const char *name, const char *own, char *into)
{
    if (l->real != NULL) return REAL(int, name, void *, char *)(l->real, into);
    strcpy(into, own);
    return 0;
}

EXPORTED int nvJitLinkGetErrorLogSize(linker *l, size_t *n) { return log_size(l, "nvJitLinkGetErrorLogSize", l->log, n); }
EXPORTED int nvJitLinkGetErrorLog(linker *l, char *text) { return log_text(l, "nvJitLinkGetErrorLog", l->log, text); }
EXPORTED int nvJitLinkGetInfoLogSize(linker *l, size_t *n) { return log_size(l, "nvJitLinkGetInfoLogSize", "", n); }
EXPORTED int nvJitLinkGetInfoLog(linker *l, char *text) { return log_text(l, "nvJitLinkGetInfoLog", "", text); }

/* The whole as LTO-IR is the real library's. */
EXPORTED int nvJitLinkGetLinkedLTOIRSize(linker *l, size_t *size)
{
    return l->real ? REAL(int, "nvJitLinkGetLinkedLTOIRSize", void *, size_t *)(l->real, size) : INTERNAL;
}
EXPORTED int nvJitLinkGetLinkedLTOIR(linker *l, void *into)
{
    return l->real ? REAL(int, "nvJitLinkGetLinkedLTOIR", void *, void *)(l->real, into) : INTERNAL;
}
