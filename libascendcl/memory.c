/* Memory, as in device.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    CALL(hsAclMalloc, ME, OUT(devPtr), size, (int32_t)policy);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    CALL(hsAclMalloc, ME, OUT(devPtr), size, (int32_t)policy);
}

/* Host and device see the same bytes. */
aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    CALL(hsAclMalloc, ME, OUT(devPtr), size, (int32_t)policy);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
{
    (void)cfg; /* the settings change nothing */
    CALL(hsAclMalloc, ME, OUT(devPtr), size, (int32_t)policy);
}

aclError aclrtFree(void *devPtr) { CALL(hsAclFree, ME, HANDLE(devPtr), 0); }
aclError aclrtFreeWithDevSync(void *devPtr) { CALL(hsAclFree, ME, HANDLE(devPtr), 1); }
aclError aclrtMallocHost(void **hostPtr, size_t size) { CALL(hsAclMallocHost, ME, OUT(hostPtr), size); }

aclError aclrtMallocHostWithCfg(void **hostPtr, uint64_t size, aclrtMallocConfig *cfg)
{
    (void)cfg; /* the settings change nothing */
    CALL(hsAclMallocHost, ME, OUT(hostPtr), size);
}

aclError aclrtFreeHost(void *hostPtr) { CALL(hsAclFreeHost, ME, HANDLE(hostPtr), 0); }
aclError aclrtFreeHostWithDevSync(void *hostPtr) { CALL(hsAclFreeHost, ME, HANDLE(hostPtr), 1); }

aclError aclrtMemFlush(void *devPtr, size_t size)
{
    (void)size; /* there is nothing to do */
    CALL(hsAclMemTouch, ME, HANDLE(devPtr));
}

aclError aclrtMemInvalidate(void *devPtr, size_t size)
{
    (void)size; /* there is nothing to do */
    CALL(hsAclMemTouch, ME, HANDLE(devPtr));
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *freeSize, size_t *totalSize)
{
    CALL(hsAclGetMemInfo, ME, (int32_t)attr, freeSize, totalSize);
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
    CALL(hsAclPointerGetAttributes, ME, HANDLE(ptr), attributes);
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr)
{
    if (!devPtr) CALL(hsAclMissing, ME);
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclHostRegister(ME, HANDLE(ptr), size, type == ACL_HOST_REGISTER_MAPPED);
    if (!code) *devPtr = ptr; /* the device sees it at the same address */
    return code;
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
    CALL(hsAclHostRegister, ME, HANDLE(ptr), size,
         flag != 0 && (flag & ~(ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED)) == 0);
}

aclError aclrtHostGetDevicePointer(void *hostPtr, void **devPtr, uint32_t flag)
{
    CALL(hsAclHostGetDevicePointer, ME, HANDLE(hostPtr), OUT(devPtr), flag);
}

aclError aclrtHostUnregister(void *ptr) { CALL(hsAclHostUnregister, ME, HANDLE(ptr)); }

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    CALL(hsAclValue, ME, HANDLE(devAddr), value, flag, HANDLE(stream), 1);
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    CALL(hsAclValue, ME, HANDLE(devAddr), value, flag, HANDLE(stream), 0);
}
