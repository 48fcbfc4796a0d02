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

/* ==== Attributes of devices: all that the newest supported header names, with values of a plausible
 * device. What the look-alike cannot do is refused here as well: an attribute is never a promise. ==== */

/* The last attribute that a version of the driver knows; for an older one it is an invalid value. */
static const struct { int last, version; } known[] = {
    {115, 11020}, {119, 11030}, {124, 11080}, {129, 12000}, {134, 12020},
    {135, 12060}, {143, 12080}, {161, 13050},
};

static const struct { int attribute, value; } attributes[] = {
    {1, MAX_THREADS}, {2, 1024}, {3, 1024}, {4, 64},         /* threads of a block */
    {5, 2147483647}, {6, 65535}, {7, 65535},                 /* blocks of a grid */
    {8, 48 << 10}, {9, 64 << 10}, {10, 32},                  /* shared, constant memory, warp */
    {11, 2147483647}, {12, 65536}, {13, 1500000},            /* pitch, registers, clock in kHz */
    {14, 512}, {23, 65536}, {51, 32}, {30, 512},               /* alignments of textures, surfaces */
    {15, 1}, {16, PROCESSORS}, {17, 0}, {18, 0}, {19, 1},    /* overlap, processors, host memory */
    {20, 0}, {31, 1}, {32, 0}, {34, 0}, {35, 0},             /* compute mode, ECC, place on the bus */
    {36, 1000000}, {37, 256}, {38, 4 << 20}, {39, 2048},     /* memory clock, width, cache, threads */
    {40, 2}, {41, 1}, {50, 0}, {75, 9}, {76, 0}, {78, 1},    /* copy engines, sm_90, priorities */
    {79, 1}, {80, 1}, {81, 228 << 10}, {82, 65536},          /* caches, memory and registers of a processor */
    {83, 1}, {84, 0}, {86, 0}, {87, 2}, {88, 0}, {89, 0},    /* managed memory, boards, atomics */
    {90, 1}, {91, 1}, {94, 0}, {95, 1}, {96, 0},             /* preemption, cooperative launch */
    {97, 227 << 10}, {98, 0}, {99, 1}, {100, 0}, {101, 0},    /* dynamic shared memory, registering */
    {102, 0}, {103, 0}, {104, 0}, {105, 0}, {106, 32},       /* virtual memory, blocks of a processor */
    {107, 0}, {108, 0}, {109, 0}, {110, 0}, {111, 1 << 10},  /* compression, persisting cache */
    {112, 0}, {113, 0}, {114, 0}, {116, 0}, {117, 0}, {118, 0}, {119, 0}, /* sharing of memory */
    {120, 1}, {121, 0}, {124, 0}, {125, 0}, {126, 1},        /* clusters, IPC of events, domains */
    {127, 0}, {128, 0}, {129, 0}, {130, 0}, {131, -1}, {132, 0}, {133, 0}, {134, 0},
    {135, 0}, {136, 0}, {137, 0}, {138, 0}, {139, 0}, {140, 0}, {141, 0}, {142, 0}, {143, 0},
    {144, 0}, {145, 0}, {146, 0}, {147, 0}, {148, 0}, {149, 1}, {150, 0}, {151, 0}, {152, 0},
    {153, 0}, {154, 0}, {155, 0}, {156, 0}, {157, PROCESSORS}, {158, 0}, {159, 0}, {160, 0}, {161, 0},
    /* Sizes of textures and surfaces, of which it has none. */
    {21, 131072}, {22, 131072}, {24, 16384}, {25, 16384}, {26, 16384},
    {27, 32768}, {28, 32768}, {29, 2048}, {42, 32768}, {43, 2048}, {44, 1}, {45, 32768}, {46, 32768},
    {47, 8192}, {48, 8192}, {49, 32768}, {52, 32768}, {53, 32768}, {54, 2046}, {55, 32768},
    {56, 131072}, {57, 65536}, {58, 16384}, {59, 16384}, {60, 16384}, {61, 32768}, {62, 2048},
    {63, 32768}, {64, 32768}, {65, 2048}, {66, 32768}, {67, 32768}, {68, 2046}, {69, 268435456},
    {70, 131072}, {71, 65000}, {72, 2097120}, {73, 32768}, {74, 32768}, {77, 32768},
};

static CUresult attribute_of(int device, int attribute, int *value) {
    if (value == NULL)
        return INVALID_VALUE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (state.settings.version < known[i].version && (i == 0 ? attribute >= 115 : attribute > known[i - 1].last))
            return INVALID_VALUE;
    switch (attribute) {
    case 33:
        *value = state.devices[device].number + 1;
        return SUCCESS;
    case 85: /* no device shares its board with another one */
        *value = state.devices[device].number;
        return SUCCESS;
    case 115:
        *value = state.settings.pools;
        return SUCCESS;
    case 92:
    case 93:
    case 122:
    case 123:
        *value = state.settings.memops != 0;
        return SUCCESS;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].attribute != attribute)
            continue;
        *value = attributes[i].value;
        return SUCCESS;
    }
    return INVALID_VALUE;
}

API cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    BEGIN(cuDeviceGetAttribute, 0);
    TRY(check_device(device));
    return end(attribute_of(device, attribute, value));
}
