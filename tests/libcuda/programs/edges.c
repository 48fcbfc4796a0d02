/* The edges of the functions, where little is asked for or much goes wrong: the argument says which. */
#include <pthread.h>

#include "driver.h"

/* Each thread gives back what it was given, whose address another one gets at once. */
static void *frees(void *context)
{
    OK(cuCtxSetCurrent(context));
    for (size_t i = 0; i < 4000; i++) {
        CUdeviceptr p, start;
        size_t size;
        void *host;
        OK(cuMemAlloc_v2(&p, 1000));
        OK(cuMemGetAddressRange_v2(&start, &size, p));
        IS(start == p && size == 1000);
        OK(cuMemHostAlloc(&host, 2000, 0));
        OK(cuMemFree_v2(p));
        OK(cuMemFreeHost(host));
    }
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 16 };
    pthread_t all[THREADS];
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    for (int i = 0; i < THREADS; i++) IS(pthread_create(&all[i], NULL, frees, context) == 0);
    for (int i = 0; i < THREADS; i++) IS(pthread_join(all[i], NULL) == 0);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, void *);

typedef struct allocation {
    int type, handles, place, id;
    void *security;
    size_t most;
    char reserved[56];
    void *access;
    size_t count, size;
    CUdeviceptr address;
} allocation;

/* A context is reset while there is a graph that allocates, and that was not launched. */
static void resets(void)
{
    CUgraph graph;
    CUgraphNode node;
    CUdeviceptr p;
    allocation a = {.type = 1, .place = 1, .size = 1000};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &a));
    OK(cuMemAlloc_v2(&p, 1000));
    OK(cuDevicePrimaryCtxReset_v2(0));
    FAILS(1, cuMemFree_v2(p));
    OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check)(void);
    } edges[] = {{"threads", threads}, {"resets", resets}};
    begin();
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        if (argc > 1 && strcmp(argv[1], edges[i].name) == 0) edges[i].check();
    puts("done");
    return 0;
}
