/* acl_rt_api.h: in C++ the names of some functions with more or typed arguments. They call those of acl_rt.h. */
#ifndef ACL_LOOKALIKE_RT_API_H
#define ACL_LOOKALIKE_RT_API_H

#include "acl_rt.h"

#ifdef __cplusplus
inline aclError aclrtCreateStream(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    return aclrtCreateStreamWithConfig(stream, priority, flag);
}

/* An event of the newer kind, unlike that of the function with one argument. */
inline aclError aclrtCreateEvent(aclrtEvent *event, uint32_t flag) { return aclrtCreateEventExWithFlag(event, flag); }

/* Milliseconds, -1 without a limit; 0 is an error. */
inline aclError aclrtSynchronizeDevice(int32_t timeout) { return aclrtSynchronizeDeviceWithTimeout(timeout); }

inline aclError aclrtSynchronizeStream(aclrtStream stream, int32_t timeout)
{
    return aclrtSynchronizeStreamWithTimeout(stream, timeout);
}

inline aclError aclrtSynchronizeEvent(aclrtEvent event, int32_t timeout)
{
    return aclrtSynchronizeEventWithTimeout(event, timeout);
}

/* Seconds, 0 without a limit. */
inline aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
    return aclrtStreamWaitEventWithTimeout(stream, event, timeout);
}

template <typename T> inline aclError aclrtMalloc(T **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    void *made = nullptr;
    aclError code = aclrtMalloc(devPtr ? &made : static_cast<void **>(nullptr), size, policy);
    if (code == ACL_SUCCESS) *devPtr = static_cast<T *>(made);
    return code;
}
#endif
#endif
