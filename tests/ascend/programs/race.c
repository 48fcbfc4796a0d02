/* ./race wait | "no wait": a function of a stream writes what the host reads. */
#include "check.h"

#include <string.h>

static int written, ran;

static void write_it(void *unused)
{
    (void)unused;
    written = 1;
    __atomic_store_n(&ran, 1, __ATOMIC_RELAXED); /* which orders nothing */
}

int main(int argc, char **argv)
{
    aclrtStream stream;
    CHECK(argc == 2);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtLaunchHostFunc(stream, write_it, NULL));
    if (strcmp(argv[1], "wait") == 0) OK(aclrtSynchronizeStream(stream));
    while (!__atomic_load_n(&ran, __ATOMIC_RELAXED)) continue;
    CHECK(written == 1);
    return done();
}
