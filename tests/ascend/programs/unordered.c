/* ./unordered wait | "no wait" | refill | exit: copies on two streams, or a source that changes too early. */
#include "check.h"

#include <string.h>

enum { SIZE = 4096 };

static void leave(void *unused)
{
    (void)unused;
    exit(done());
}

int main(int argc, char **argv)
{
    void *in, *out, *device;
    void *flag;
    aclrtStream first, second;
    aclrtEvent event;
    CHECK(argc == 2);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocHost(&in, SIZE));
    OK(aclrtMallocHost(&out, SIZE));
    OK(aclrtMalloc(&device, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    memset(in, 1, SIZE);
    OK(aclrtMemcpyAsync(device, SIZE, in, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, first));
    OK(aclrtRecordEvent(event, first));
    if (strcmp(argv[1], "refill") == 0) { /* the copy has run, but nobody has waited for it */
        OK(aclrtMallocHost(&flag, sizeof(uint64_t)));
        memset(flag, 0, sizeof(uint64_t));
        OK(aclrtValueWrite(flag, 1, 0, first));
        while (!__atomic_load_n((uint64_t *)flag, __ATOMIC_RELAXED)) continue;
        memset(in, 2, SIZE);
    }
    if (strcmp(argv[1], "no wait") != 0) OK(aclrtStreamWaitEvent(second, event));
    OK(aclrtMemcpyAsync(out, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, second));
    OK(aclrtSynchronizeStream(second));
    OK(aclrtSynchronizeStream(first));
    if (strcmp(argv[1], "exit") == 0) {
        OK(aclrtMemsetAsync(device, SIZE, 0, 16, first));
        OK(aclrtMemsetAsync(device, SIZE, 1, 16, second));
        OK(aclrtLaunchHostFunc(second, leave, NULL));
        OK(aclrtSynchronizeStream(second));
    }
    OK(aclrtResetDevice(0));
    return done();
}
