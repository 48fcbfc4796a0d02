#include "symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

hs_api_table hs_api;

static const struct {
    const char *symbol, *base;
    int version, must;
    size_t offset;
} rows[] = {
#define X(name, base, version, must, params) {#name, base, version, must, offsetof(hs_api_table, name)},
    HS_SYMBOLS(X)
#undef X
};

const char *hs_symbol(int number) { return rows[number].symbol; }

static void **place(hs_api_table *table, int number) { return (void **)((char *)table + rows[number].offset); }

int hs_has(int number) { return *place(&hs_api, number) != NULL; }

/* The newest form of cuGetProcAddress, of drivers from 12.0. */
typedef CUresult (*resolver)(const char *base, void **found, int version, uint64_t flags, int *status);

/* dlsym comes first, since a symbol's full name fixes its parameters. The driver's
 * own look-up comes second, for shims that export nothing else: it is asked for the
 * version whose parameters are declared here, never for a newer one. */
static void *find(void *library, resolver resolve, int number, int version)
{
    if (rows[number].version > version) return NULL;
    void *found = dlsym(library, rows[number].symbol);
    if (found == NULL && resolve != NULL) {
        int status = 1;
        /* It may return success and report in status that it has found nothing. */
        if (resolve(rows[number].base, &found, rows[number].version, 0, &status) != 0 || status != 0) found = NULL;
    }
    return found;
}

static void *open_library(const char *path, char *text, size_t size)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", "nvcuda.dll"};
    if (path != NULL) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) snprintf(text, size, "%s", dlerror());
        return library;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        /* Another library of the process may have it loaded already. */
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (library == NULL) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) return library;
        if (i == 0) snprintf(text, size, "%s", dlerror());
    }
    return NULL;
}

static void *current;

int hs_load(const char *path, int least, int in_use, int *version, char *text, size_t size)
{
    text[0] = 0;
    void *library = open_library(path, text, size);
    if (library == NULL) return HS_NO_LIBRARY;
    if (dlsym(library, "halstream_driver") != NULL) { /* libcuda/shim, which would come back here */
        snprintf(text, size, "it is halstream's own, which is made of the host device");
        return HS_NOT_DRIVER;
    }
    if (in_use && library != current) return HS_OTHER;
    resolver resolve = (resolver)dlsym(library, "cuGetProcAddress_v2");
    CUresult (*get_version)(int *) = (CUresult (*)(int *))find(library, resolve, HS_cuDriverGetVersion, 1 << 30);
    if (get_version == NULL) {
        snprintf(text, size, "it has no function cuDriverGetVersion");
        return HS_NOT_DRIVER;
    }
    *version = 0;
    CUresult code = get_version(version);
    if (code != 0) {
        snprintf(text, size, "cuDriverGetVersion failed with error (%d)", code);
        return HS_NOT_DRIVER;
    }
    if (*version < least) return HS_TOO_OLD;
    hs_api_table table;
    memset(&table, 0, sizeof table);
    for (int i = 0; i < HS_COUNT; i++) {
        void *found = find(library, resolve, i, *version);
        if (found == NULL && rows[i].must) {
            snprintf(text, size, "%s", rows[i].symbol);
            return HS_LACKS;
        }
        *place(&table, i) = found;
    }
    /* A table in use is equal already, and other threads read it. */
    if (!in_use) hs_api = table;
    current = library;
    return HS_LOADED;
}
