/* Initialization, and attributes of devices. */
#include "fakecuda.h"

#include <stdio.h>

static CUresult check_device(CUdevice device) {
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

static const struct { int attribute, value; } attributes[] = {
    {1, MAX_THREADS}, {2, 1024}, {3, 1024}, {4, 64},         /* threads of a block */
    {5, 2147483647}, {6, 65535}, {7, 65535},                 /* blocks of a grid */
    {8, 48 << 10}, {9, 64 << 10}, {10, 32},                  /* shared, constant memory, warp */
    {11, 2147483647}, {12, 65536}, {13, 1500000},            /* pitch, registers, clock in kHz */
    {15, 1}, {16, PROCESSORS}, {17, 0}, {18, 0}, {19, 1},    /* overlap, processors, host memory */
    {20, 0}, {31, 1}, {32, 0}, {34, 0}, {35, 0},             /* compute mode, ECC, place on the bus */
    {36, 1000000}, {37, 256}, {38, 4 << 20}, {39, 2048},     /* memory clock, width, cache, threads */
    {40, 2}, {41, 1}, {50, 0}, {75, 9}, {76, 0}, {78, 1},    /* copy engines, sm_90, priorities */
    {81, 228 << 10}, {82, 65536}, {83, 1}, {86, 0}, {87, 2}, {88, 0}, /* managed memory */
    {89, 0}, {90, 1}, {95, 1}, {97, 99 << 10}, {99, 1},      /* preemption, cooperative launch */
    {100, 0}, {102, 0}, {103, 0}, {106, 32}, {114, 0},
    {119, 0}, {120, 0}, {124, 0}, {125, 0}, {126, 1}, {129, 0}, {133, 0}, {134, 0},
};

API cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    BEGIN(cuDeviceGetAttribute, 0);
    TRY(check_device(device));
    if (value == NULL)
        return end(INVALID_VALUE);
    switch (attribute) {
    case 33:
        *value = state.devices[device].number + 1;
        return end(SUCCESS);
    case 115:
        /* For a driver that is too old for an attribute it is an invalid value. */
        if (state.settings.version < 11020)
            return end(INVALID_VALUE);
        *value = state.settings.pools;
        return end(SUCCESS);
    case 122:
    case 123:
        *value = state.settings.memops != 0;
        return end(SUCCESS);
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].attribute != attribute)
            continue;
        *value = attributes[i].value;
        return end(SUCCESS);
    }
    return end(INVALID_VALUE);
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
