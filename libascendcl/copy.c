/* Copies and fills, as in device.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

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
