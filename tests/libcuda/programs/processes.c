/* Memory of a device and events that two processes have, by handles. The program starts itself as the other one. */
#include <unistd.h>
#include <sys/wait.h>

#include "driver.h"

typedef struct { char reserved[64]; } CUipcMemHandle;
typedef struct { char reserved[64]; } CUipcEventHandle;
CUresult cuIpcGetMemHandle(CUipcMemHandle *, CUdeviceptr), cuIpcOpenMemHandle_v2(CUdeviceptr *, CUipcMemHandle, unsigned);
CUresult cuIpcOpenMemHandle(CUdeviceptr *, CUipcMemHandle, unsigned), cuIpcCloseMemHandle(CUdeviceptr);
CUresult cuIpcGetEventHandle(CUipcEventHandle *, CUevent), cuIpcOpenEventHandle(CUevent *, CUipcEventHandle);

enum { NO_TIMING = 2, INTERPROCESS = 4, NOT_READY = 600 };
enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, COUNT = 300, LAZY_PEER_ACCESS = 1, IS_IPC_CAPABLE = 10 };

/* What the first process says to the other one, and the other way round. */
typedef struct {
    CUipcMemHandle memory;
    CUipcEventHandle event;
} message;

static void say(int to, const message *m) { IS(write(to, m, sizeof *m) == sizeof *m); }
static message hear(int from)
{
    message m;
    IS(read(from, &m, sizeof m) == sizeof m);
    return m;
}

/* Starts the other process: what it writes can be read from *from, what is written to *to it reads. */
static pid_t start(const char *what, int *to, int *from)
{
    int down[2], up[2];
    IS(pipe(down) == 0 && pipe(up) == 0);
    pid_t other = fork();
    if (other == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execl("/proc/self/exe", "processes", what, "other", NULL);
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

static void all_are(int number, CUdeviceptr p)
{
    int numbers[COUNT];
    OK(cuMemcpyDtoH_v2(numbers, p, sizeof numbers));
    for (int i = 0; i < COUNT; i++) IS(numbers[i] == number);
}

static int memory(void)
{
    CUdeviceptr p, pooled;
    CUipcMemHandle again;
    int to, from, capable;
    message m;
    begin();
    OK(cuMemAlloc_v2(&p, COUNT * sizeof(int)));
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
    pid_t other = start("memory", &to, &from);
    say(to, &m);
    hear(from); /* it has added */
    all_are(7 + 5, p);
    OK(cuMemsetD32_v2(p, 40, COUNT));
    OK(cuCtxSynchronize());
    say(to, &m); /* it may look */
    hear(from);
    OK(cuMemFree_v2(p));
    say(to, &m); /* it still has the memory */
    ended(other);
    return 0;
}

static int other_of_memory(void)
{
    CUdeviceptr p, same, last;
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
    all_are(40, p);
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

/* A stream that is held until *flag is 1. */
static CUstream held(volatile uint32_t **flag)
{
    CUstream stream;
    OK(cuMemHostAlloc((void **)flag, 4, 0));
    **flag = 0;
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)*flag, 1, 1));
    return stream;
}

static int events(void)
{
    CUevent event, plain;
    CUdeviceptr p;
    CUipcEventHandle again;
    volatile uint32_t *flag;
    int to, from;
    message m;
    begin();
    OK(cuMemAlloc_v2(&p, COUNT * sizeof(int)));
    OK(cuIpcGetMemHandle(&m.memory, p));
    OK(cuEventCreate(&event, INTERPROCESS | NO_TIMING));
    OK(cuEventCreate(&plain, NO_TIMING));
    FAILS(INVALID_VALUE, cuIpcGetEventHandle(&again, plain));
    CUstream s = held(&flag);
    OK(cuMemsetD32Async(p, 1, COUNT, s));
    OK(cuEventRecord(event, s)); /* before the event is shared */
    OK(cuIpcGetEventHandle(&m.event, event));
    OK(cuIpcGetEventHandle(&again, event));
    IS(memcmp(&again, &m.event, sizeof again) == 0);
    FAILS(INVALID_CONTEXT, cuIpcOpenEventHandle(&plain, m.event));
    pid_t other = start("events", &to, &from);
    say(to, &m);
    hear(from); /* it has enqueued what waits */
    *flag = 1;
    OK(cuStreamSynchronize(s));
    hear(from); /* it has seen what it waited for, and has recorded the event */
    FAILS(NOT_READY, cuEventQuery(event));
    OK(cuStreamWaitEvent(s, event, 0));
    OK(add(kernel("add"), p, COUNT, 5, s));
    FAILS(NOT_READY, cuStreamQuery(s));
    say(to, &m);
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(s));
    all_are(9 + 5, p);
    OK(cuMemsetD32Async(p, 3, COUNT, s));
    OK(cuEventRecord(event, s)); /* this process has it again */
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy_v2(event));
    say(to, &m);
    ended(other);
    return 0;
}

static int other_of_events(void)
{
    CUdeviceptr p;
    CUevent event, late;
    CUstream s;
    volatile uint32_t *flag;
    message m = hear(0);
    begin();
    OK(cuIpcOpenMemHandle_v2(&p, m.memory, LAZY_PEER_ACCESS));
    OK(cuIpcOpenEventHandle(&event, m.event));
    FAILS(NOT_READY, cuEventQuery(event));
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamWaitEvent(s, event, 0));
    OK(add(kernel("add"), p, COUNT, 5, s));
    FAILS(NOT_READY, cuStreamQuery(s));
    say(1, &m);
    OK(cuStreamSynchronize(s));
    OK(cuEventQuery(event));
    all_are(1 + 5, p);
    CUstream own = held(&flag);
    OK(cuMemsetD32Async(p, 9, COUNT, own));
    OK(cuEventRecord(event, own));
    FAILS(NOT_READY, cuEventQuery(event));
    say(1, &m);
    hear(0);
    *flag = 1;
    hear(0);
    OK(cuEventSynchronize(event));
    all_are(3, p);
    FAILS(INVALID_VALUE, cuIpcOpenEventHandle(&late, m.event)); /* it was destroyed there */
    OK(cuEventDestroy_v2(event));
    OK(cuIpcCloseMemHandle(p));
    return 0;
}

int main(int count, char **words)
{
    int of_events = count > 1 && strcmp(words[1], "events") == 0;
    alarm(60);
    if (count > 2) return of_events ? other_of_events() : other_of_memory();
    if (of_events) events();
    else memory();
    puts("done");
    return 0;
}
