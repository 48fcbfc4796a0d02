/* Devices, and the contexts that are made on them. */
#include "device.h"
#include "event.h"
#include "memory.h"
#include "module.h"

#include <stdio.h>

API cuDeviceGetCount(int *count) {
    BEGIN(cuDeviceGetCount, 0);
    if (count == NULL)
        return end(INVALID_VALUE);
    *count = device_count;
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
    snprintf(name, (size_t)length, "Look-alike %d", devices[device].number);
    return end(SUCCESS);
}

static CUresult uuid_of(unsigned char *uuid, CUdevice device) {
    CUresult code = check_device(device);
    if (code == SUCCESS && uuid == NULL)
        code = INVALID_VALUE;
    if (code != SUCCESS)
        return code;
    memcpy(uuid, "look-alike-gpu-", 15);
    uuid[15] = (unsigned char)('0' + devices[device].number);
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
    snprintf(id, (size_t)length, "0000:%02X:00.0", devices[device].number + 1);
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

/* ---- Attributes of devices: all that the newest supported header names, with values of a plausible
 * device. What the look-alike cannot do is refused here as well: an attribute is never a promise. ---- */

/* The last attribute that a version of the driver knows; for an older one it is an invalid value. */
static const struct { int last, version; } known[] = {
    {115, 11020}, {119, 11030}, {124, 11080}, {129, 12000}, {134, 12020},
    {135, 12060}, {143, 12080}, {161, 13050},
};

static const struct { int attribute, value; } attributes[] = {
    {1, 1024}, {2, 1024}, {3, 1024}, {4, 64},         /* threads of a block */
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
        *value = devices[device].number + 1;
        return SUCCESS;
    case 85: /* no device shares its board with another one */
        *value = devices[device].number;
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

/* ---- Contexts ---- */

/* Frees all objects of a context. It has no pending work, or it is poisoned. */
static void context_drop(struct context *context) {
    poison(context, CONTEXT_IS_DESTROYED);
    for (size_t i = 0; i < events.count; i++) {
        struct event *event = events.items[i];
        if (event != NULL && event->context == context) {
            table_drop(&events, event->handle);
            event_unref(event);
        }
    }
    drop_modules(context);
    for (struct stream *s = context->streams, *next; s != NULL; s = next) {
        next = s->next;
        if (!s->closed)
            stream_close(s);
    }
    for (size_t i = block_count; i-- > 0;)
        if (blocks[i]->context == context && blocks[i]->where != DEVICE_MEMORY)
            release(blocks[i]);
    for (size_t i = block_count; i-- > 0;)
        if (blocks[i]->context == context)
            release(blocks[i]);
    wake_all(context);
    table_drop(&contexts, context->handle);
    if (devices[context->device].context == context)
        devices[context->device].context = NULL;
    context_unref(context);
}

/* Destroys a context when no thread of this library uses its memory any more. A host
 * function may continue; later work is dropped. */
static void context_end(struct context *context) {
    poison(context, CONTEXT_IS_DESTROYED);
    for (bool touching = true; touching;) {
        touching = false;
        for (struct stream *s = context->streams; s != NULL; s = s->next) {
            if (!s->touching)
                continue;
            touching = true;
            stream_ref(s);
            pthread_cond_wait(&s->done, &state.lock);
            stream_unref(s);
            break;
        }
    }
    context_drop(context);
}

/* For reset. */
void drop_contexts(void) {
    for (size_t i = 0; i < contexts.count; i++)
        if (contexts.items[i] != NULL)
            context_end(contexts.items[i]);
}

API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    BEGIN(cuDevicePrimaryCtxRetain, 0);
    if (context == NULL)
        return end(INVALID_VALUE);
    if (device < 0 || device >= device_count)
        return end(INVALID_DEVICE);
    struct device *d = &devices[device];
    if (d->context == NULL) {
        TRY(d->error);
        d->context = context_new(device);
        if (d->context == NULL)
            return end(OUT_OF_MEMORY);
    }
    d->retained++;
    *context = d->context->handle;
    return end(SUCCESS);
}

API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    BEGIN(cuDevicePrimaryCtxRelease_v2, 0);
    if (device < 0 || device >= device_count)
        return end(INVALID_DEVICE);
    struct device *d = &devices[device];
    if (d->retained == 0)
        return end(INVALID_CONTEXT);
    if (--d->retained > 0)
        return end(SUCCESS);
    struct context *context = d->context;
    context->refs++;
    synchronize_context(context);
    /* Another thread may have retained it while this one waited. */
    if (d->context == context && d->retained == 0)
        context_end(context);
    context_unref(context);
    return end(SUCCESS);
}

API cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    BEGIN(cuDevicePrimaryCtxGetState, 0);
    if (device < 0 || device >= device_count)
        return end(INVALID_DEVICE);
    if (flags == NULL || active == NULL)
        return end(INVALID_VALUE);
    *flags = 0;
    *active = devices[device].context != NULL;
    return end(SUCCESS);
}

/* ---- Contexts beside the primary one ---- */

static CUresult create(CUcontext *handle, CUdevice device) {
    if (handle == NULL)
        return INVALID_VALUE;
    if (device < 0 || device >= device_count)
        return INVALID_DEVICE;
    if (devices[device].error != SUCCESS)
        return devices[device].error;
    if (this_thread()->depth == STACK_DEPTH)
        return OUT_OF_MEMORY;
    struct context *context = context_new(device);
    if (context == NULL)
        return OUT_OF_MEMORY;
    this_thread()->stack[this_thread()->depth++] = *handle = context->handle;
    return SUCCESS;
}

API cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    BEGIN(cuCtxCreate_v2, 0);
    (void)flags;
    return end(create(context, device));
}

/* The structure is for execution affinity and graphics, which there are not. */
API cuCtxCreate_v4(CUcontext *context, const void *parameters, unsigned int flags, CUdevice device) {
    BEGIN(cuCtxCreate_v4, 0);
    (void)flags;
    return end(parameters != NULL ? NOT_SUPPORTED : create(context, device));
}

/* It stays on the stacks of other threads, and calls fail there. */
API cuCtxDestroy_v2(CUcontext handle) {
    BEGIN(cuCtxDestroy_v2, 0);
    struct context *context = table_get(&contexts, handle);
    if (context == NULL || context == devices[context->device].context)
        return end(INVALID_CONTEXT);
    if (this_thread()->depth > 0 && this_thread()->stack[this_thread()->depth - 1] == handle)
        this_thread()->depth--;
    context->refs++;
    synchronize_context(context);
    if (table_get(&contexts, handle) == context)
        context_end(context);
    context_unref(context);
    return end(SUCCESS);
}

/* A poisoned context may be made current. */
API cuCtxSetCurrent(CUcontext context) {
    BEGIN(cuCtxSetCurrent, context);
    if (context == 0) {
        this_thread()->depth -= this_thread()->depth > 0;
        return end(SUCCESS);
    }
    if (table_get(&contexts, context) == NULL)
        return end(INVALID_CONTEXT);
    this_thread()->depth += this_thread()->depth == 0;
    this_thread()->stack[this_thread()->depth - 1] = context;
    return end(SUCCESS);
}

API cuCtxGetCurrent(CUcontext *context) {
    BEGIN(cuCtxGetCurrent, 0);
    if (context == NULL)
        return end(INVALID_VALUE);
    *context = this_thread()->depth > 0 ? this_thread()->stack[this_thread()->depth - 1] : 0;
    return end(SUCCESS);
}

API cuCtxPushCurrent_v2(CUcontext context) {
    BEGIN(cuCtxPushCurrent_v2, context);
    if (table_get(&contexts, context) == NULL)
        return end(INVALID_CONTEXT);
    if (this_thread()->depth == STACK_DEPTH)
        return end(OUT_OF_MEMORY);
    this_thread()->stack[this_thread()->depth++] = context;
    return end(SUCCESS);
}

API cuCtxPopCurrent_v2(CUcontext *context) {
    BEGIN(cuCtxPopCurrent_v2, 0);
    if (this_thread()->depth == 0)
        return end(INVALID_CONTEXT);
    CUcontext top = this_thread()->stack[--this_thread()->depth];
    if (context != NULL)
        *context = top;
    return end(SUCCESS);
}

API cuCtxGetDevice(CUdevice *device) {
    BEGIN(cuCtxGetDevice, 0);
    struct context *context;
    TRY(current_context(&context));
    if (device == NULL)
        return end(INVALID_VALUE);
    *device = context->device;
    return end(SUCCESS);
}

API cuCtxGetId(CUcontext handle, unsigned long long *id) {
    BEGIN(cuCtxGetId, handle);
    struct context *context;
    TRY(handle == 0 ? current_context(&context) : healthy_context(handle, &context));
    if (id == NULL)
        return end(INVALID_VALUE);
    *id = context->id;
    return end(SUCCESS);
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    BEGIN(cuCtxGetStreamPriorityRange, 0);
    struct context *context;
    TRY(current_context(&context));
    if (least != NULL)
        *least = LEAST_PRIORITY;
    if (greatest != NULL)
        *greatest = GREATEST_PRIORITY;
    return end(SUCCESS);
}

API cuCtxSynchronize(void) {
    BEGIN(cuCtxSynchronize, 0);
    struct context *context;
    TRY(current_context(&context));
    int device = context->device;
    TRY(synchronize_context(context));
    pools_synchronized(device);
    return end(SUCCESS);
}

API cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    BEGIN(cuCtxEnablePeerAccess, 0);
    struct context *context, *other;
    TRY(current_context(&context));
    TRY(healthy_context(peer, &other));
    if (flags != 0)
        return end(INVALID_VALUE);
    if (other == context)
        return end(INVALID_DEVICE);
    if (context->peers & 1u << other->device)
        return end(PEER_ACCESS_ALREADY_ENABLED);
    context->peers |= 1u << other->device;
    return end(SUCCESS);
}
