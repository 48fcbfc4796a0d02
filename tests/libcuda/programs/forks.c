/* A child that was forked may not use the driver, whose threads are in the parent. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

int main(void)
{
    int status;
    begin();
    pid_t child = fork();
    if (child == 0) _exit(cuCtxSynchronize());
    waitpid(child, &status, 0);
    printf("the child: %d\n", WEXITSTATUS(status));
    return 0;
}
