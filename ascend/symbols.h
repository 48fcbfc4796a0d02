/* The library's functions, found at run time. Their types are those of this project's own headers. */
#ifndef HALSTREAM_ASCEND_SYMBOLS_H
#define HALSTREAM_ASCEND_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"
#include "acl/error_codes/rt_error_codes.h"

/* X(name, must): must is 1 for functions without which the backend is of no use. The others are absent in
 * older releases. */
#define NA_SYMBOLS(X) \
    X(aclInit, 1) \
    X(aclGetRecentErrMsg, 0) \
    X(aclrtGetVersion, 1) \
    X(aclrtGetSocName, 0) \
    X(aclrtGetDeviceCount, 1) \
    X(aclrtSetDevice, 1) \
    X(aclrtResetDevice, 1) \
    X(aclrtGetCurrentContext, 1) \
    X(aclrtSetCurrentContext, 1) \
    X(aclrtDeviceCanAccessPeer, 1) \
    X(aclrtDeviceEnablePeerAccess, 1) \
    X(aclrtDeviceGetUuid, 0) \
    X(aclrtGetDeviceInfo, 0) \
    X(aclrtCreateStreamWithConfig, 1) \
    X(aclrtDestroyStream, 1) \
    X(aclrtStreamQuery, 1) \
    X(aclrtStreamWaitEvent, 1) \
    X(aclrtCreateEventExWithFlag, 1) \
    X(aclrtCreateEventWithFlag, 1) \
    X(aclrtDestroyEvent, 1) \
    X(aclrtRecordEvent, 1) \
    X(aclrtResetEvent, 1) \
    X(aclrtQueryEventStatus, 1) \
    X(aclrtEventElapsedTime, 1) \
    X(aclrtEventGetTimestamp, 0) \
    X(aclrtMalloc, 1) \
    X(aclrtFree, 1) \
    X(aclrtMallocHost, 1) \
    X(aclrtFreeHost, 1) \
    X(aclrtHostRegisterV2, 0) \
    X(aclrtHostUnregister, 0) \
    X(aclrtGetMemInfo, 1) \
    X(aclrtMemcpyAsync, 1) \
    X(aclrtMemcpy2dAsync, 1) \
    X(aclrtMemsetAsync, 1) \
    X(aclrtValueWrite, 0) \
    X(aclrtValueWait, 0) \
    X(aclrtSubscribeReport, 1) \
    X(aclrtUnSubscribeReport, 1) \
    X(aclrtLaunchCallback, 1) \
    X(aclrtProcessReport, 1)

enum {
#define X(name, must) NA_##name,
    NA_SYMBOLS(X)
#undef X
    NA_COUNT
};

typedef struct {
#define X(name, must) __typeof__(name) *name;
    NA_SYMBOLS(X)
#undef X
} na_table;
extern na_table na_api;

const char *na_symbol(int number);
int na_has(int number);

/* Fills the table from the library at path, NULL for the system's; in_use says that the table must stay as it
 * is. text gets details: the linker's words, or the function that is missing. */
enum { NA_LOADED, NA_NO_LIBRARY, NA_OTHER, NA_LACKS };
int na_load(const char *path, int in_use, char *text, size_t size);

/* code is the library's, 0 for success; function is the number of the one that returned it, and text the
 * library's own words about it, with malloc; NULL if it has none. */
typedef struct {
    int32_t code, function;
    char *text;
} na_status;

#endif
