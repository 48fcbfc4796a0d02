#include <string.h>
#include <sys/mman.h>

#include "frame.h"

int hs_lasting(int32_t code)
{
    switch (code) {
    case HS_ECC_UNCORRECTABLE: case HS_NVLINK_UNCORRECTABLE: case HS_ILLEGAL_ADDRESS: case HS_LAUNCH_TIMEOUT:
    case HS_ASSERT: case HS_HARDWARE_STACK_ERROR: case HS_ILLEGAL_INSTRUCTION: case HS_MISALIGNED_ADDRESS:
    case HS_INVALID_ADDRESS_SPACE: case HS_INVALID_PC: case HS_LAUNCH_FAILED: case HS_TENSOR_MEMORY_LEAK:
    case HS_MPS_CLIENT_TERMINATED: case HS_EXTERNAL_DEVICE: case HS_CONTAINED:
        return 1;
    }
    return 0;
}

/* Whether any memory is mapped at an address, readable or not. */
int hs_mapped(uint64_t address)
{
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;
    return msync((void *)page, 1, MS_ASYNC) == 0;
}

uintptr_t hs_self(void)
{
    static _Thread_local char self;
    return (uintptr_t)&self;
}

hs_status hs_init(int *count)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, 0);
    HS_STEP(status, cuInit, 0);
    if (status == 0) hs_watch_exit();
    HS_STEP(status, cuDeviceGetCount, count);
    return hs_leave(&frame, status);
}

hs_status hs_device(int ordinal, CUdevice *device, char *name, int size)
{
    hs_frame frame;
    hs_status status = hs_enter(&frame, 0);
    HS_STEP(status, cuDeviceGet, device, ordinal);
    HS_STEP(status, cuDeviceGetName, name, size, *device);
    return hs_leave(&frame, status);
}

hs_status hs_retain(CUdevice device, CUcontext *ctx) { HS_ONE(0, cuDevicePrimaryCtxRetain, ctx, device); }

hs_status hs_release(CUdevice device) { HS_ONE(0, cuDevicePrimaryCtxRelease_v2, device); }

hs_status hs_priorities(CUcontext ctx, int *least, int *greatest)
{
    HS_ONE(ctx, cuCtxGetStreamPriorityRange, least, greatest);
}

hs_status hs_attribute(CUdevice device, int attribute, int *value)
{
    HS_ONE(0, cuDeviceGetAttribute, value, attribute, device);
}

hs_status hs_uuid(CUdevice device, unsigned char *uuid)
{
    /* The newer form names the part of a device that a process was given. */
    if (hs_api.cuDeviceGetUuid_v2 != NULL) HS_ONE(0, cuDeviceGetUuid_v2, uuid, device);
    HS_ONE(0, cuDeviceGetUuid, uuid, device);
}

hs_status hs_bus(CUdevice device, char *id, int size) { HS_ONE(0, cuDeviceGetPCIBusId, id, size, device); }

hs_status hs_total(CUdevice device, uint64_t *bytes)
{
    size_t total = 0;
    hs_frame frame;
    hs_status status = hs_enter(&frame, 0);
    HS_STEP(status, cuDeviceTotalMem_v2, &total, device);
    *bytes = total;
    return hs_leave(&frame, status);
}

hs_status hs_can_access(CUdevice from, CUdevice to, int *can) { HS_ONE(0, cuDeviceCanAccessPeer, can, from, to); }

hs_status hs_enable_peer(CUcontext from, CUcontext to) { HS_ONE(from, cuCtxEnablePeerAccess, to, 0); }

void hs_error_text(int32_t code, const char **name, const char **text)
{
    *name = *text = NULL;
    if (HS_CALL(cuGetErrorName, code, name) != 0) *name = NULL;
    if (HS_CALL(cuGetErrorString, code, text) != 0) *text = NULL;
}
