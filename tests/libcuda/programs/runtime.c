/* The calls of CUDA's runtime: the argument says which. */
#include "runtime.h"

enum { COUNT = 1000, BYTES = 4 * COUNT };

static uint32_t first_of(const void *p)
{
    uint32_t number;
    OK(cudaMemcpy(&number, p, 4, DEVICE_TO_HOST));
    return number;
}

static void devices(void)
{
    int count, device, major, minor, processors, warp;
    char properties[2048], old[2048];
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDevice(&device));
    IS(count == 2 && device == 0);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&device));
    IS(device == 1);
    FAILS(101, cudaSetDevice(2));
    IS(cudaPeekAtLastError() == 101 && cudaGetLastError() == 101 && cudaGetLastError() == 0);
    OK(cudaDeviceGetAttribute(&major, 75, 0));
    OK(cudaDeviceGetAttribute(&processors, 16, 0));
    memset(properties, 'x', sizeof properties);
    memset(old, 'x', sizeof old);
    OK(cudaGetDeviceProperties(properties, 0));
    OK(cudaGetDeviceProperties_v2(old, 0));
    IS(properties[1007] == 0 && properties[1008] == 'x' && old[1031] == 0 && old[1032] == 'x');
    IS(strncmp(properties, "host device 0", 13) == 0 && major == 8);
    memcpy(&warp, properties + 308, 4); /* the layouts of CUDA 13 and of CUDA 12 */
    IS(warp == 32);
    memcpy(&major, properties + 360, 4);
    memcpy(&minor, properties + 364, 4);
    IS(major == 8 && minor == 0);
    memcpy(&major, properties + 384, 4);
    memcpy(&minor, old + 388, 4);
    IS(major == processors && minor == processors);
    IS(strcmp(cudaGetErrorName(700), "cudaErrorIllegalAddress") == 0);
    IS(strcmp(cudaGetErrorString(9), "invalid configuration argument") == 0);
    IS(strcmp(cudaGetErrorString(123456), "unrecognized error code") == 0);
    FAILS(801, cudaMallocArray());
}

static void memory(void)
{
    static uint32_t numbers[COUNT], back[COUNT];
    struct {
        int type, device;
        void *on_device, *on_host;
        long reserved[8];
    } about;
    void *p, *host, *none, *event;
    cudaIpcMemHandle_t shared;
    for (int i = 0; i < COUNT; i++) numbers[i] = (uint32_t)i;
    OK(cudaFree(NULL));
    OK(cudaMalloc(&none, 0));
    IS(none == NULL);
    OK(cudaMalloc(&p, BYTES));
    OK(cudaMemcpy(p, numbers, BYTES, HOST_TO_DEVICE));
    OK(cudaMemcpy(back, p, BYTES, BY_ADDRESS));
    IS(memcmp(back, numbers, BYTES) == 0);
    FAILS(21, cudaMemcpy(back, p, 4, 9));
    OK(cudaMemcpy2D(back, 8, p, 40, 4, 100, DEVICE_TO_HOST));
    IS(back[2] == 10 && back[1] == 1);
    OK(cudaMemset(p, 0xab, 4));
    IS(first_of(p) == 0xabababab);
    OK(cudaHostAlloc(&host, BYTES, 0));
    OK(cudaPointerGetAttributes(&about, p));
    IS(about.type == 2 && about.device == 0 && about.on_device == p);
    OK(cudaPointerGetAttributes(&about, host));
    IS(about.type == 1 && about.on_host == host);
    OK(cudaPointerGetAttributes(&about, numbers));
    IS(about.type == 0 && about.device == -2);
    OK(cudaIpcGetMemHandle(&shared, p));
    FAILS(201, cudaIpcOpenMemHandle(&none, shared, 1)); /* this process has it */
    FAILS(1, cudaIpcCloseMemHandle(p));
    OK(cudaEventCreateWithFlags(&event, 6));
    OK(cudaIpcGetEventHandle(&shared, event));
    FAILS(201, cudaIpcOpenEventHandle(&event, shared));
    shared.reserved[0]++;
    FAILS(1, cudaIpcOpenEventHandle(&event, shared));
    OK(cudaFreeHost(host));
    OK(cudaFree(p));
    FAILS(1, cudaFree(p));
}

static void kernels(void)
{
    void *p, *address;
    size_t size;
    uint32_t value = 9;
    int blocks;
    struct {
        size_t sizes[3];
        int most, numbers[29];
    } attributes;
    OK(cudaMalloc(&p, BYTES));
    OK(cudaMemset(p, 0, BYTES));
    ADD(8, 128, 0, NULL, p, COUNT, 5);
    OK(cudaGetLastError());
    OK(cudaLaunchKernel(&add_stub, (dim3){8, 1, 1}, (dim3){128, 1, 1}, (void *[]){&p, &(unsigned){COUNT}, &(unsigned){2}}, 0, NULL));
    OK(cudaDeviceSynchronize());
    IS(first_of(p) == 7 && first_of((char *)p + BYTES - 4) == 7);
    ADD(0, 128, 0, NULL, p, COUNT, 5);
    FAILS(9, cudaGetLastError()); /* no blocks */
    ADD(1, 2000, 0, NULL, p, COUNT, 5);
    FAILS(9, cudaGetLastError()); /* too many threads */
    ADD(1, 128, 100000, NULL, p, COUNT, 5);
    FAILS(1, cudaGetLastError()); /* too much shared memory, until it is allowed */
    OK(cudaFuncSetAttribute(&add_stub, 8, 100000));
    ADD(1, 128, 100000, NULL, p, COUNT, 5);
    OK(cudaGetLastError());
    FAILS(98, cudaLaunchKernel(&unknown_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    FAILS(98, cudaLaunchKernel(&value, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    OK(cudaFuncGetAttributes(&attributes, &add_stub));
    IS(attributes.most == 1024 && attributes.sizes[0] == 0);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &add_stub, 128, 0));
    IS(blocks > 0);
    OK(cudaGetSymbolSize(&size, &marker));
    OK(cudaGetSymbolAddress(&address, &marker));
    IS(size == 4 && first_of(address) == 7);
    OK(cudaMemcpyToSymbol(&marker, &value, 4, 0, HOST_TO_DEVICE));
    IS(first_of(address) == 9);
    FAILS(1, cudaMemcpyToSymbol(&marker, &value, 4, 1, HOST_TO_DEVICE));
    FAILS(13, cudaMemcpyFromSymbol(&value, &add_kernel, 4, 0, DEVICE_TO_HOST));
    OK(cudaSetDevice(1)); /* the program is loaded there as well, with a variable of its own */
    OK(cudaMemcpyFromSymbol(&value, &marker, 4, 0, DEVICE_TO_HOST));
    IS(value == 7);
    OK(cudaMalloc(&p, BYTES));
    ADD(8, 128, 0, NULL, p, COUNT, 1);
    OK(cudaDeviceSynchronize());
    __cudaUnregisterFatBinary(program);
    FAILS(13, cudaGetSymbolSize(&size, &marker));
}

static void ran(void *flag) { *(int *)flag = 1; }

static void streams(void)
{
    cudaStream_t s;
    cudaEvent_t start, end;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *p;
    float milliseconds;
    int flag = 0;
    OK(cudaStreamCreateWithFlags(&s, 1));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, s));
    OK(cudaMallocAsync(&p, BYTES, s));
    OK(cudaMemsetAsync(p, 0, BYTES, s));
    ADD(8, 128, 0, s, p, COUNT, 4);
    OK(cudaLaunchHostFunc(s, ran, &flag));
    OK(cudaEventRecord(end, s));
    OK(cudaStreamWaitEvent(NULL, end, 0));
    OK(cudaEventSynchronize(end));
    IS(flag == 1 && first_of(p) == 4);
    OK(cudaEventElapsedTime(&milliseconds, start, end));
    OK(cudaStreamBeginCapture(s, 0));
    ADD(8, 128, 0, s, p, COUNT, 10);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    IS(first_of(p) == 24);
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamQuery(NULL));
    OK(cudaStreamDestroy(s));
    FAILS(400, cudaStreamSynchronize(s));
}

static void faults(void)
{
    void *p;
    OK(cudaLaunchKernel(&wrong_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    FAILS(700, cudaDeviceSynchronize());
    FAILS(700, cudaMalloc(&p, 4)); /* until the device is reset */
    FAILS(700, cudaGetLastError());
    OK(cudaDeviceReset());
    OK(cudaMalloc(&p, 4));
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"devices", devices}, {"memory", memory}, {"kernels", kernels}, {"streams", streams}, {"faults", faults}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (count == 2 && strcmp(words[1], all[i].name) == 0) {
            all[i].run();
            puts("done");
            return 0;
        }
    return 2;
}
