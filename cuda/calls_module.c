#include <string.h>

#include "frame.h"

hs_status hs_module_load(CUcontext ctx, const void *image, CUmodule *module, char *log, uint32_t size)
{
    int options[] = {HS_JIT_ERROR_LOG, HS_JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)size};
    log[0] = 0;
    HS_RELAXED(ctx, cuModuleLoadDataEx, module, image, 2, options, values);
}

hs_status hs_module_unload(CUcontext ctx, CUmodule module) { HS_RELAXED(ctx, cuModuleUnload, module); }

hs_status hs_function(CUcontext ctx, CUmodule module, const char *name, CUfunction *function, int *threads)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuModuleGetFunction, function, module, name);
    /* Else its first launch loads it, and may wait for the device with a lock held. */
    if (hs_api.cuFuncLoad != NULL) HS_STEP(status, cuFuncLoad, *function);
    HS_STEP(status, cuFuncGetAttribute, threads, HS_FUNCTION_MAX_THREADS, *function);
    return hs_leave(&frame, status);
}

hs_status hs_launch_kernel(CUcontext ctx, CUstream stream, const hs_launch *l, const void *args, int cell)
{
    /* The driver copies the values during the call. */
    void *params[l->count + 1];
    for (int i = 0; i < l->count; i++) params[i] = (char *)args + (size_t)i * (size_t)cell;
    if (hs_api.cuLaunchKernelEx != NULL) {
        CUlaunchAttribute cooperative;
        memset(&cooperative, 0, sizeof cooperative);
        cooperative.id = HS_LAUNCH_COOPERATIVE;
        cooperative.value.cooperative = 1;
        CUlaunchConfig config = {
            .gridX = l->grid[0], .gridY = l->grid[1], .gridZ = l->grid[2],
            .blockX = l->block[0], .blockY = l->block[1], .blockZ = l->block[2],
            .sharedBytes = l->shared, .stream = stream,
            .attrs = l->cooperative ? &cooperative : NULL, .numAttrs = l->cooperative != 0,
        };
        HS_ONE(ctx, cuLaunchKernelEx, &config, l->function, params, NULL);
    }
    if (l->cooperative)
        HS_ONE(ctx, cuLaunchCooperativeKernel, l->function, l->grid[0], l->grid[1], l->grid[2],
               l->block[0], l->block[1], l->block[2], l->shared, stream, params);
    HS_ONE(ctx, cuLaunchKernel, l->function, l->grid[0], l->grid[1], l->grid[2],
           l->block[0], l->block[1], l->block[2], l->shared, stream, params, NULL);
}
