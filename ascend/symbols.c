#include "symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

na_table na_api;

static const struct {
    const char *symbol;
    int must;
    size_t offset;
} rows[] = {
#define X(name, must) {#name, must, offsetof(na_table, name)},
    NA_SYMBOLS(X)
#undef X
};

const char *na_symbol(int number) { return rows[number].symbol; }

static void **place(na_table *table, int number) { return (void **)((char *)table + rows[number].offset); }

int na_has(int number) { return *place(&na_api, number) != NULL; }

static void *open_library(const char *path, char *text, size_t size)
{
    const char *name = path ? path : "libascendcl.so";
    /* Another library of the process may have it loaded already. */
    void *library = path ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == NULL) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) snprintf(text, size, "%s", dlerror());
    return library;
}

static void *current;

int na_load(const char *path, int in_use, char *text, size_t size)
{
    text[0] = 0;
    void *library = open_library(path, text, size);
    if (library == NULL) return NA_NO_LIBRARY;
    if (in_use && library != current) return NA_OTHER;
    na_table table;
    memset(&table, 0, sizeof table);
    for (int i = 0; i < NA_COUNT; i++) {
        void *found = dlsym(library, rows[i].symbol);
        if (found == NULL && rows[i].must) {
            snprintf(text, size, "%s", rows[i].symbol);
            return NA_LACKS;
        }
        *place(&table, i) = found;
    }
    /* A table in use is equal already, and other threads read it. */
    if (!in_use) na_api = table;
    current = library;
    return NA_LOADED;
}
