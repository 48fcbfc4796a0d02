/* The edges of the functions, where little is asked for or much goes wrong: the argument says which. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <semaphore.h>
#include <malloc.h>
#include <time.h>

#include "driver.h"

CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **);
CUresult cuStreamGetId(CUstream, unsigned long long *), cuStreamGetId_ptsz(CUstream, unsigned long long *);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, CUstream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, size_t *, CUstream);
CUresult cuLibraryLoadData(void **, const void *, int *, void **, unsigned, int *, void **, unsigned), cuLibraryUnload(void *);
CUresult cuLibraryGetKernel(void **, void *, const char *), cuLibraryGetModule(CUmodule *, void *);
CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, void *);

CUresult cuUserObjectCreate(void **, void *, CUhostFn, unsigned, unsigned), cuUserObjectRetain(void *, unsigned);
CUresult cuUserObjectRelease(void *, unsigned), cuGraphRetainUserObject(CUgraph, void *, unsigned, unsigned);
CUresult cuGraphReleaseUserObject(CUgraph, void *, unsigned), cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);

typedef struct kernel_node {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    void **params, **extra, *kernel;
    CUcontext context;
} kernel_node;
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, kernel_node *), cuGraphNodeFindInClone(CUgraphNode *, CUgraphNode, CUgraph);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const kernel_node *);

typedef struct fill_node {
    CUdeviceptr dst;
    size_t pitch;
    uint32_t value, size;
    size_t width, rows;
} fill_node;
typedef union value {
    char bytes[64];
    int number;
    struct {
        CUevent event;
        int flags, start;
    } event;
} value;
typedef struct attribute {
    int number, unused;
    value value;
} attribute;
typedef struct config {
    unsigned grid[3], block[3], shared;
    CUstream stream;
    attribute *attributes;
    unsigned count;
} config;
CUresult cuLaunchKernelEx(const config *, CUfunction, void **, void **), cuStreamCopyAttributes(CUstream, CUstream);
CUresult cuStreamGetAttribute(CUstream, int, value *), cuStreamSetAttribute(CUstream, int, const value *);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode, int, value *), cuGraphKernelNodeSetAttribute(CUgraphNode, int, const value *);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode, CUgraphNode);

CUresult cuGraphAddEventRecordNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphAddEventWaitNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode, CUevent *), cuGraphEventWaitNodeGetEvent(CUgraphNode, CUevent *);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode, CUevent), cuGraphExecEventRecordNodeSetEvent(CUgraphExec, CUgraphNode, CUevent);
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec, CUgraphNode, CUevent);
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode, CUgraphNode *, void *, size_t *);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec, CUgraphNode, const void *, CUcontext);
CUresult cuGraphNodeGetContainingGraph(CUgraphNode, CUgraph *), cuGraphNodeGetLocalId(CUgraphNode, uint32_t *);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph *), cuGraphExecChildGraphNodeSetParams(CUgraphExec, CUgraphNode, CUgraph);

typedef struct operation {
    int kind;
    unsigned barrier;
    uint64_t address, value;
    unsigned flags;
    uint64_t alias, padding;
} operation;
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned, operation *, unsigned), cuEventRecordWithFlags(CUevent, CUstream, unsigned);
CUresult cuLaunchHostFunc_v2(CUstream, CUhostFn, void *, unsigned), cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned);
CUresult cuCtxCreate_v3(CUcontext *, void *, int, unsigned, CUdevice), cuCtxCreate_v4(CUcontext *, void *, unsigned, CUdevice);
CUresult cuMemAdvise(CUdeviceptr, size_t, int, CUdevice), cuCtxEnablePeerAccess(CUcontext, unsigned);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned);

CUresult cuMemPoolCreate(void **, const void *), cuMemPoolDestroy(void *), cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, void *, CUstream);
CUresult cuMemPoolGetAttribute(void *, int, void *), cuMemPoolSetAttribute(void *, int, void *);
CUresult cuMemPoolSetAccess(void *, const void *, size_t), cuMemPoolGetAccess(int *, void *, void *);
CUresult cuDeviceGetDefaultMemPool(void **, CUdevice), cuDeviceGetMemPool(void **, CUdevice), cuMemSetMemPool(void *, int, void *);
CUresult cuDeviceSetGraphMemAttribute(CUdevice, int, void *);

CUresult cuPointerSetAttribute(const void *, int, CUdeviceptr);


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
    a.place = 2; /* the host */
    FAILS(801, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &a));
    OK(cuGraphDestroy(graph));
}

typedef struct copy_attributes {
    int order, places[4];
    unsigned flags;
} copy_attributes;

/* Copies in batches: one without bytes, and one whose source is read before the call returns. */
static void batches(void)
{
    CUstream s;
    CUdeviceptr p[2], from[2], to[2];
    void *host;
    size_t sizes[2] = {256, 0}, first = 0, failed = 7;
    uint32_t back[64];
    copy_attributes during = {.order = 2}, unknown = {.order = 4};
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAlloc_v2(&p[0], 1 << 20));
    OK(cuMemAlloc_v2(&p[1], 256));
    OK(cuMemHostAlloc(&host, 1 << 20, 0));
    to[0] = to[1] = p[0];
    from[0] = from[1] = (CUdeviceptr)(uintptr_t)host;
    FAILS(1, cuMemcpyBatchAsync(to, from, sizes, 2, NULL, NULL, 0, &failed, s));
    IS(failed == 1);
    FAILS(1, cuMemcpyBatchAsync_v2(to, from, sizes, 1, &unknown, &first, 1, s));
    for (uint32_t i = 0; i < 200; i++) {
        sizes[0] = 1 << 20;
        memset(host, (int)i, sizes[0]);
        OK(cuMemcpyBatchAsync_v2(to, from, sizes, 1, &during, &first, 1, s));
        memset(host, 255, sizes[0]);
        OK(cuMemcpyDtoHAsync_v2(back, p[0] + sizes[0] - sizeof back, sizeof back, s));
        OK(cuStreamSynchronize(s));
        IS((back[63] & 255) == i);
    }
}

typedef struct copy3d {
    size_t from[4];
    int skind;
    const void *shost;
    CUdeviceptr sdevice;
    void *sarray, *scontext;
    size_t spitch, sheight, to[4];
    int dkind;
    void *dhost;
    CUdeviceptr ddevice;
    void *darray, *dcontext;
    size_t dpitch, dheight, width, height, depth;
} copy3d;

/* Sizes whose product is more than 64 bits have. */
static void sizes(void)
{
    CUdeviceptr p;
    CUgraph graph;
    CUgraphNode node;
    size_t pitch;
    struct {
        CUdeviceptr dst;
        size_t pitch;
        uint32_t value, size;
        size_t width, rows;
    } fill = {0, 0, 7, 257, 10, 1};
    copy3d box = {.skind = 2, .dkind = 2, .width = 1, .height = (size_t)1 << 33, .depth = (size_t)1 << 33};
    FAILS(2, cuMemAllocPitch_v2(&p, &pitch, (size_t)1 << 33, (size_t)1 << 33, 4));
    FAILS(2, cuMemAllocPitch_v2(&p, &pitch, 512, ((size_t)1 << 55) + 1, 4));
    OK(cuMemAlloc_v2(&p, 1024));
    FAILS(1, cuMemsetD2D32_v2(p, (size_t)1 << 32, 1, (size_t)1 << 30, (size_t)1 << 32));
    box.sdevice = box.ddevice = p;
    FAILS(1, cuMemcpy3D_v2(&box));
    OK(cuGraphCreate(&graph, 0));
    fill.dst = p;
    FAILS(1, cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
}

static void *library;

/* One of several threads that are the first to ask for the module of a library. */
static void *asks(void *context)
{
    CUmodule module;
    OK(cuCtxSetCurrent(context));
    OK(cuLibraryGetModule(&module, library));
    return module;
}

/* A library has one module in a context, and another one after its reset; the place for errors is cleared by a success. */
static void libraries(void)
{
    enum { THREADS = 8 };
    pthread_t all[THREADS];
    CUcontext context;
    CUmodule module;
    CUdeviceptr p;
    uint32_t back;
    void *f, *found, *linker, *image;
    size_t size;
    char text[2000] = "";
    int options[] = {5, 6};
    void *values[] = {text, (void *)(uintptr_t)sizeof text};
    OK(cuCtxGetCurrent(&context));
    for (int round = 0; round < 20; round++) {
        OK(cuLibraryLoadData(&library, kernels, NULL, NULL, 0, NULL, NULL, 0));
        for (int i = 0; i < THREADS; i++) IS(pthread_create(&all[i], NULL, asks, context) == 0);
        OK(cuLibraryGetModule(&module, library));
        for (int i = 0; i < THREADS; i++) IS(pthread_join(all[i], &found) == 0 && found == module);
        if (round < 19) OK(cuLibraryUnload(library));
    }
    OK(cuLibraryGetKernel(&f, library, "add"));
    for (int reset = 0; reset < 2; reset++) {
        OK(cuMemAlloc_v2(&p, 4));
        OK(cuMemsetD32_v2(p, 40, 1));
        OK(add(f, p, 1, 2, NULL));
        OK(cuMemcpyDtoH_v2(&back, p, 4));
        IS(back == 42);
        OK(cuDevicePrimaryCtxReset_v2(0));
        FAILS(400, cuModuleUnload(module));
    }
    OK(cuLinkCreate_v2(2, options, values, &linker));
    FAILS(209, cuLinkAddData_v2(linker, 3, "\177ELF", 4, "object", 0, NULL, NULL));
    IS(strstr(text, "machine code") != NULL);
    FAILS(1, cuLinkAddData_v2(linker, 77, (void *)kernels, sizeof kernels, "kernels", 0, NULL, NULL));
    OK(cuLinkAddData_v2(linker, 1, (void *)kernels, sizeof kernels, "kernels", 0, NULL, NULL));
    IS(text[0] == 0);
    values[1] = NULL; /* the options are the program's again, whose arrays the linker does not look into */
    options[0] = options[1] = 0;
    OK(cuLinkComplete(linker, &image, &size));
    OK(cuLinkDestroy(linker));
}

static void destroyed(void *times) { sem_post(times); }

/* What graphs keep of the program is destroyed once, after the launches of executables that are destroyed. */
static void objects(void)
{
    CUgraph graph, clone, parent, captured;
    CUgraphNode node;
    CUgraphExec executable;
    CUstream s;
    CUdeviceptr p;
    void *object;
    sem_t times;
    int left;
    struct timespec late;
    CUstream other;
    sem_init(&times, 0, 0);
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamCreate(&other, 1));
    OK(cuMemAlloc_v2(&p, 8));
    OK(cuMemsetD32_v2(p, 0, 2));
    FAILS(1, cuUserObjectCreate(&object, &times, destroyed, 0, 1));
    FAILS(1, cuUserObjectCreate(&object, &times, destroyed, 1, 0));
    OK(cuUserObjectCreate(&object, &times, destroyed, 2, 1));
    FAILS(1, cuUserObjectRelease(object, 3));
    OK(cuUserObjectRetain(object, 1));
    OK(cuGraphCreate(&graph, 0));
    FAILS(1, cuGraphRetainUserObject(graph, object, 0, 0));
    FAILS(1, cuGraphRetainUserObject(graph, object, 1, 2));
    OK(cuGraphRetainUserObject(graph, object, 3, 1)); /* those of the program are the graph's */
    OK(cuGraphReleaseUserObject(graph, object, 2));
    FAILS(1, cuGraphReleaseUserObject(graph, object, 2));
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphCreate(&parent, 0));
    OK(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    OK(cuStreamBeginCapture_v2(s, 0));
    OK(cuGraphLaunch(executable, s));
    OK(cuStreamEndCapture(s, &captured));
    OK(cuStreamWaitValue64_v2(s, p, 1, 1));
    OK(cuGraphLaunch(executable, s));
    OK(cuGraphExecDestroy(executable));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(clone));
    OK(cuGraphDestroy(parent));
    OK(cuGraphDestroy(captured));
    IS(sem_trywait(&times) != 0); /* the launch has not begun */
    OK(cuStreamWriteValue64_v2(other, p, 1, 0));
    clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 20;
    IS(sem_timedwait(&times, &late) == 0);
    OK(cuStreamSynchronize(s));
    IS(sem_getvalue(&times, &left) == 0 && left == 0);
    FAILS(1, cuUserObjectRetain(object, 1));
}

/* What waits for work that can never end, beside the calls that only wait. */
static void stuck(void)
{
    CUstream s;
    CUdeviceptr p;
    static char mine[1 << 16];
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAlloc_v2(&p, 1 << 16));
    OK(cuMemHostRegister_v2(mine, sizeof mine, 0));
    OK(cuStreamWriteValue64_v2(s, p, 1, 0));
    OK(cuStreamWaitValue64_v2(s, p, 5, 1));
    OK(cuMemcpyHtoDAsync_v2(p, mine, sizeof mine, s));
    FAILS(702, cuMemHostUnregister(mine));
    FAILS(702, cuDevicePrimaryCtxReset_v2(0));
}

/* The arguments of nodes of kernels are the graph's, and go with it; a node that is replaced has none any more. */
static void arguments(void)
{
    static const char big[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry big(.param .u32 n, .param .align 8 .b8 p[4000]) { ret; }\n";
    enum { TIMES = 20000 };
    CUgraph graph, clone;
    CUgraphNode node, copied;
    CUgraphExec executable;
    CUmodule module;
    uint32_t n = 7;
    static char bytes[4000];
    void *values[] = {&n, bytes};
    kernel_node k = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = values}, back;
    size_t before;
    OK(cuModuleLoadData(&module, big));
    OK(cuModuleGetFunction(&k.function, module, "big"));
    OK(cuGraphCreate(&graph, 0));
    bytes[3999] = 3;
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &k));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphNodeFindInClone(&copied, node, clone));
    OK(cuGraphDestroy(graph));
    n = 0, bytes[3999] = 0;
    OK(cuGraphKernelNodeGetParams_v2(copied, &back));
    IS(*(uint32_t *)back.params[0] == 7 && ((char *)back.params[1])[3999] == 3);
    OK(cuGraphDestroy(clone));
    OK(cuGraphExecDestroy(executable));
    before = mallinfo2().uordblks;
    for (int i = 0; i < TIMES; i++) {
        OK(cuGraphCreate(&graph, 0));
        OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &k));
        OK(cuGraphDestroy(graph));
    }
    IS(mallinfo2().uordblks - before < TIMES * sizeof bytes / 2);
    before = mallinfo2().uordblks;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &k));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < TIMES; i++) OK(cuGraphExecKernelNodeSetParams_v2(executable, node, &k));
    IS(mallinfo2().uordblks - before < TIMES * sizeof bytes / 2);
}

/* Attributes of launches, nodes and streams: what is no hint is done or refused. */
static void attributes(void)
{
    CUstream s, other, high;
    CUevent e, timed;
    CUdeviceptr p;
    CUgraph graph, clone;
    CUgraphNode node, fill;
    CUfunction f = kernel("add");
    uint32_t n = 1, more = 1;
    void *values[] = {&p, &n, &more};
    attribute a = {.number = 7}, back;
    config c = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .attributes = &a, .count = 1};
    kernel_node k = {.function = f, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = values};
    fill_node set = {.value = 7, .size = 4, .width = 1, .rows = 1};
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamCreate(&other, 1));
    OK(cuStreamCreateWithPriority(&high, 1, -1));
    OK(cuEventCreate(&e, 2));
    OK(cuEventCreate(&timed, 0));
    OK(cuMemAlloc_v2(&p, 8));
    OK(cuMemsetD32_v2(p, 0, 2));
    OK(cuCtxSynchronize());
    c.stream = s;
    for (a.number = 7; a.number <= 12; a.number += 5) { /* events */
        a.value.event.event = timed;
        FAILS(1, cuLaunchKernelEx(&c, f, values, NULL));
        a.value.event.event = NULL;
        FAILS(400, cuLaunchKernelEx(&c, f, values, NULL));
        a.value.event.event = e;
        OK(cuStreamWaitValue32_v2(s, p + 4, (uint32_t)a.number, 1));
        OK(cuLaunchKernelEx(&c, f, values, NULL));
        FAILS(600, cuEventQuery(e));
        OK(cuStreamWriteValue32_v2(other, p + 4, (uint32_t)a.number, 0));
        OK(cuEventSynchronize(e));
    }
    a.number = 13, a.value.number = 1;
    FAILS(801, cuLaunchKernelEx(&c, f, values, NULL));
    a.number = 3;
    FAILS(1, cuLaunchKernelEx(&c, f, values, NULL));
    a.number = 99;
    FAILS(1, cuLaunchKernelEx(&c, f, values, NULL));
    a.number = 8;
    OK(cuLaunchKernelEx(&c, f, values, NULL));
    c.attributes = NULL;
    FAILS(1, cuLaunchKernelEx(&c, f, values, NULL));

    memset(&back, 0, sizeof back);
    OK(cuStreamGetAttribute(high, 8, &back.value));
    IS(back.value.number == -1);
    FAILS(801, cuStreamSetAttribute(s, 8, &back.value));
    FAILS(1, cuStreamSetAttribute(s, 2, &back.value));
    FAILS(1, cuStreamGetAttribute(s, 77, &back.value));
    a.value.number = 3;
    OK(cuStreamSetAttribute(NULL, 3, &a.value));
    OK(cuStreamGetAttribute(NULL, 3, &back.value));
    IS(back.value.number == 3);
    OK(cuStreamCopyAttributes((CUstream)2, NULL));
    OK(cuStreamGetAttribute((CUstream)2, 3, &back.value));
    IS(back.value.number == 3);
    OK(cuStreamCopyAttributes(s, (CUstream)2));
    OK(cuStreamGetAttribute(s, 3, &back.value));
    IS(back.value.number == 3);

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &k));
    set.dst = p;
    OK(cuGraphAddMemsetNode(&fill, graph, &node, 1, &set, NULL));
    a.value.number = 5;
    OK(cuGraphKernelNodeSetAttribute(node, 8, &a.value));
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphNodeFindInClone(&node, node, clone));
    OK(cuGraphKernelNodeGetAttribute(node, 8, &back.value));
    IS(back.value.number == 5);
    FAILS(801, cuGraphKernelNodeSetAttribute(node, 2, &a.value));
    FAILS(1, cuGraphKernelNodeSetAttribute(node, 7, &a.value));
    FAILS(1, cuGraphKernelNodeGetAttribute(fill, 8, &back.value));
    FAILS(1, cuGraphKernelNodeCopyAttributes(fill, node));
    OK(cuGraphKernelNodeCopyAttributes(node, node));
}

/* Nodes of other graphs, of other kinds, and of child graphs. */
static void nodes(void)
{
    CUgraph graph, other, child, clone, parent;
    CUgraphNode fill, record, foreign, found, more, both[2], all[4];
    CUgraphExec executable;
    CUevent e, second, back;
    CUstream s;
    CUdeviceptr p;
    fill_node set = {.value = 7, .size = 4, .width = 1, .rows = 1};
    size_t count;
    uint64_t edges[4];
    uint32_t number;
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&e, 2));
    OK(cuEventCreate(&second, 2));
    OK(cuMemAlloc_v2(&p, 8));
    set.dst = p;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&other, 0));
    OK(cuGraphAddMemsetNode(&foreign, other, NULL, 0, &set, NULL));
    OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, NULL));
    FAILS(1, cuGraphAddMemsetNode(&more, graph, &foreign, 1, &set, NULL));
    FAILS(1, cuGraphAddMemsetNode(&more, graph, NULL, 1, &set, NULL));
    FAILS(1, cuGraphAddMemsetNode(&more, graph, &fill, SIZE_MAX, &set, NULL));
    OK(cuGraphAddEventRecordNode(&record, graph, &fill, 1, e));
    OK(cuGraphEventRecordNodeGetEvent(record, &back));
    IS(back == e);
    FAILS(801, cuGraphEventWaitNodeGetEvent(record, &back));
    FAILS(801, cuGraphEventRecordNodeSetEvent(record, second));
    FAILS(1, cuGraphAddDependencies(graph, &fill, NULL, 1));
    FAILS(1, cuGraphAddDependencies(graph, &fill, &foreign, 1));
    both[0] = both[1] = NULL;
    FAILS(1, cuGraphGetEdges(graph, both, both, NULL));
    FAILS(1, cuGraphGetEdges(graph, both, NULL, (count = 2, &count)));
    memset(edges, 255, sizeof edges);
    count = 4;
    OK(cuGraphNodeGetDependencies_v2(record, all, edges, &count));
    IS(count == 1 && all[0] == fill && all[1] == NULL && edges[0] == 0);
    count = SIZE_MAX;
    FAILS(1, cuGraphGetNodes(graph, all, &count));

    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    FAILS(1, cuGraphExecMemsetNodeSetParams(executable, foreign, &set, NULL));
    FAILS(1, cuGraphExecMemsetNodeSetParams(executable, record, &set, NULL));
    FAILS(1, cuGraphExecMemsetNodeSetParams(executable, fill, NULL, NULL));
    FAILS(1, cuGraphExecEventWaitNodeSetEvent(executable, record, second));
    FAILS(400, cuGraphExecEventRecordNodeSetEvent(executable, record, s));
    OK(cuGraphExecEventRecordNodeSetEvent(executable, record, second));
    OK(cuStreamWaitValue64_v2(s, p, 1, 1));
    OK(cuGraphLaunch(executable, s));
    FAILS(600, cuEventQuery(second));
    OK(cuEventQuery(e));
    OK(cuStreamWriteValue64_v2(NULL, p, 1, 0));
    OK(cuEventSynchronize(second));

    OK(cuGraphClone(&clone, graph));
    OK(cuGraphNodeFindInClone(&found, record, clone));
    FAILS(1, cuGraphNodeFindInClone(&found, foreign, clone));
    OK(cuGraphAddEventWaitNode(&more, graph, NULL, 0, e));
    OK(cuGraphAddEventWaitNode(&found, clone, NULL, 0, e));
    FAILS(1, cuGraphNodeFindInClone(&found, more, clone));
    OK(cuGraphNodeGetContainingGraph(more, &child));
    IS(child == graph);
    OK(cuGraphNodeGetLocalId(more, &number));
    IS(number == 2);

    OK(cuGraphCreate(&parent, 0));
    OK(cuGraphAddChildGraphNode(&more, parent, NULL, 0, other));
    OK(cuGraphChildGraphNodeGetGraph(more, &child));
    count = 1;
    OK(cuGraphGetNodes(child, &found, &count));
    OK(cuGraphInstantiateWithFlags(&executable, parent, 0));
    FAILS(801, cuGraphExecMemsetNodeSetParams(executable, found, &set, NULL));
    FAILS(801, cuGraphExecChildGraphNodeSetParams(executable, more, other));
    OK(cuGraphDestroy(parent));
    FAILS(1, cuGraphGetNodes(child, NULL, &count));
    FAILS(1, cuGraphNodeGetLocalId(found, &number));
}

static void nothing(void *unused) { (void)unused; }
static void called(CUstream s, CUresult code, void *unused) { (void)s, (void)code, (void)unused; }

/* Flags that a function does not have. */
static void flags(void)
{
    CUstream s;
    CUevent e;
    CUdeviceptr p;
    CUcontext context, other;
    void *host;
    static char mine[4096];
    operation all[3] = {{.kind = 3, .flags = 77}, {.kind = 6, .barrier = 1, .flags = 77}, {.kind = 5}};
    operation many[256];
    struct {
        void *affinities;
        int count;
        void *graphics;
    } parameters = {NULL, 0, NULL};
    uint64_t back;
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&e, 2));
    OK(cuMemAlloc_v2(&p, 8));
    OK(cuMemsetD32_v2(p, 0, 2));
    OK(cuCtxSynchronize());
    OK(cuStreamWriteValue32_v2(s, p, 5, 1));
    FAILS(1, cuStreamWriteValue32_v2(s, p, 5, 2));
    FAILS(1, cuStreamWriteValue64_v2(s, p, 5, 1u << 30));
    OK(cuStreamWaitValue32_v2(s, p, 5, 1u << 30));
    FAILS(1, cuStreamWaitValue32_v2(s, p, 5, 4));
    FAILS(1, cuStreamWaitValue64_v2(s, p, 5, 1u << 31));
    all[2].address = p, all[2].value = 9;
    OK(cuStreamBatchMemOp_v2(s, 3, all, 0));
    FAILS(1, cuStreamBatchMemOp_v2(s, 3, all, 1));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(&back, p, 8));
    IS(back == 9);
    all[0].barrier = 1;
    FAILS(1, cuStreamBatchMemOp_v2(s, 1, all, 0));
    all[0].kind = 8;
    FAILS(801, cuStreamBatchMemOp_v2(s, 1, all, 0));
    all[0].kind = -1;
    FAILS(1, cuStreamBatchMemOp_v2(s, 1, all, 0));
    memset(many, 0, sizeof many);
    FAILS(1, cuStreamBatchMemOp_v2(s, 256, many, 0));
    FAILS(1, cuStreamBatchMemOp_v2(s, UINT32_MAX, NULL, 0));
    FAILS(1, cuEventRecordWithFlags(e, s, 2));
    FAILS(1, cuStreamWaitEvent(s, e, 2));
    FAILS(1, cuStreamAddCallback(s, called, NULL, 1));
    OK(cuLaunchHostFunc_v2(s, nothing, NULL, 1));
    FAILS(1, cuLaunchHostFunc_v2(s, nothing, NULL, 2));
    FAILS(1, cuMemHostRegister_v2(mine, sizeof mine, 16));
    FAILS(801, cuMemHostRegister_v2(mine, sizeof mine, 4));
    FAILS(1, cuCtxCreate_v2(&context, 3, 0));
    FAILS(1, cuCtxCreate_v2(&context, 0x100, 0));
    FAILS(1, cuDevicePrimaryCtxSetFlags_v2(0, 5));
    OK(cuCtxCreate_v4(&context, &parameters, 0x14, 0));
    OK(cuCtxDestroy_v2(context));
    OK(cuCtxGetCurrent(&context));
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    FAILS(1, cuCtxEnablePeerAccess(other, 1));
    OK(cuCtxEnablePeerAccess(other, 0));
    OK(cuMemHostAlloc(&host, 16, 0));
    FAILS(1, cuMemHostGetDevicePointer_v2(&p, host, 1));
    parameters.count = 1;
    FAILS(224, cuCtxCreate_v4(&context, &parameters, 0, 0));
    parameters.graphics = mine;
    FAILS(801, cuCtxCreate_v4(&context, &parameters, 0, 0));
    FAILS(224, cuCtxCreate_v3(&context, &parameters, 1, 0, 0));
    OK(cuMemAllocManaged(&p, 4096, 1));
    OK(cuMemAdvise(p, 4096, 1, 0));
    FAILS(1, cuMemAdvise(p, 4096, 0, 0));
    FAILS(1, cuMemAdvise(p, 4096, 77, 0));
}

/* A pool counts what it has, may have a limit, and knows which device may access it. */
static void pools(void)
{
    enum { USED = 7, USED_HIGH = 8, RESERVED_HIGH = 6 };
    struct {
        int type, handles, place, id;
        void *security;
        size_t most;
        char reserved[56];
    } properties = {.type = 1, .place = 1, .most = 4096};
    struct {
        int place, id, flags;
    } access = {1, 1, 3};
    CUstream s, far;
    CUdevice one;
    CUcontext other, first;
    CUdeviceptr p, q;
    void *pool, *current;
    uint64_t value = 0;
    int got;
    OK(cuStreamCreate(&s, 1));
    OK(cuMemPoolCreate(&pool, &properties));
    FAILS(2, cuMemAllocFromPoolAsync(&p, 5000, pool, s));
    OK(cuMemAllocFromPoolAsync(&p, 4000, pool, s));
    FAILS(2, cuMemAllocFromPoolAsync(&q, 100, pool, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuMemAllocFromPoolAsync(&q, 100, pool, s));
    OK(cuMemPoolGetAttribute(pool, USED, &value));
    IS(value == 100);
    OK(cuMemPoolGetAttribute(pool, RESERVED_HIGH, &value));
    IS(value == 4000);
    value = 1;
    FAILS(1, cuMemPoolSetAttribute(pool, RESERVED_HIGH, &value));
    value = 0;
    OK(cuMemPoolSetAttribute(pool, RESERVED_HIGH, &value));
    OK(cuMemPoolGetAttribute(pool, RESERVED_HIGH, &value));
    IS(value == 100);
    OK(cuMemPoolGetAttribute(pool, USED_HIGH, &value));
    IS(value == 4000);
    value = 0;
    OK(cuMemPoolSetAttribute(pool, USED_HIGH, &value));
    OK(cuMemPoolGetAttribute(pool, USED_HIGH, &value));
    IS(value == 100);
    OK(cuDeviceGetDefaultMemPool(&current, 0));
    value = 0;
    OK(cuMemPoolSetAttribute(current, USED_HIGH, &value)); /* nothing was allocated from it */
    OK(cuMemPoolGetAttribute(current, USED_HIGH, &value));
    IS(value == 0);

    OK(cuMemPoolGetAccess(&got, pool, &access));
    IS(got == 0);
    OK(cuMemPoolSetAccess(pool, &access, 1));
    OK(cuMemPoolGetAccess(&got, pool, &access));
    IS(got == 3);
    access.flags = 1;
    FAILS(1, cuMemPoolSetAccess(pool, &access, 1));
    access.flags = 0, access.id = 0;
    FAILS(1, cuMemPoolSetAccess(pool, &access, 1));
    FAILS(1, cuMemPoolSetAccess(pool, NULL, 1));
    FAILS(1, cuMemPoolSetAccess(pool, &access, SIZE_MAX));
    FAILS(1, cuMemPoolGetAccess(&got, pool, NULL));
    access.id = 77;
    FAILS(101, cuMemPoolGetAccess(&got, pool, &access));

    OK(cuMemSetMemPool(&properties.place, 1, pool));
    OK(cuDeviceGetMemPool(&current, 0));
    IS(current == pool);
    OK(cuCtxGetCurrent(&first));
    OK(cuDeviceGet(&one, 1));
    OK(cuDevicePrimaryCtxRetain(&other, one));
    OK(cuCtxSetCurrent(other));
    OK(cuStreamCreate(&far, 1));
    FAILS(801, cuMemAllocFromPoolAsync(&p, 100, pool, far));
    FAILS(1, cuDeviceSetGraphMemAttribute(0, 0, &value));
    FAILS(1, cuDeviceSetGraphMemAttribute(0, 1, NULL));
    OK(cuDeviceSetGraphMemAttribute(0, 1, &value));
    OK(cuMemFreeAsync(q, s));
    OK(cuMemPoolDestroy(pool));
    OK(cuDeviceGetMemPool(&current, 0)); /* it was the current one */
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    IS(current == pool);
}

/* Fills of device memory block where the memory or the context says so. */
static void waits(void)
{
    CUstream blocking;
    CUdeviceptr p, q;
    CUcontext all;
    unsigned yes = 1, back = 0;
    OK(cuStreamCreate(&blocking, 0));
    OK(cuMemAlloc_v2(&p, 1024));
    OK(cuMemAlloc_v2(&q, 1024));
    FAILS(1, cuPointerSetAttribute(NULL, 6, p));
    FAILS(1, cuPointerSetAttribute(&yes, 6, (CUdeviceptr)(uintptr_t)&yes));
    FAILS(1, cuPointerSetAttribute(&yes, 7, p));
    OK(cuMemsetD32_v2(p, 0, 2));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue64_v2(blocking, p, 5, 1));
    OK(cuMemsetD8_v2(q, 1, 512));
    OK(cuPointerSetAttribute(&yes, 6, q + 8));
    OK(cuPointerGetAttribute(&back, 6, q));
    IS(back == 1);
    FAILS(702, cuMemsetD8_v2(q, 1, 512));
    yes = 0;
    OK(cuPointerSetAttribute(&yes, 6, q));
    OK(cuMemsetD8_v2(q, 1, 512));
    OK(cuCtxCreate_v2(&all, 0x80, 0));
    FAILS(702, cuMemsetD8_v2(q, 1, 512));
}

/* Arguments of launches in the packed form, errors by their numbers, and sizes and counts that are too large. */
static void numbers(void)
{
    CUfunction f = kernel("add");
    CUdeviceptr p;
    struct {
        CUdeviceptr p;
        uint32_t n, more;
    } packed = {0, 1, 2};
    size_t size = sizeof packed;
    void *list[] = {(void *)1, &packed, (void *)2, &size, NULL}, *values[] = {&p, &packed.n, &packed.more};
    const char *text;
    char host[16];
    uint32_t back;
    copy3d box = {.skind = 2, .dkind = 2, .width = 1, .height = 1, .depth = (size_t)1 << 40, .spitch = 1, .sheight = 2,
                  .dpitch = 1, .dheight = 2};
    OK(cuMemAlloc_v2(&p, 1024));
    OK(cuMemsetD32_v2(p, 40, 4));
    packed.p = p;
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, list));
    OK(cuMemcpyDtoH_v2(&back, p, 4));
    IS(back == 42);
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, values, list));
    size--;
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, list));
    size++;
    list[1] = NULL;
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, list));
    list[1] = &packed, list[3] = NULL;
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, list));
    list[2] = (void *)7, list[3] = &size;
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, list));
    list[0] = NULL;
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, list));
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    FAILS(1, cuLaunchKernel(f, UINT32_MAX, UINT32_MAX, UINT32_MAX, 1, 1, 1, 0, NULL, values, NULL));
    FAILS(1, cuLaunchCooperativeKernel(f, 1, 1, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, NULL, values));
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, UINT32_MAX, NULL, values, NULL));
    FAILS(1, cuMemcpyHtoD_v2(p, host, SIZE_MAX));
    FAILS(1, cuMemcpyDtoH_v2(host, p, SIZE_MAX));
    FAILS(1, cuMemsetD32_v2(p, 1, SIZE_MAX));
    FAILS(1, cuMemcpyHtoD_v2(p, NULL, 16));
    box.sdevice = box.ddevice = p;
    FAILS(1, cuMemcpy3D_v2(&box)); /* many layers, of which the first are in the memory */
    FAILS(1, cuMemcpyBatchAsync_v2(&p, &p, &size, SIZE_MAX, NULL, NULL, 0, (CUstream)2));
    FAILS(1, cuOccupancyMaxActiveBlocksPerMultiprocessor((int *)&back, f, -1, 0));
    FAILS(1, cuDeviceGetName(host, -1, 0));
    FAILS(101, cuDeviceGetName(host, 16, -1));
    FAILS(1, cuDeviceGetAttribute((int *)&back, -1, 0));
    OK(cuGetErrorName(805, &text));
    IS(strcmp(text, "CUDA_ERROR_MPS_CONNECTION_FAILED") == 0);
    FAILS(1, cuGetErrorName(-1, &text));
    IS(text == NULL);
}

static void *releases(void *unused)
{
    OK(cuDevicePrimaryCtxRelease_v2(0));
    return unused;
}

/* A primary context that is retained again while its release waits for work stays as it is. */
static void retained(void)
{
    enum { TIMES = 1 << 28 };
    CUstream s, other;
    CUdeviceptr p;
    CUcontext again;
    pthread_t thread;
    unsigned flags;
    int active = 1;
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamCreate(&other, 1));
    OK(cuMemAlloc_v2(&p, 8));
    OK(cuMemsetD32_v2(p, 0, 2));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue64_v2(s, p, 5, 1));
    IS(pthread_create(&thread, NULL, releases, NULL) == 0);
    for (int i = 0; i < TIMES && active; i++) OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    IS(!active);
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuStreamWriteValue64_v2(other, p, 5, 0));
    IS(pthread_join(thread, NULL) == 0);
    OK(cuStreamSynchronize(s));
    OK(cuMemFree_v2(p));
}

static void noted(CUstream s, CUresult code, void *where) { (void)s, *(CUresult *)where = code; }

static void streams(void)
{
    CUstream s;
    CUgraph graph = NULL;
    unsigned long long legacy, own;
    CUresult code = -1;
    volatile uint32_t *flag;
    CUdeviceptr p;
    uint32_t none = 0;
    void *values[] = {&p, &none, &none};
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuStreamGetId(NULL, &legacy));
    OK(cuStreamGetId_ptsz(NULL, &own));
    IS(legacy != own);
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamBeginCapture_v2(s, 0));
    FAILS(900, cuStreamAddCallback(s, noted, &code, 0));
    cuStreamEndCapture(s, &graph);
    FAILS(720, cuLaunchCooperativeKernel(kernel("add"), 1 << 20, 1, 1, 128, 1, 1, 0, NULL, values));
    FAILS(1, cuLaunchKernel(kernel("add"), 1, 1, 1, 128, 1, 1, 100 << 10, NULL, values, NULL)); /* more must be asked for */
    OK(cuStreamDestroy_v2(s));
    FAILS(400, cuStreamDestroy_v2(s));
    FAILS(400, cuStreamQuery(s));

    OK(cuMemHostAlloc((void **)&flag, 4, 0));
    *flag = 0;
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamWaitValue32_v2(s, (CUdeviceptr)(uintptr_t)flag, 1, 1));
    FAILS(600, cuStreamQuery(s));
    OK(add(kernel("add"), 8, 1, 1, s)); /* there is no memory */
    OK(cuStreamAddCallback(s, noted, &code, 0));
    *flag = 1;
    FAILS(700, cuStreamSynchronize(s));
    for (int i = 0; i < 10000 && code == -1; i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    IS(code != -1 && code != 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check)(void);
    } edges[] = {{"threads", threads}, {"resets", resets}, {"batches", batches}, {"sizes", sizes},
                 {"libraries", libraries}, {"objects", objects}, {"stuck", stuck},
                 {"arguments", arguments},
                 {"attributes", attributes},
                 {"nodes", nodes},
                 {"flags", flags},
                 {"pools", pools},
                 {"waits", waits},
                 {"numbers", numbers},
                 {"streams", streams},
                 {"retained", retained}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        if (argc == 2 && strcmp(argv[1], edges[i].name) == 0) {
            begin();
            edges[i].check();
            puts("done");
            return 0;
        }
    fprintf(stderr, "no edge: %s\n", argc > 1 ? argv[1] : "");
    return 2;
}
