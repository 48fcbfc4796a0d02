/* The functions of the interface for memory, functions of the host, notifies and captures, as in calls.c. */
#include "_cgo_export.h"
#include "acl/acl_lookalike.h"
#include "acl/acl_rt.h"
#include "thread.h"

#define HANDLE(pointer) ((uintptr_t)(pointer))
#define OUT(pointer) ((uintptr_t *)(pointer))

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

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    CALL(hsAclMemcpy, ME, HANDLE(dst), destMax, HANDLE(src), count, (int32_t)kind);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream)
{
    CALL(hsAclMemcpyAsync, ME, HANDLE(dst), destMax, HANDLE(src), count, (int32_t)kind, HANDLE(stream));
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream)
{
    CALL(hsAclMemcpyAsync, ME, HANDLE(dst), destMax, HANDLE(src), count, (int32_t)kind, HANDLE(stream));
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind)
{
    CALL(hsAclMemcpy2d, ME, HANDLE(dst), dpitch, HANDLE(src), spitch, width, height, (int32_t)kind);
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream)
{
    CALL(hsAclMemcpy2dAsync, ME, HANDLE(dst), dpitch, HANDLE(src), spitch, width, height, (int32_t)kind,
         HANDLE(stream));
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    CALL(hsAclMemset, ME, HANDLE(devPtr), maxCount, value, count);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
{
    CALL(hsAclMemsetAsync, ME, HANDLE(devPtr), maxCount, value, count, HANDLE(stream));
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

/* -- functions of the host -- */

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    CALL(hsAclSubscribeReport, ME, threadId, HANDLE(stream));
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    CALL(hsAclUnSubscribeReport, ME, threadId, HANDLE(stream));
}

aclError aclrtLaunchCallback(aclrtCallback function, void *userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream)
{
    CALL(hsAclLaunchCallback, ME, HANDLE(function), HANDLE(userData), (int32_t)blockType, HANDLE(stream));
}

/* The callbacks run here and not below Go's frames, so that they may end the thread or the process. */
aclError aclrtProcessReport(int32_t timeout)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    uintptr_t function = 0, argument = 0;
    if (!code) code = hsAclNextReport(ME, timeout, 0, &function, &argument);
    while (!code && function != 0) {
        hs_acl_run(function, argument);
        code = hsAclNextReport(ME, timeout, 1, &function, &argument);
    }
    return code;
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *args)
{
    CALL(hsAclLaunchHostFunc, ME, HANDLE(stream), HANDLE(function), HANDLE(args));
}

aclError aclLookalikeLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *args,
                                    const aclLookalikeRange *ranges, size_t count)
{
    if (!ranges && count > 0) CALL(hsAclMissing, ME);
    CALL(hsAclLaunchDeclared, ME, HANDLE(stream), HANDLE(function), HANDLE(args), (aclLookalikeRange *)ranges, count);
}

aclError aclLookalikeHostAccess(const void *start, size_t size, int32_t write)
{
    CALL(hsAclHostAccess, ME, HANDLE(start), size, write);
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
    CALL(hsAclSetExceptionInfoCallback, ME, HANDLE(callback));
}

enum { UNKNOWN = 0xFFFFFFFFu };
static const hs_acl_failure *failure(const aclrtExceptionInfo *info) { return (const hs_acl_failure *)info; }

/* Tasks have no numbers here, and a failure that a device reports has no stream. */
uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info) { return (void)info, UNKNOWN; }
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->stream : UNKNOWN; }
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->thread : UNKNOWN; }
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->device : UNKNOWN; }
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info) { return info ? failure(info)->code : UNKNOWN; }

/* -- notifies -- */

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag) { CALL(hsAclCreateNotify, ME, OUT(notify), flag); }
aclError aclrtDestroyNotify(aclrtNotify notify) { CALL(hsAclDestroyNotify, ME, HANDLE(notify)); }

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
    CALL(hsAclRecordNotify, ME, HANDLE(notify), HANDLE(stream));
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
    CALL(hsAclWaitAndResetNotify, ME, HANDLE(notify), HANDLE(stream), timeout);
}

aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
    CALL(hsAclNotifyBatchReset, ME, OUT(notifies), num);
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
    CALL(hsAclGetNotifyId, ME, HANDLE(notify), notifyId);
}

/* -- captures -- */

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode)
{
    CALL(hsAclCaptureBegin, ME, HANDLE(stream), (int32_t)mode);
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI)
{
    CALL(hsAclCaptureEnd, ME, HANDLE(stream), OUT(modelRI));
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI)
{
    if (modelRI) *modelRI = NULL;
    CALL(hsAclCaptureGetInfo, ME, HANDLE(stream), (int32_t *)status, (uintptr_t *)modelRI);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode)
{
    CALL(hsAclCaptureThreadExchangeMode, ME, (int32_t *)mode);
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream)
{
    CALL(hsAclExecuteAsync, ME, HANDLE(modelRI), HANDLE(stream));
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) { WAIT(hsAclExecute, ME, HANDLE(modelRI), timeout); }
aclError aclmdlRIDestroy(aclmdlRI modelRI) { CALL(hsAclDestroyModel, ME, HANDLE(modelRI)); }
