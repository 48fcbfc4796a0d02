/* How a program may end: ./ends fork | exit | pending | callback. */
#include "check.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t never;

static void leave(void *unused)
{
    (void)unused;
    puts("done");
    exit(7);
}

static void stay(void *unused)
{
    (void)unused;
    sem_wait(&never);
}

static void in_a_child(aclrtStream stream)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        aclrtStream other;
        alarm(20);
        CHECK(aclrtCreateStream(&other) == ACL_ERROR_RT_DEV_SETUP_ERROR);
        CHECK(strstr(aclGetRecentErrMsg(), "fork") != NULL);
        CHECK(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_DEV_SETUP_ERROR);
        CHECK(aclrtProcessReport(-1) == ACL_ERROR_RT_DEV_SETUP_ERROR);
        CHECK(aclFinalize() == ACL_ERROR_RT_DEV_SETUP_ERROR);
        exit(5);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    OK(aclrtSynchronizeStream(stream)); /* the parent goes on */
    exit(done());
}

int main(int argc, char **argv)
{
    aclrtStream stream;
    CHECK(argc == 2);
    sem_init(&never, 0, 0);
    OK(aclrtSetDevice(0)); /* aclInit is not needed */
    OK(aclrtCreateStream(&stream));
    if (strcmp(argv[1], "fork") == 0) in_a_child(stream);
    if (strcmp(argv[1], "exit") == 0) {
        OK(aclrtLaunchHostFunc(stream, leave, NULL));
        OK(aclrtSynchronizeStream(stream));
    }
    if (strcmp(argv[1], "callback") == 0) {
        OK(aclrtSubscribeReport((uint64_t)pthread_self(), stream));
        OK(aclrtLaunchCallback(leave, NULL, ACL_CALLBACK_BLOCK, stream));
        OK(aclrtProcessReport(-1));
    }
    if (strcmp(argv[1], "pending") == 0) {
        OK(aclrtLaunchHostFunc(stream, stay, NULL));
        return done();
    }
    CHECK(!"one of them ends the program");
}
