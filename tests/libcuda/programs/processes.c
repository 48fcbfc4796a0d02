/* Memory of a device that two processes work on, by handles. The program starts itself as the other one. */
#include <unistd.h>
#include <sys/wait.h>

#include "driver.h"

typedef struct { char reserved[64]; } CUipcMemHandle;
CUresult cuIpcGetMemHandle(CUipcMemHandle *, CUdeviceptr), cuIpcOpenMemHandle_v2(CUdeviceptr *, CUipcMemHandle, unsigned);
CUresult cuIpcOpenMemHandle(CUdeviceptr *, CUipcMemHandle, unsigned), cuIpcCloseMemHandle(CUdeviceptr);

enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, COUNT = 300, LAZY_PEER_ACCESS = 1, IS_IPC_CAPABLE = 10 };

/* What the first process says to the other one, and the other way round. */
typedef struct {
    CUipcMemHandle memory;
    int number;
} message;

static void say(int to, const message *m) { IS(write(to, m, sizeof *m) == sizeof *m); }
static message hear(int from)
{
    message m;
    IS(read(from, &m, sizeof m) == sizeof m);
    return m;
}

/* Starts the other process: what it writes can be read from *from, what is written to *to it reads. */
static pid_t start(int *to, int *from)
{
    int down[2], up[2];
    IS(pipe(down) == 0 && pipe(up) == 0);
    pid_t other = fork();
    if (other == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execl("/proc/self/exe", "processes", "other", NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    *to = down[1], *from = up[0];
    return other;
}

static void ended(pid_t other)
{
    int status;
    IS(waitpid(other, &status, 0) == other);
    IS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int first(void)
{
    CUdeviceptr p, pooled;
    CUipcMemHandle again;
    int to, from, numbers[COUNT], capable;
    message m;
    begin();
    OK(cuMemAlloc_v2(&p, sizeof numbers));
    OK(cuMemsetD32_v2(p, 7, COUNT));
    OK(cuIpcGetMemHandle(&m.memory, p));
    OK(cuIpcGetMemHandle(&again, p + 8));
    IS(memcmp(&again, &m.memory, sizeof again) == 0);
    OK(cuPointerGetAttribute(&capable, IS_IPC_CAPABLE, p));
    IS(capable == 1);
    OK(cuMemAllocAsync(&pooled, 4096, NULL));
    FAILS(INVALID_VALUE, cuIpcGetMemHandle(&again, pooled));
    FAILS(INVALID_VALUE, cuIpcGetMemHandle(NULL, p));
    FAILS(INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&pooled, m.memory, LAZY_PEER_ACCESS));
    pid_t other = start(&to, &from);
    m.number = getpid();
    say(to, &m);
    hear(from); /* it has added */
    OK(cuMemcpyDtoH_v2(numbers, p, sizeof numbers));
    for (int i = 0; i < COUNT; i++) IS(numbers[i] == 7 + 5);
    OK(cuMemsetD32_v2(p, 40, COUNT));
    say(to, &m); /* it may look */
    hear(from);
    OK(cuMemFree_v2(p));
    say(to, &m); /* it still has the memory */
    ended(other);
    return 0;
}

static int second(void)
{
    CUdeviceptr p, same, last;
    int numbers[COUNT];
    message m = hear(0);
    begin();
    FAILS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&p, m.memory, 0));
    OK(cuIpcOpenMemHandle_v2(&p, m.memory, LAZY_PEER_ACCESS));
    OK(cuIpcOpenMemHandle(&same, m.memory, LAZY_PEER_ACCESS));
    IS(same == p);
    OK(add(kernel("add"), p, COUNT, 5, NULL));
    OK(cuCtxSynchronize());
    say(1, &m);
    hear(0);
    OK(cuMemcpyDtoH_v2(numbers, p, sizeof numbers));
    for (int i = 0; i < COUNT; i++) IS(numbers[i] == 40);
    FAILS(INVALID_VALUE, cuMemFree_v2(p));
    say(1, &m);
    hear(0); /* the owner has freed it */
    OK(cuMemsetD32_v2(p, 1, COUNT));
    OK(cuIpcCloseMemHandle(p));
    OK(cuMemsetD32_v2(p, 2, COUNT));
    OK(cuIpcCloseMemHandle(p));
    FAILS(INVALID_VALUE, cuIpcCloseMemHandle(p));
    FAILS(INVALID_VALUE, cuMemsetD32_v2(p, 2, COUNT));
    m.memory.reserved[0]++;
    FAILS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&last, m.memory, LAZY_PEER_ACCESS));
    return 0;
}

int main(int count, char **words)
{
    (void)words;
    alarm(60);
    if (count > 1) return second();
    first();
    puts("done");
    return 0;
}
