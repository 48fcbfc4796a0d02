/* Writes in which order the functions of two streams ran; ./turns wait: the second stream waits;
 * ./turns assert: ends with 3 if it ran before the first was done. */
#include "check.h"

#include <string.h>

static char order[16];

static void note(void *letter) { strncat(order, (const char *)letter, 1); }

int main(int argc, char **argv)
{
    static char letters[] = "abcABC";
    aclrtStream first, second;
    aclrtEvent event;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    for (int i = 0; i < 3; i++) OK(aclrtLaunchHostFunc(first, note, &letters[i]));
    OK(aclrtRecordEvent(event, first));
    if (argc == 2 && strcmp(argv[1], "wait") == 0) OK(aclrtStreamWaitEvent(second, event));
    for (int i = 3; i < 6; i++) OK(aclrtLaunchHostFunc(second, note, &letters[i]));
    OK(aclrtSynchronizeDevice());
    puts(order);
    if (argc == 2 && strcmp(argv[1], "assert") == 0 && strcmp(order, "abcABC") != 0) exit(3);
    return done();
}
