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

/* The kernel may have as much dynamic shared memory as the device has beside its static
 * one. It is set here and not at a launch, where another thread could set less. */
static hs_status allow_shared(hs_status status, CUdevice device, hs_kernel *k)
{
    int fixed = 0, most = 0;
    HS_STEP(status, cuFuncGetAttribute, &k->shared, HS_FUNCTION_MAX_DYNAMIC, k->function);
    HS_STEP(status, cuFuncGetAttribute, &fixed, HS_FUNCTION_SHARED, k->function);
    HS_STEP(status, cuDeviceGetAttribute, &most, HS_ATTRIBUTE_MAX_SHARED, device);
    if (status == 0 && most - fixed > k->shared && hs_api.cuFuncSetAttribute != NULL &&
        HS_CALL(cuFuncSetAttribute, k->function, HS_FUNCTION_MAX_DYNAMIC, most - fixed) == 0)
        k->shared = most - fixed;
    return status;
}

/* The sizes of the parameters. The driver refuses each index behind the last one: a single
 * refusal may be a failure, after which the parameters are unknown. */
static void read_parameters(hs_kernel *k)
{
    size_t at, size;
    k->count = -1;
    for (int i = 0; i <= HS_PARAMETERS && hs_api.cuFuncGetParamInfo != NULL; i++) {
        CUresult code = HS_CALL(cuFuncGetParamInfo, k->function, (size_t)i, &at, &size);
        if (code == HS_INVALID_VALUE &&
            HS_CALL(cuFuncGetParamInfo, k->function, (size_t)i, &at, &size) == HS_INVALID_VALUE)
            k->count = i;
        if (code != 0 || i == HS_PARAMETERS) return;
        k->sizes[i] = size < UINT16_MAX ? (uint16_t)size : UINT16_MAX;
    }
}

hs_status hs_function(CUcontext ctx, CUdevice device, CUmodule module, const char *name, hs_kernel *k)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuModuleGetFunction, &k->function, module, name);
    /* Else its first launch loads it, and may wait for the device with a lock held. */
    if (hs_api.cuFuncLoad != NULL) HS_STEP(status, cuFuncLoad, k->function);
    HS_STEP(status, cuFuncGetAttribute, &k->threads, HS_FUNCTION_MAX_THREADS, k->function);
    status = allow_shared(status, device, k);
    if (status == 0) read_parameters(k);
    return hs_leave(&frame, status);
}

hs_status hs_launch_kernel(CUcontext ctx, CUstream stream, const hs_launch *l, const void *args, int cell)
{
    /* The driver copies the values during the call. */
    void *params[l->count + 1];
    for (int i = 0; i < l->count; i++) params[i] = (char *)args + (size_t)i * (size_t)cell;
    if (hs_api.cuLaunchKernelEx != NULL) {
        CUlaunchAttribute attrs[2];
        uint32_t count = 0;
        memset(attrs, 0, sizeof attrs);
        if (l->cooperative) {
            attrs[count].id = HS_LAUNCH_COOPERATIVE;
            attrs[count++].value.cooperative = 1;
        }
        if (l->cluster[0] != 0) {
            attrs[count].id = HS_LAUNCH_CLUSTER;
            attrs[count].value.clusterDim.x = l->cluster[0];
            attrs[count].value.clusterDim.y = l->cluster[1];
            attrs[count++].value.clusterDim.z = l->cluster[2];
        }
        CUlaunchConfig config = {
            .gridX = l->grid[0], .gridY = l->grid[1], .gridZ = l->grid[2],
            .blockX = l->block[0], .blockY = l->block[1], .blockZ = l->block[2],
            .sharedBytes = l->shared, .stream = stream,
            .attrs = count > 0 ? attrs : NULL, .numAttrs = count,
        };
        HS_ONE(ctx, cuLaunchKernelEx, &config, l->function, params, NULL);
    }
    /* A driver without the function knows no clusters. */
    if (l->cluster[0] != 0) return HS_STATUS(cuLaunchKernelEx, HS_NOT_SUPPORTED);
    if (l->cooperative)
        HS_ONE(ctx, cuLaunchCooperativeKernel, l->function, l->grid[0], l->grid[1], l->grid[2],
               l->block[0], l->block[1], l->block[2], l->shared, stream, params);
    HS_ONE(ctx, cuLaunchKernel, l->function, l->grid[0], l->grid[1], l->grid[2],
           l->block[0], l->block[1], l->block[2], l->shared, stream, params, NULL);
}
