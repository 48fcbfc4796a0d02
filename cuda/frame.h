/* The frame of a driver call: Python's lock released, the device's context current. */
#ifndef HALSTREAM_CUDA_FRAME_H
#define HALSTREAM_CUDA_FRAME_H

#include "calls.h"
#include "gil.h"

typedef struct {
    void *lock;
    CUcontext before;
    int changed;
    int exchanged; /* whether mode is the thread's capture mode from before */
    int mode;
} hs_frame;

#define HS_STATUS(name, code) ((hs_status)(uint32_t)(code) | (hs_status)HS_##name << 32)

/* Begins a call in a context; 0 where none is needed. */
static inline hs_status hs_enter(hs_frame *f, CUcontext ctx)
{
    f->lock = hs_unlock();
    f->changed = f->exchanged = 0;
    if (ctx == 0) return 0;
    CUresult code = HS_CALL(cuCtxGetCurrent, &f->before);
    if (code != 0) return HS_STATUS(cuCtxGetCurrent, code);
    if (f->before == ctx) return 0;
    code = HS_CALL(cuCtxSetCurrent, ctx);
    if (code != 0) return HS_STATUS(cuCtxSetCurrent, code);
    f->changed = 1;
    return 0;
}

/* Begins a call that the driver refuses while another thread of the process captures a
 * stream in global mode, and for which it makes that capture invalid. None of these calls
 * concerns work that is captured, so the thread may make them. */
static inline hs_status hs_enter_relaxed(hs_frame *f, CUcontext ctx)
{
    hs_status status = hs_enter(f, ctx);
    f->mode = HS_CAPTURE_RELAXED;
    f->exchanged = status == 0 && HS_CALL(cuThreadExchangeStreamCaptureMode, &f->mode) == 0;
    return status;
}

/* Ends it: restores the context that was current, and takes Python's lock again. */
static inline hs_status hs_leave(hs_frame *f, hs_status status)
{
    if (f->exchanged) HS_CALL(cuThreadExchangeStreamCaptureMode, &f->mode);
    if (f->changed) {
        /* The result of the call counts, unless this failure means a lost device. */
        CUresult code = HS_CALL(cuCtxSetCurrent, f->before);
        if (status == 0 && hs_lasting(code)) status = HS_STATUS(cuCtxSetCurrent, code);
    }
    hs_relock(f->lock);
    return status;
}

/* Calls one function of the driver in a frame, and returns its status. HS_RELAXED does so
 * for calls that captures of other threads forbid. */
#define HS_ONE(ctx, name, ...) HS_FRAMED(hs_enter, ctx, name, __VA_ARGS__)
#define HS_RELAXED(ctx, name, ...) HS_FRAMED(hs_enter_relaxed, ctx, name, __VA_ARGS__)
#define HS_FRAMED(enter, ctx, name, ...) \
    do { \
        hs_frame frame; \
        hs_status status = enter(&frame, ctx); \
        if (status == 0) { \
            CUresult code = HS_CALL(name, __VA_ARGS__); \
            if (code != 0) status = HS_STATUS(name, code); \
        } \
        return hs_leave(&frame, status); \
    } while (0)

/* Within a frame: calls a function of the driver if all before it have succeeded. */
#define HS_STEP(status, name, ...) \
    do { \
        if ((status) == 0) { \
            CUresult code = HS_CALL(name, __VA_ARGS__); \
            if (code != 0) (status) = HS_STATUS(name, code); \
        } \
    } while (0)

#endif /* HALSTREAM_CUDA_FRAME_H */
