/* cuGetProcAddress_v2. It declares the functions without their types, so it is the only
 * function in this file. */
#include "fakecuda.h"

#define cuGetProcAddress_v2 itself /* declared below */
#define FUNCTION(name, base, version) extern CUresult name(void);
#include "functions.h"
#undef FUNCTION
#undef cuGetProcAddress_v2

API cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status);

static const struct { const char *base; int version; void *address; } functions[] = {
#define FUNCTION(name, base, version) {base, version, (void *)(uintptr_t)name},
#include "functions.h"
#undef FUNCTION
};

/* The status is 2 for a name whose version is newer than requested, and 1 for one that
 * the driver lacks; the call succeeds in any case. */
API cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status) {
    BEGIN(cuGetProcAddress_v2, 0);
    if (symbol == NULL || found == NULL || flags > 2)
        return end(INVALID_VALUE);
    int best = 0, result = 1;
    *found = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].base, symbol) != 0 || functions[i].version > state.settings.version)
            continue;
        if (functions[i].version > version) {
            result = result == 1 ? 2 : result;
        } else if (functions[i].version > best) {
            best = functions[i].version;
            *found = functions[i].address;
            result = 0;
        }
    }
    if (status != NULL)
        *status = result;
    return end(SUCCESS);
}
