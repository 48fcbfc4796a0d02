/* Initialization, and what identifies a device. */
#include "fakecuda.h"

#include <stdio.h>

CUresult check_device(CUdevice device) {
    return device < 0 || device >= state.device_count ? INVALID_DEVICE : SUCCESS;
}

API cuInit(unsigned int flags) {
    BEGIN(cuInit, 0);
    if (flags != 0)
        return end(INVALID_VALUE);
    if (state.initialized)
        return end(SUCCESS);
    TRY(open_devices());
    if (state.device_count == 0)
        return end(NO_DEVICE);
    state.initialized = true;
    watch_exit();
    return end(SUCCESS);
}

API cuDriverGetVersion(int *version) {
    BEGIN(cuDriverGetVersion, 0);
    if (version == NULL)
        return end(INVALID_VALUE);
    *version = state.settings.version;
    return end(SUCCESS);
}

API cuDeviceGetCount(int *count) {
    BEGIN(cuDeviceGetCount, 0);
    if (count == NULL)
        return end(INVALID_VALUE);
    *count = state.device_count;
    return end(SUCCESS);
}

API cuDeviceGet(CUdevice *device, int ordinal) {
    BEGIN(cuDeviceGet, 0);
    if (device == NULL)
        return end(INVALID_VALUE);
    TRY(check_device(ordinal));
    *device = ordinal;
    return end(SUCCESS);
}

API cuDeviceGetName(char *name, int length, CUdevice device) {
    BEGIN(cuDeviceGetName, 0);
    TRY(check_device(device));
    if (name == NULL || length <= 0)
        return end(INVALID_VALUE);
    snprintf(name, (size_t)length, "Look-alike %d", state.devices[device].number);
    return end(SUCCESS);
}

static CUresult uuid_of(unsigned char *uuid, CUdevice device) {
    CUresult code = check_device(device);
    if (code == SUCCESS && uuid == NULL)
        code = INVALID_VALUE;
    if (code != SUCCESS)
        return code;
    memcpy(uuid, "look-alike-gpu-", 15);
    uuid[15] = (unsigned char)('0' + state.devices[device].number);
    return SUCCESS;
}

API cuDeviceGetUuid(unsigned char *uuid, CUdevice device) {
    BEGIN(cuDeviceGetUuid, 0);
    return end(uuid_of(uuid, device));
}

API cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device) {
    BEGIN(cuDeviceGetUuid_v2, 0);
    return end(uuid_of(uuid, device));
}

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    BEGIN(cuDeviceTotalMem_v2, 0);
    TRY(check_device(device));
    if (bytes == NULL)
        return end(INVALID_VALUE);
    *bytes = state.settings.memory;
    return end(SUCCESS);
}

API cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    BEGIN(cuDeviceGetPCIBusId, 0);
    TRY(check_device(device));
    if (id == NULL || length < 13)
        return end(INVALID_VALUE);
    snprintf(id, (size_t)length, "0000:%02X:00.0", state.devices[device].number + 1);
    return end(SUCCESS);
}

API cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    BEGIN(cuDeviceCanAccessPeer, 0);
    TRY(check_device(device));
    TRY(check_device(peer));
    if (can == NULL)
        return end(INVALID_VALUE);
    *can = device != peer;
    return end(SUCCESS);
}

/* Tables of functions that are in no header. Clients of the vendor that need one do not run here;
 * others ask, and do without. */
API cuGetExportTable(const void **table, const unsigned char *id) {
    BEGIN(cuGetExportTable, 0);
    if (table == NULL || id == NULL)
        return end(INVALID_VALUE);
    *table = NULL;
    return end(NOT_FOUND);
}

/* There is no profiler, and nothing to turn on. */
API cuProfilerStart(void) {
    BEGIN(cuProfilerStart, 0);
    struct context *context;
    return end(current_context(&context));
}

API cuProfilerStop(void) {
    BEGIN(cuProfilerStop, 0);
    struct context *context;
    return end(current_context(&context));
}
