/* The frame of a call: Python's lock released, the device's context current. */
#ifndef HALSTREAM_ASCEND_FRAME_H
#define HALSTREAM_ASCEND_FRAME_H

#include <stddef.h>
#include <string.h>

#include "symbols.h"

/* Defined by the extension; absent in Go's own tests, where there is no such lock. A call of the library
 * may wait for room in a stream's queue, and a report thread of the program may need Python's lock. */
extern void *halstream_unlock(void) __attribute__((weak));
extern void halstream_relock(void *state) __attribute__((weak));

static inline void *na_unlock(void) { return halstream_unlock ? halstream_unlock() : NULL; }

static inline void na_relock(void *state)
{
    if (state != NULL) halstream_relock(state);
}

typedef struct {
    void *lock;
    aclrtContext before; /* to be made current again; NULL if there is nothing to do */
} na_frame;

/* The result of a call, with the library's words, which are the calling thread's. */
static inline na_status na_result(int function, aclError code)
{
    na_status status = {code, function, NULL};
    if (code != ACL_SUCCESS && na_api.aclGetRecentErrMsg != NULL) {
        const char *text = na_api.aclGetRecentErrMsg();
        if (text != NULL) status.text = strdup(text);
    }
    return status;
}

/* Begins a call in a context; 0 where none is needed. A thread that had none keeps this one: AscendCL has
 * no call that takes it away. */
static inline na_status na_enter(na_frame *f, uintptr_t ctx)
{
    f->lock = na_unlock();
    f->before = NULL;
    if (ctx == 0) return (na_status){0};
    aclrtContext now = NULL;
    if (na_api.aclrtGetCurrentContext(&now) != ACL_SUCCESS) now = NULL;
    if (now == (aclrtContext)ctx) return (na_status){0};
    aclError code = na_api.aclrtSetCurrentContext((aclrtContext)ctx);
    if (code != ACL_SUCCESS) return na_result(NA_aclrtSetCurrentContext, code);
    f->before = now;
    return (na_status){0};
}

static inline na_status na_leave(na_frame *f, na_status status)
{
    /* The result of the call counts; another library may have destroyed the context meanwhile. */
    if (f->before != NULL) (void)na_api.aclrtSetCurrentContext(f->before);
    na_relock(f->lock);
    return status;
}

/* Calls one function in a frame, and returns its status. */
#define NA_ONE(ctx, name, ...) \
    do { \
        na_frame frame; \
        na_status status = na_enter(&frame, ctx); \
        if (status.code == 0) { \
            aclError code = na_api.name != NULL ? na_api.name(__VA_ARGS__) : ACL_ERROR_RT_FEATURE_NOT_SUPPORT; \
            if (code != ACL_SUCCESS) status = na_result(NA_##name, code); \
        } \
        return na_leave(&frame, status); \
    } while (0)

#endif
