/* ./declared wait | "no wait" | host: functions that say what they access, with and without the order that they need. */
#include "check.h"

#include <acl/acl_lookalike.h>
#include <string.h>

enum { SIZE = 256 };

static void fill(void *memory) { memset(memory, 1, SIZE); }
static void look(void *memory) { CHECK(memory != NULL); }

int main(int argc, char **argv)
{
    void *memory;
    aclrtStream first, second;
    aclrtEvent event;
    CHECK(argc == 2);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    aclLookalikeRange writes = {memory, SIZE, 1}, reads = {memory, 16, 0};
    RETURNS(ACL_ERROR_INVALID_PARAM, aclLookalikeLaunchHostFunc(first, fill, memory, NULL, 1));
    OK(aclLookalikeLaunchHostFunc(first, fill, memory, &writes, 1));
    OK(aclrtRecordEvent(event, first));
    if (strcmp(argv[1], "no wait") != 0) OK(aclrtStreamWaitEvent(second, event));
    OK(aclLookalikeLaunchHostFunc(second, look, memory, &reads, 1));
    if (strcmp(argv[1], "host") == 0) OK(aclLookalikeHostAccess(memory, 8, 0));
    OK(aclrtSynchronizeDevice());
    OK(aclLookalikeHostAccess(memory, SIZE, 1));
    OK(aclrtResetDevice(0));
    return done();
}
