/* The process, devices and contexts. */
#include "fakeacl.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

API aclInit(const char *path) {
    BEGIN(aclInit);
    CHECK(path == NULL, ACL_ERROR_INVALID_FILE);
    state.device_count = state.settings.devices;
    END(state.users++ == 0 ? ACL_SUCCESS : ACL_ERROR_REPEAT_INITIALIZE);
}

API aclFinalize(void) {
    BEGIN(aclFinalize);
    CHECK(state.users > 0, ACL_ERROR_REPEAT_FINALIZE);
    state.users = 0;
    END(ACL_SUCCESS);
}

API aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
    BEGIN(aclrtGetVersion);
    CHECK(major != NULL && minor != NULL && patch != NULL, ACL_ERROR_INVALID_PARAM);
    *major = ACL_MAJOR_VERSION, *minor = state.settings.version, *patch = 0;
    END(ACL_SUCCESS);
}

__attribute__((visibility("default"))) const char *aclrtGetSocName(void) {
    if (begin(FN_aclrtGetSocName) != ACL_SUCCESS) return NULL;
    end(FN_aclrtGetSocName, ACL_SUCCESS);
    return "Look-alike";
}

API aclrtGetDeviceCount(uint32_t *count) {
    BEGIN(aclrtGetDeviceCount);
    CHECK(count != NULL, ACL_ERROR_INVALID_PARAM);
    *count = (uint32_t)state.device_count;
    END(ACL_SUCCESS);
}

/* The memory of a device is mapped twice: callers see the range that nobody may touch. */
static aclError map_memory(struct device *d) {
    if (d->range != NULL && d->size == state.settings.memory) return ACL_SUCCESS;
    if (d->range != NULL) {
        munmap(d->range, d->size);
        munmap(d->bytes, d->size);
    }
    d->size = state.settings.memory;
    int file = memfd_create("fakeacl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)d->size) != 0) return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    d->range = mmap(NULL, d->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    d->bytes = mmap(NULL, d->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return d->range == MAP_FAILED || d->bytes == MAP_FAILED ? ACL_ERROR_RT_DRV_INTERNAL_ERROR : ACL_SUCCESS;
}

static struct context *context_new(int ordinal) {
    struct context *context = object_new(CONTEXT, sizeof *context);
    context->device = ordinal;
    if (stream_new(context, 0, &context->standard) != ACL_SUCCESS) abort();
    return context;
}

aclError open_device(int ordinal) {
    if (ordinal < 0 || ordinal >= state.device_count) return ACL_ERROR_RT_INVALID_DEVICEID;
    struct device *d = &state.devices[ordinal];
    if (d->lost) return d->lost;
    aclError code = map_memory(d);
    if (code == ACL_SUCCESS && d->primary == NULL) d->primary = context_new(ordinal);
    return code;
}

API aclrtSetDevice(int32_t ordinal) {
    BEGIN(aclrtSetDevice);
    TRY(open_device(ordinal));
    state.devices[ordinal].users++;
    this_thread()->current = state.devices[ordinal].primary;
    END(ACL_SUCCESS);
}

API aclrtResetDevice(int32_t ordinal) {
    BEGIN(aclrtResetDevice);
    CHECK(ordinal >= 0 && ordinal < state.device_count, ACL_ERROR_RT_INVALID_DEVICEID);
    struct device *d = &state.devices[ordinal];
    CHECK(d->users > 0, ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    if (--d->users == 0) {
        for (const struct stream *left = d->primary->streams; left != NULL; left = left->next)
            state.left_streams += left != d->primary->standard;
        streams_drop(d->primary);
        object_drop(&d->primary->object);
        d->primary = NULL;
    }
    END(ACL_SUCCESS);
}

/* The current context, if its device is not lost. */
aclError current(struct context **context) {
    *context = this_thread()->current;
    if (!is(*context, CONTEXT)) return ACL_ERROR_RT_CONTEXT_NULL;
    return state.devices[(*context)->device].lost;
}

API aclrtGetDevice(int32_t *ordinal) {
    BEGIN(aclrtGetDevice);
    struct context *context;
    CHECK(ordinal != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(current(&context));
    *ordinal = context->device;
    END(ACL_SUCCESS);
}

API aclrtGetCurrentContext(aclrtContext *handle) {
    BEGIN(aclrtGetCurrentContext);
    CHECK(handle != NULL, ACL_ERROR_INVALID_PARAM);
    CHECK(is(this_thread()->current, CONTEXT), ACL_ERROR_RT_CONTEXT_NULL);
    *handle = this_thread()->current;
    END(ACL_SUCCESS);
}

API aclrtSetCurrentContext(aclrtContext handle) {
    BEGIN(aclrtSetCurrentContext);
    CHECK(handle != NULL, ACL_ERROR_INVALID_PARAM);
    CHECK(is(handle, CONTEXT), ACL_ERROR_RT_INVALID_HANDLE);
    this_thread()->current = handle;
    END(ACL_SUCCESS);
}

API aclrtDeviceCanAccessPeer(int32_t *can, int32_t ordinal, int32_t peer) {
    BEGIN(aclrtDeviceCanAccessPeer);
    struct context *context;
    CHECK(can != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(current(&context));
    CHECK(ordinal >= 0 && ordinal < state.device_count && peer >= 0 && peer < state.device_count,
          ACL_ERROR_RT_INVALID_DEVICEID);
    *can = ordinal != peer;
    END(ACL_SUCCESS);
}

/* One direction: the device of the current context may use the memory of the peer. */
API aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
    BEGIN(aclrtDeviceEnablePeerAccess);
    struct context *context;
    CHECK(flags == 0, ACL_ERROR_RT_PARAM_INVALID);
    TRY(current(&context));
    CHECK(peer >= 0 && peer < state.device_count && peer != context->device, ACL_ERROR_RT_INVALID_DEVICEID);
    state.devices[context->device].peers[peer] = true;
    END(ACL_SUCCESS);
}

API aclrtDeviceGetUuid(int32_t ordinal, aclrtUuid *uuid) {
    BEGIN(aclrtDeviceGetUuid);
    CHECK(uuid != NULL, ACL_ERROR_INVALID_PARAM);
    CHECK(ordinal >= 0 && ordinal < state.device_count, ACL_ERROR_RT_INVALID_DEVICEID);
    memcpy(uuid->bytes, "look-alike-npu-", 15);
    uuid->bytes[15] = (char)('0' + ordinal);
    END(ACL_SUCCESS);
}

API aclrtGetDeviceInfo(uint32_t ordinal, aclrtDevAttr attribute, int64_t *value) {
    BEGIN(aclrtGetDeviceInfo);
    enum { CORES = 20 };
    CHECK(value != NULL, ACL_ERROR_INVALID_PARAM);
    CHECK((int)ordinal < state.device_count, ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(attribute == ACL_DEV_ATTR_AICORE_CORE_NUM, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    *value = CORES;
    END(ACL_SUCCESS);
}

/* Every later call about the device fails with the code, and pending work is never done. */
void lose(int ordinal, aclError code) {
    state.devices[ordinal].lost = code;
    tell_everybody();
}
