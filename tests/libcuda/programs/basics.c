/* The nouns of the driver: the argument says which. */
#include "driver.h"

static void devices(void)
{
    int count, version, major, minor;
    char name[100];
    size_t total, free, all;
    CUdevice device;
    OK(cuDriverGetVersion(&version));
    IS(version == 13000);
    FAILS(3, cuDeviceGetCount(&count));
    FAILS(1, cuInit(1));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    IS(count == 2);
    OK(cuDeviceGet(&device, 1));
    FAILS(101, cuDeviceGet(&device, 2));
    OK(cuDeviceGetName(name, sizeof name, 0));
    IS(strncmp(name, "host device 0", 13) == 0);
    OK(cuDeviceGetAttribute(&major, 75, 0));
    OK(cuDeviceGetAttribute(&minor, 76, 0));
    IS(major == 8 && minor == 0);
    FAILS(1, cuDeviceGetAttribute(&major, 9999, 0));
    OK(cuDeviceTotalMem_v2(&total, 0));
    FAILS(201, cuMemGetInfo_v2(&free, &all));
    begin();
    OK(cuMemGetInfo_v2(&free, &all));
    IS(all == total && free <= all);
}

static void contexts(void)
{
    CUcontext primary, own, now;
    unsigned flags;
    int active;
    OK(cuCtxGetCurrent(&primary));
    OK(cuCtxCreate_v2(&own, 0, 1));
    OK(cuCtxGetCurrent(&now));
    IS(now == own);
    OK(cuCtxPushCurrent_v2(primary));
    OK(cuCtxPopCurrent_v2(&now));
    IS(now == primary);
    OK(cuCtxDestroy_v2(own));
    OK(cuCtxGetCurrent(&now));
    IS(now == primary);
    FAILS(201, cuCtxSetCurrent(own));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    IS(active == 1);
    OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    IS(active == 0);
    FAILS(201, cuDevicePrimaryCtxRelease_v2(1));
}

static void memory(void)
{
    CUdeviceptr p, start, managed;
    size_t size, pitch;
    void *host;
    uint32_t kind, numbers[64], back[64];
    static char mine[1 << 16];
    for (int i = 0; i < 64; i++) numbers[i] = (uint32_t)i;
    OK(cuMemAlloc_v2(&p, 1000));
    IS(p % 256 == 0);
    FAILS(1, cuMemAlloc_v2(&start, 0));
    OK(cuMemGetAddressRange_v2(&start, &size, p + 10));
    IS(start == p && size == 1000);
    OK(cuPointerGetAttribute(&kind, 2, p));
    IS(kind == 2);
    FAILS(1, cuPointerGetAttribute(&kind, 2, (CUdeviceptr)(uintptr_t)mine));
    OK(cuMemcpyHtoD_v2(p, numbers, sizeof numbers));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    IS(memcmp(back, numbers, sizeof back) == 0);
    FAILS(1, cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)mine, numbers, 8));
    FAILS(1, cuMemcpyHtoD_v2(p + 990, numbers, 100));
    OK(cuMemsetD8_v2(p, 0xab, 4));
    OK(cuMemcpyDtoH_v2(back, p, 8));
    IS(back[0] == 0xabababab && back[1] == 1);
    OK(cuMemFree_v2(p));
    FAILS(1, cuMemFree_v2(p));
    OK(cuMemFree_v2(0));
    OK(cuMemHostAlloc(&host, 100, 0));
    OK(cuPointerGetAttribute(&kind, 2, (CUdeviceptr)(uintptr_t)host));
    IS(kind == 1);
    OK(cuMemFreeHost(host));
    OK(cuMemHostRegister_v2(mine, sizeof mine, 0));
    FAILS(712, cuMemHostRegister_v2(mine, sizeof mine, 0));
    OK(cuMemHostUnregister(mine));
    FAILS(713, cuMemHostUnregister(mine));
    OK(cuMemAllocManaged(&managed, 400, 1));
    OK(cuMemsetD32_v2(managed, 5, 100));
    IS(((uint32_t *)(uintptr_t)managed)[99] == 5);
    OK(cuPointerGetAttribute(&kind, 8, managed));
    IS(kind == 1);
    OK(cuMemAllocPitch_v2(&p, &pitch, 40, 8, 4));
    IS(pitch >= 40 && pitch % 16 == 0);
    OK(cuMemsetD2D32_v2(p, pitch, 9, 10, 8));
    struct {
        size_t sx, sy;
        int skind;
        const void *shost;
        CUdeviceptr sdevice;
        void *sarray;
        size_t spitch, dx, dy;
        int dkind;
        void *dhost;
        CUdeviceptr ddevice;
        void *darray;
        size_t dpitch, width, height;
    } box = {.skind = 2, .sdevice = p, .spitch = pitch, .dkind = 1, .dhost = back, .dpitch = 16, .width = 16, .height = 4, .sx = 4, .sy = 2};
    OK(cuMemcpy2D_v2(&box));
    for (int i = 0; i < 16; i++) IS(back[i] == 9);
    box.skind = 3;
    FAILS(801, cuMemcpy2D_v2(&box));
}

static int ran;
static void count(void *by)
{
    ran += *(int *)by;
    FAILS(800, cuCtxSynchronize()); /* a function of a stream may not call the driver */
}
static void count_no_call(void *by) { ran += *(int *)by; }
static void called(CUstream stream, CUresult status, void *by)
{
    (void)stream;
    ran += status == 0 ? *(int *)by : 1000;
}

static void streams(void)
{
    CUstream s, t;
    CUevent first, last, untimed;
    CUdeviceptr p;
    unsigned flags;
    int priority, one = 1;
    float ms;
    OK(cuStreamCreateWithPriority(&s, 1, -100));
    OK(cuStreamGetPriority(s, &priority));
    OK(cuStreamGetFlags(s, &flags));
    IS(priority < 0 && flags == 1);
    OK(cuStreamCreate(&t, 0));
    FAILS(1, cuStreamCreate(&t, 64));
    OK(cuStreamQuery(s));
    FAILS(400, cuStreamSynchronize((CUstream)(uintptr_t)0x7777770));
    OK(cuEventCreate(&first, 0));
    OK(cuEventCreate(&last, 0));
    OK(cuEventCreate(&untimed, 2));
    OK(cuEventQuery(first));
    FAILS(400, cuEventElapsedTime(&ms, first, last));
    OK(cuEventRecord(first, s));
    OK(cuLaunchHostFunc(s, count, &one));
    OK(cuStreamAddCallback(s, called, &one, 0));
    OK(cuEventRecord(last, s));
    OK(cuEventRecord(untimed, s));
    OK(cuStreamWaitEvent(t, last, 0));
    OK(cuLaunchHostFunc(t, count, &one));
    OK(cuStreamSynchronize(t));
    IS(ran == 3);
    OK(cuEventElapsedTime(&ms, first, last));
    IS(ms >= 0);
    FAILS(400, cuEventElapsedTime(&ms, first, untimed));
    OK(cuMemAllocAsync(&p, 64, s));
    OK(cuStreamWriteValue64_v2(s, p, 3, 0));
    OK(cuStreamWaitValue64_v2(s, p, 3, 1));
    OK(cuStreamWriteValue32_v2(s, p + 4, 8, 0));
    OK(cuStreamWaitValue32_v2(s, p + 4, 8, 1));
    OK(cuStreamWaitValue32_v2(s, p, 3, 1));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamSynchronize(s));
    OK(cuEventDestroy_v2(first));
    FAILS(400, cuEventRecord(first, s));
    OK(cuStreamDestroy_v2(s));
    OK(cuStreamDestroy_v2(t));
    FAILS(801, cuStreamAttachMemAsync(NULL, 0, 0, 1));
}

static void modules(void)
{
    CUmodule module;
    CUfunction f;
    CUdeviceptr p, variable;
    size_t size;
    uint32_t back[300];
    int blocks, threads;
    char text[2000] = "";
    int options[] = {5, 6};
    void *values[] = {text, (void *)(uintptr_t)sizeof text}, *linker, *image;
    FAILS(209, cuModuleLoadData(&module, "\177ELF........"));
    FAILS(200, cuModuleLoadData(&module, "no program"));
    FAILS(218, cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\n.address_size 64\n.entry f() { nonsense; }", 2, options, values));
    IS(strstr(text, "nonsense") != NULL);
    OK(cuLinkCreate_v2(0, NULL, NULL, &linker));
    OK(cuLinkAddData_v2(linker, 1, (void *)kernels, sizeof kernels, "kernels", 0, NULL, NULL));
    OK(cuLinkComplete(linker, &image, &size));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(linker));
    FAILS(500, cuModuleGetFunction(&f, module, "nothing"));
    OK(cuModuleGetFunction(&f, module, "add"));
    OK(cuModuleGetGlobal_v2(&variable, &size, module, "marker"));
    IS(size == 4);
    OK(cuMemcpyDtoH_v2(back, variable, 4));
    IS(back[0] == 7);
    OK(cuFuncGetAttribute(&threads, 0, f));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads, 0));
    IS(threads == 1024 && blocks == 2);
    OK(cuFuncGetAttribute(&threads, 2, f));
    IS(threads == 12); /* bytes of constant memory */
    OK(cuFuncGetAttribute(&threads, 4, f));
    IS(threads > 0); /* registers of a thread */
    OK(cuMemAlloc_v2(&p, sizeof back));
    OK(cuMemsetD32_v2(p, 40, 300));
    OK(add(f, p, 300, 2, NULL));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    IS(back[0] == 42 && back[299] == 42);
    uint32_t n = 300, more = 1;
    struct {
        CUdeviceptr p;
        uint32_t n, more;
    } packed = {p, n, more};
    size_t bytes = sizeof packed;
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL};
    OK(cuLaunchKernel(f, 3, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    FAILS(1, cuLaunchKernel(f, 0, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    FAILS(1, cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    IS(back[299] == 43);
    OK(cuModuleUnload(module));
}

static void graphs(void)
{
    CUstream s, joined;
    CUevent fork, join;
    CUgraph graph, made;
    CUgraphExec run;
    CUgraphNode nodes[3], first;
    CUdeviceptr p;
    CUfunction f = kernel("add");
    uint32_t back[10], n = 10, more = 5;
    size_t count = 0;
    int state, one = 1;
    uint64_t number;
    CUgraph early;
    OK(cuMemAlloc_v2(&p, sizeof back));
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamCreate(&joined, 1));
    OK(cuEventCreate(&fork, 2));
    OK(cuEventCreate(&join, 2));
    FAILS(401, cuStreamEndCapture(s, &graph));
    OK(cuStreamBeginCapture_v2(s, 0));
    OK(cuStreamIsCapturing(s, &state));
    IS(state == 1);
    FAILS(900, cuStreamSynchronize(s));
    FAILS(901, cuStreamEndCapture(s, &graph));
    IS(graph == NULL);
    OK(cuStreamBeginCapture_v2(s, 2));
    OK(cuStreamGetCaptureInfo_v2(s, &state, &number, &early, NULL, NULL));
    IS(state == 1 && number > 0 && early != NULL);
    FAILS(401, cuGraphGetNodes(early, NULL, &count));
    OK(cuMemsetD32Async(p, 1, 10, s));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(joined, fork, 0));
    OK(add(f, p, 10, 2, joined));
    OK(cuEventRecord(join, joined));
    OK(cuStreamWaitEvent(s, join, 0));
    OK(add(f, p, 10, 3, s));
    OK(cuStreamEndCapture(s, &graph));
    IS(graph == early);
    OK(cuGraphGetNodes(graph, NULL, &count));
    IS(count == 3);
    OK(cuGraphInstantiateWithFlags(&run, graph, 0));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch(run, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    IS(back[9] == 6);
    OK(cuGraphExecDestroy(run));
    OK(cuGraphCreate(&made, 0));
    struct {
        CUdeviceptr dst;
        size_t pitch;
        uint32_t value, size;
        size_t width, rows;
    } fill = {p, 0, 7, 4, 10, 1};
    OK(cuGraphAddMemsetNode(&first, made, NULL, 0, &fill, NULL));
    void *arguments[] = {&p, &n, &more};
    struct {
        CUfunction f;
        uint32_t grid[3], block[3], shared;
        void **arguments, **extra;
        void *kernel, *context;
    } launch = {f, {1, 1, 1}, {32, 1, 1}, 0, arguments, NULL, NULL, NULL};
    OK(cuGraphAddKernelNode_v2(&nodes[0], made, &first, 1, &launch));
    struct {
        CUhostFn function;
        void *argument;
    } call = {count_no_call, &one};
    OK(cuGraphAddHostNode(&nodes[1], made, nodes, 1, &call));
    OK(cuGraphInstantiateWithFlags(&run, made, 0));
    ran = 0;
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch(run, s));
    OK(cuStreamSynchronize(s));
    IS(ran == 3);
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    IS(back[0] == 12);
}

static void entries(void)
{
    void *f, *own;
    int state;
    OK(cuGetProcAddress_v2("cuMemAlloc", &f, 12000, 0, &state));
    IS(f == (void *)cuMemAlloc_v2 && state == 0);
    OK(cuGetProcAddress_v2("cuStreamSynchronize", &f, 12000, 0, &state));
    OK(cuGetProcAddress_v2("cuStreamSynchronize", &own, 12000, 2, &state));
    IS(f != own);
    OK(cuGetProcAddress_v2("cuNothing", &f, 12000, 0, &state));
    IS(f == NULL && state == 1);
    OK(cuGetProcAddress_v2("cuGraphAddNode", &f, 11000, 0, &state));
    IS(f == NULL && state == 2);
    FAILS(801, cuGetExportTable((const void **)&f, "0123456789abcdef"));
    FAILS(801, cuArrayCreate_v2(&f, "0123456789abcdef0123456789abcdef"));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check)(void);
    } nouns[] = {{"devices", devices}, {"contexts", contexts}, {"memory", memory}, {"streams", streams},
                 {"modules", modules}, {"graphs", graphs}, {"entries", entries}};
    for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++)
        if (argc == 2 && strcmp(argv[1], nouns[i].name) == 0) {
            if (nouns[i].check != devices) begin();
            nouns[i].check();
            puts("done");
            return 0;
        }
    fprintf(stderr, "no noun: %s\n", argc > 1 ? argv[1] : "");
    return 2;
}
