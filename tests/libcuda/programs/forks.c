/* A child that was forked may not use the driver, whose threads are in the parent. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

int main(void)
{
    int status;
    begin();
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(cuCtxSynchronize());
    }
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) {
        printf("the child was ended by signal %d\n", WTERMSIG(status));
        return 1;
    }
    printf("the child: %d\n", WEXITSTATUS(status));
    return 0;
}
