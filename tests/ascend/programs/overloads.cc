// The names that C++ programs have with more or typed arguments.
#include "check.h"

#include <acl/acl_rt_api.h>

int main()
{
    aclrtStream stream;
    aclrtEvent event;
    uint32_t priority;
    float *numbers = nullptr;
    gate held;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream, 3, ACL_STREAM_FAST_LAUNCH));
    OK(aclrtStreamGetPriority(stream, &priority));
    CHECK(priority == 3);
    OK(aclrtCreateEvent(&event, ACL_EVENT_SYNC));
    CHECK(event_complete(event)); // of the newer kind
    OK(aclrtMalloc(&numbers, 4 * sizeof *numbers, ACL_MEM_MALLOC_NORMAL_ONLY));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(static_cast<float **>(nullptr), 4, ACL_MEM_MALLOC_NORMAL_ONLY));
    hold(&held, stream);
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(nullptr, event, 0));
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStream(stream, 10));
    RETURNS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEvent(event, 10));
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDevice(10));
    open_gate(&held);
    OK(aclrtSynchronizeDevice(-1));
    OK(aclrtFree(numbers));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    return done();
}
